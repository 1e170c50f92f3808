"""A team at work: one environment as a film."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsnd.analysis import Field, bin_field
from graphsnd.analysis.grouping import cut_tree
from graphsnd.control.actions import action_distribution
from graphsnd.errors import InputError, plural
from graphsnd.files import write_whole
from graphsnd.metric import pairwise
from graphsnd.plots.clustering import cluster
from graphsnd.plots.fields import draw_field
from graphsnd.plots.style import FAINT, MUTED, group_look, new_figure, theme
from graphsnd.teams import StackedTeam
from graphsnd.training.diversity import pool_observations
from graphsnd.training.sampling import to_world
from graphsnd.worlds import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

GROUPS = 4  # clusters of behaviour that are coloured
TAIL = 25  # steps of the trail behind an agent
OBSERVATIONS = 1024  # that the policies are compared on
DPI, FPS = 100, 15
FILMS = {".gif": "GIF", ".mp4": "MP4"}  # endings, and the kinds of such files
WIDTH, HEIGHT, SIDE = 6.2, 6.8, 0.84  # inches, and the part of the width that the world takes


@dataclass(frozen=True, eq=False)
class Scene:
    """One episode in one environment."""

    paths: NDArray[np.float64]  # [steps + 1, agents, 2]
    goals: NDArray[np.float64] | None  # [landmarks, 2]
    own: bool  # whether landmark i is agent i's
    groups: NDArray[np.int64]  # [agents], cluster of behaviour, numbered from the largest on
    field: Field  # local SND, over where the observations were made
    snd: float
    radius: float | None  # of an agent, where the world says it


def write_film(team: StackedTeam, world: World, path: Path, *, steps: int = 128) -> Path:
    """Let a team act and write the film, agents coloured by cluster of behaviour, the ground by local diversity.

    Args:
        team: The policies, which take their likeliest action.
        world: A world in the plane.
        path: Ends in ``.gif`` or ``.mp4``; the latter needs ffmpeg.
        steps: Steps at most; the film ends with the episode.

    Returns:
        ``path``.

    Raises:
        InputError: For another ending, a world without positions, or a missing ffmpeg.
    """
    from matplotlib.animation import FFMpegWriter, PillowWriter

    check_film(path)
    scene = play_episode(team, world, steps=steps)
    writer = (PillowWriter if path.suffix == ".gif" else FFMpegWriter)(fps=FPS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with theme(), TemporaryDirectory() as folder:
        figure, draw = _stage(scene, world.name)
        film = Path(folder) / f"film{path.suffix}"
        with writer.saving(figure, str(film), DPI):
            for step in [*range(len(scene.paths)), *[len(scene.paths) - 1] * FPS]:  # the last picture stands a while
                draw(step)
                writer.grab_frame()
        write_whole(path, film.read_bytes())
    return path


def check_film(path: Path) -> None:
    """Raise unless a film of this name can be written: a .gif, or an .mp4 where ffmpeg is installed."""
    if path.suffix not in FILMS:
        raise InputError("render", f"to end in {' or '.join(FILMS)}", repr(path.name))
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        fix = "Install ffmpeg, or use .gif."
        raise InputError("render", "to end in .gif where ffmpeg is not installed", "an .mp4", fix)


@torch.no_grad()
def play_episode(team: StackedTeam, world: World, *, steps: int, seed: int = 0) -> Scene:
    """Play one episode, and cluster the agents by how they act on its observations."""
    state = world.spawn(seed, 1)
    start = world.positions(state)
    if start is None:
        raise InputError("world", "with positions in the plane", world.name)
    observations, paths, visited = world.observe(state), [start], []
    goals = world.goals(state)
    for _ in range(steps):
        visited.append(observations[0])
        distribution = action_distribution(team.head, team.network(observations.transpose(0, 1)))
        state, step = world.step(state, to_world(distribution.mode().transpose(0, 1), world.actions))
        observations = step.observations
        here = world.positions(state)
        paths.append(start if here is None else here)
        if bool((step.terminated | step.truncated)[0]):
            break
    seen, places = torch.stack(visited), torch.cat(paths[: len(visited)])
    pooled = pool_observations(torch.cat([seen, places], -1), OBSERVATIONS)
    behavior = team.evaluate(pooled[:, :-2].to(seen.dtype))
    matrix = pairwise(behavior).cpu()
    return Scene(
        paths=torch.cat(paths).cpu().double().numpy(),
        goals=None if goals is None else goals[0].cpu().double().numpy(),
        own=world.name == "navigation",
        # By complete linkage, which bounds how far agents of a group are apart. Average linkage, good for trees, would
        # give every outlier a colour and all others the same.
        groups=cut_tree(cluster(matrix, "complete").links, GROUPS),
        field=bin_field(behavior, pooled[:, -2:]),
        snd=float(matrix.sum() / (len(matrix) * (len(matrix) - 1))),
        radius=getattr(world, "agent_radius", None),
    )


def _stage(scene: Scene, name: str) -> tuple[Figure, Any]:
    """Return the figure, and a function that draws a step into it."""
    from matplotlib.collections import LineCollection

    figure = new_figure(WIDTH, HEIGHT, layout=None)
    ax = figure.add_axes((0.12, 0.17, SIDE, SIDE * WIDTH / HEIGHT))
    colours = [group_look(int(group))[0] for group in scene.groups]
    low, high = _range(scene)
    ground = draw_field(ax, scene.field, whole=True, cmap="Greys", alpha=0.45, zorder=-1)
    ground.set_clim(low - 0.4 * (high - low), high + 1e-9)  # white is where nothing was observed
    width = _frame(ax, scene)
    # To scale where the world has a radius, never too small to see; in square points.
    diameter = 2 * scene.radius / width * SIDE * WIDTH * 72 if scene.radius else 9.0
    size = float(np.clip(diameter, 6.0, 60.0)) ** 2
    if scene.goals is not None:
        rims = colours if scene.own else MUTED
        x, y = scene.goals.T
        ax.scatter(x, y, s=size, facecolors="none", edgecolors=rims, linewidths=1.3, zorder=1)
    trails = LineCollection([], colors=colours, linewidths=1.6, alpha=0.6, zorder=2)
    leads = LineCollection([], colors=colours, linewidths=0.7, alpha=0.3, zorder=0)
    ax.add_collection(trails)
    ax.add_collection(leads)
    x, y = scene.paths[0].T
    dots = ax.scatter(x, y, s=size, c=colours, edgecolors="white", linewidths=0.5, zorder=3)
    title = ax.set_title("")
    figure.legend(handles=_legend(scene), ncols=3, loc="lower center", bbox_to_anchor=(0.54, 0.0), columnspacing=1.2)

    def draw(step: int) -> None:
        tail = scene.paths[max(0, step - TAIL) : step + 1]
        trails.set_segments(list(tail.transpose(1, 0, 2)))
        dots.set_offsets(scene.paths[step])
        if scene.own and scene.goals is not None:
            leads.set_segments(list(np.stack([scene.paths[step], scene.goals], 1)))
        title.set_text(f"{name}, {len(scene.groups)} agents, SND {scene.snd:.3f}, step {step}")

    return figure, draw


def _legend(scene: Scene) -> list[Any]:
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 8}
    handles = []
    for group, count in enumerate(np.bincount(scene.groups).tolist()):
        label = f"behaviour {group + 1}: {count} {plural('agent', count)}"
        handles.append(Line2D([], [], color=group_look(group)[0], label=label, **look))
    if scene.goals is not None:
        label = "goal of that agent" if scene.own else "landmark"
        handles.append(Line2D([], [], color=MUTED, label=label, markerfacecolor="none", **look))
    ground = "local SND {:.2f} to {:.2f}".format(*_range(scene))
    return [*handles, Line2D([], [], **{**look, "marker": "s"}, color=MUTED, alpha=0.45, label=ground)]


def _range(scene: Scene) -> tuple[float, float]:
    """Return the least and the largest local SND."""
    means = scene.field.means[scene.field.counts > 0]
    return float(means.min()), float(means.max())


def _frame(ax: Any, scene: Scene) -> float:
    """Set the limits to a square around all paths and goals, and return its side."""
    points: NDArray[np.float64] = scene.paths.reshape(-1, 2)
    points = points if scene.goals is None else np.concatenate([points, scene.goals])
    low, high = points.min(0), points.max(0)
    half = 0.55 * max(float((high - low).max()), 1e-3)
    x, y = ((middle - half, middle + half) for middle in (low + high) / 2)
    ax.set(xlim=x, ylim=y, aspect="equal", xlabel="x  [world units]", ylabel="y  [world units]")
    ax.grid(color=FAINT)
    ax.spines[["top", "right"]].set_visible(True)
    return 2 * half
