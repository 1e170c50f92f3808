"""Draw the moving picture of the README: more pairs, a narrower interval. Takes the path of a .gif; seconds."""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import graphsnd as gs

MOVING, STILL = 160, 2800  # milliseconds of a picture, and of the last
team = gs.plots.example_team()
matrix, exact = gs.pairwise(team.behavior), gs.measure(team.behavior)
sizes = np.unique(np.geomspace(25, exact.pairs_total, 26).astype(int))
graphs = [gs.graphs.uniform(exact.agents, int(size), seed=3) for size in sizes]
estimates = [gs.measure(team.behavior, design=graph) for graph in graphs]


def draw(frame: int) -> Image.Image:
    """Show the pairs of a sample, and what samples up to this size say."""
    figure = Figure((9.0, 4.15), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    gs.plots.graph(graphs[frame], matrix, ax=left, groups=team.roles)
    left.set_title(f"{graphs[frame].m:,} of {exact.pairs_total:,} pairs of agents")
    left.set(xticks=[], yticks=[], xlabel="near agents act alike; colour: hidden role", ylabel="")
    left.spines[:].set_visible(False)
    so_far = estimates[: frame + 1]
    low, high = zip(*(estimate.interval for estimate in so_far), strict=True)
    right.axhline(exact.value, color="#D55E00", linewidth=2, label=f"SND over all pairs: {exact.value:.3f}")
    right.fill_between(sizes[: frame + 1], low, high, color="#0072B2", alpha=0.2, label="95% interval, for every team")
    right.plot(sizes[: frame + 1], [estimate.value for estimate in so_far], color="#0072B2", label="from these pairs")
    right.plot(sizes[frame], so_far[-1].value, "o", color="#0072B2", markersize=8)
    right.set(xscale="log", xlim=(sizes[0] * 0.9, sizes[-1] * 1.15), ylim=(0, 2.45), ylabel="action units")
    right.set_xticks([30, 100, 300, 1000, 4950], ["30", "100", "300", "1,000", "all"])
    right.set_xticks([], minor=True)
    right.set_xlabel("pairs that were compared")
    right.set_title(f"SND {so_far[-1].value:.3f}, in [{low[-1]:.2f}, {high[-1]:.2f}]")
    right.legend(loc="upper right")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=100)
    return Image.open(picture).convert("RGB")


with gs.plots.theme():
    frames = [draw(frame) for frame in range(len(sizes))]
# One palette for all, from the pictures with the most colours, so that nothing flickers.
palette = frames[len(frames) // 2].quantize(96, method=Image.Quantize.FASTOCTREE)
frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
path = Path(sys.argv[1] if len(sys.argv) > 1 else f"{tempfile.mkdtemp()}/sample.gif")
times = [MOVING] * (len(frames) - 1) + [STILL]
frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
print(f"wrote {path}: SND {exact.value:.3f} from {sizes[0]} to {sizes[-1]:,} pairs, {path.stat().st_size / 1e3:.0f} kB")
