r"""How long SND takes, on all pairs and on a Bernoulli graph, in a Python loop and in one fused call.

The paper times a loop over pairs, where time is proportional to the pairs: :math:`\binom{n}{2} / |E| \approx 1/p`.
Here that loop takes turns with :func:`graphsnd.snd` and :func:`graphsnd.graph_snd`. The graph is drawn inside the timed
part, and the result is read at its end. Teams are freshly initialised policies on 4096 shared observations. On a CPU at
n = 4, 8 and 16 they are trained policies on n * 4096 observations, those of all agents of a rollout, as in the paper.
On a CPU all calls have one thread: small operations gain nothing from a second one, and wait for it if its core is
busy.

At paper scale a machine without a GPU keeps the GPU times of the last result. Nothing is timed again unless everything
is.

A speed-up is a ratio of mean times, full over sampled, in the same trials; see
:func:`~paper.shared.stopwatch.speedup`. How many trials there are was fixed before measuring.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figures import make_log
from benchmarks.provenance import collect_provenance, describe_hardware
from benchmarks.timing import Clock
from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.plots.style import GREEN, INK, MUTED, ORANGE, VERMILLION, group_look, styled_figure
from paper.control.study import pair
from paper.expanders.ablation import OBSERVATION_SEED, POLICY_SEED, initial_team
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells
from paper.shared.calls import Answers, Call, all_pairs, distance, fused_call, loop_call, loop_mean, some_pairs
from paper.shared.drawing import error_bars
from paper.shared.navigation import checkpoints, snapshot
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import BLOCKS, CPU, Timing, mean_time, speedup, take_turns

GRAPH_SEED = 44
WARM_CALLS, WARM_PAIRS = 3, 50
SMALL, LARGE = (4, 8, 16), (100, 250, 500)  # sizes of the claims about the CPU and about the GPU
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)  # ticks of an axis of speed-ups
P, OBSERVATIONS = 0.1, 4096  # p of the figure, and observations of the paper's sizes from 32 agents on
# Call, label, colour and marker; from slow to fast, in the order of the lines.
LINES = (
    ("loop, all pairs", "Python loop, all pairs", MUTED, "o"),
    (f"loop, p={P:g}", "Python loop, 10% of pairs", ORANGE, "s"),
    ("fused, all pairs", "graphsnd, all pairs", VERMILLION, "D"),
    (f"fused, p={P:g}", "graphsnd, 10% of pairs", GREEN, "^"),
)


@dataclass(frozen=True)
class Size:
    """A team size and how it is timed."""

    n: int
    observations: int = OBSERVATIONS
    trials: int = 20  # trials of the loop
    chances: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 1.0)  # probabilities of a pair
    fused_trials: int = 20  # trials of the fused calls
    trained: bool = False  # whether policies are trained, and measured on observations of their own rollout


@dataclass(frozen=True, kw_only=True)
class Row(Size):
    """One size, timed."""

    calls: dict[str, Timing]  # "loop, all pairs", "loop, p=0.1", "fused, all pairs" and so on

    def ratio(self, above: str, below: str) -> Number:
        """Return how many times faster the second call is in the same trials."""
        return speedup(self.calls[above].seconds, self.calls[below].seconds)

    def sampled(self, way: str, p: float) -> Number:
        """Return the speed-up by sampling in one way, ``"loop"`` or ``"fused"``."""
        return self.ratio(f"{way}, all pairs", f"{way}, p={p:g}")


@dataclass(frozen=True)
class Machine:
    """All sizes on one device."""

    origin: dict[str, Any]  # provenance of the times
    sizes: list[Row]


@dataclass(frozen=True)
class Data:
    """The machines."""

    machines: dict[str, Machine]  # "cpu" and perhaps "gpu"

    @property
    def gpu(self) -> Machine | None:
        """The GPU; None if none was timed."""
        return self.machines.get("gpu")


def _tiny(n: int) -> Size:
    return Size(n, 1024, BLOCKS, (0.1, 1.0), fused_trials=BLOCKS)


_SMALL = tuple(Size(n, n * 4096, trained=True) for n in SMALL)
CPU_SIZES: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (_tiny(4), _tiny(8)),
    Scale.LAPTOP: (*_SMALL, Size(50, trials=10), Size(100, trials=10)),
    # Beyond 16 agents the CPU is our addition; at n = 500 a call of the loop takes 20 s.
    Scale.PAPER: (*_SMALL, Size(50, trials=10), Size(100, trials=10), Size(500, trials=5, chances=(0.1,))),
}
# The loop takes a tenth of a millisecond for each of the 124 750 pairs at n = 500, and 15 minutes for the paper's 20
# trials of all chances; each of its blocks is a cell, so that they can be measured one by one.
GPU_SIZES: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (_tiny(8),),
    Scale.LAPTOP: (Size(4), Size(16), Size(64, trials=5), Size(100, trials=3)),
    Scale.PAPER: tuple(Size(n) for n in (4, 8, 16, 32, 64, 100, 250, 500)),
}

SIZES = {"cpu": CPU_SIZES, "gpu": GPU_SIZES}


def run(scale: Scale, cells: Cells) -> Outcome:
    """Time every size on this machine's CPU and GPU; at paper scale keep earlier times unless ``again`` is set."""
    devices = {"cpu": CPU} | ({"gpu": torch.device("cuda")} if torch.cuda.is_available() else {})
    earlier = cells.earlier(Data) if scale is Scale.PAPER else None
    machines = dict(earlier.machines) if earlier else {}
    sources = ("results/timing/paper.json",) if machines else ()
    for name in [name for name in devices if cells.again or name not in machines]:
        sizes, origin = SIZES[name][scale], collect_provenance("python -m paper run timing", GRAPH_SEED)
        machines[name] = Machine(origin, [time_size(size, devices[name], cells, scale) for size in sizes])
    data = Data(machines)
    return Outcome(data, summarise(data), (POLICY_SEED, OBSERVATION_SEED, GRAPH_SEED), sources)


def time_size(size: Size, device: torch.device, cells: Cells, scale: Scale) -> Row:
    """Time one size in blocks of trials, a cell each."""
    name = "gpu" if device.type == "cuda" else "cpu"
    settings = asdict(size) | {"maker": describe_hardware()[name]}  # a cell from a different machine is made again
    part = replace(size, trials=size.trials // BLOCKS, fused_trials=size.fused_trials // BLOCKS)
    make = lru_cache(lambda: make_team(size, device, cells, scale))

    def time_block(seed: int) -> Row:
        return measure(part, make(), seed)

    blocks = [
        cells.get(f"{name},n={size.n},block={block}", settings | {"graph_seed": seed}, partial(time_block, seed), Row)
        for block, seed in enumerate(range(GRAPH_SEED, GRAPH_SEED + BLOCKS))
    ]
    calls = {}
    for call in blocks[0].calls:
        parts = [block.calls[call] for block in blocks]
        calls[call] = Timing([s for part in parts for s in part.seconds], [p for part in parts for p in part.pairs])
    return Row(**vars(size), calls=calls)


def measure(size: Size, team: Gaussian, seed: int = GRAPH_SEED) -> Row:
    """Time all calls at one size.

    Args:
        size: Size of the team, and number of repetitions.
        team: Team on a CPU, where one thread is used, or on a GPU.
        seed: Seed of the graphs.

    Example:
        >>> calls = measure(Size(4, 16, 2, (0.5,)), initial_team(4, observations=16)).calls
        >>> list(calls)[:2], calls["loop, all pairs"].pairs
        (['loop, all pairs', 'loop, p=0.5'], [6, 6])
    """
    device = team.loc.device
    loops, fused = loop_calls(team, size, seed), fused_calls(team, size, seed)
    with one_thread() if device.type == "cpu" else nullcontext():
        _warm(team, fused)
        trials = dict.fromkeys(loops, size.trials) | dict.fromkeys(fused, size.fused_trials)
        return Row(**vars(size), calls=take_turns(loops | fused, trials=trials, clock=Clock(device, wall=True)))


def loop_calls(team: Gaussian, size: Size, seed: int = GRAPH_SEED) -> dict[str, Call]:
    """Return the paper's calls: a Python loop over all pairs, or over the edges of a graph that is drawn first."""
    mean = partial(loop_mean, partial(distance, Answers.of(team)))
    pairs, generator = all_pairs(size.n), np.random.default_rng(seed)
    everyone = pairs.tolist()
    calls = {"loop, all pairs": loop_call(mean, lambda: everyone)}
    for p in size.chances:
        calls[f"loop, p={p:g}"] = loop_call(mean, partial(some_pairs, pairs, p, generator))
    return calls


def fused_calls(team: Gaussian, size: Size, seed: int = GRAPH_SEED) -> dict[str, Call]:
    """Return the library's own calls, with the graph drawn on the team's device."""
    generator = torch.Generator(team.loc.device).manual_seed(seed)
    calls = {"fused, all pairs": fused_call(team)}
    for p in size.chances:
        calls[f"fused, p={p:g}"] = fused_call(team, partial(graphs.bernoulli, size.n, p, seed=generator))
    return calls


def make_team(size: Size, device: torch.device, cells: Cells, scale: Scale) -> Gaussian:
    """Return the team of a size on its observations, trained if the size asks for it."""
    if size.trained:
        kept = snapshot(scale, cells, size.n, checkpoints(scale)[-1])
        with torch.no_grad():
            team = kept.team.evaluate(kept.observations)
    else:
        team = initial_team(size.n, observations=size.observations)
    assert isinstance(team, Gaussian)
    return Gaussian(team.loc.to(device).contiguous(), team.scale.to(device).contiguous())


def _warm(team: Gaussian, fused: dict[str, Call]) -> None:
    """Compile and fill caches: the fused calls as they are, the loop on its first pairs, which are like the others."""
    apart, first = partial(distance, Answers.of(team)), all_pairs(team.agents)[:WARM_PAIRS].tolist()
    for _ in range(WARM_CALLS):
        loop_mean(apart, first)
        for call in fused.values():
            call()


def summarise(data: Data) -> dict[str, Number | None]:
    """Return every number whose sizes were timed."""
    cpu, gpu = ([] if name not in data.machines else data.machines[name].sizes for name in ("cpu", "gpu"))
    by_size, on_gpu = ({row.n: row for row in rows} for rows in (cpu, gpu))
    numbers: dict[str, Number | None] = {}
    if all(n in by_size for n in SMALL):
        numbers |= _small_numbers([by_size[n] for n in SMALL])
    if all(n in on_gpu for n in LARGE):
        numbers |= _large_numbers([on_gpu[n] for n in LARGE])
    if 100 in by_size:
        numbers["cpu_fused_speedup_n100"] = by_size[100].sampled("fused", 0.1)
        numbers["cpu_exact_fused_advantage_n100"] = by_size[100].ratio("loop, p=0.1", "fused, all pairs")
    if 500 in on_gpu:
        numbers["gpu_loop_speedup_n500"] = on_gpu[500].sampled("loop", 0.1)
        numbers["gpu_fused_speedup_n500"] = on_gpu[500].sampled("fused", 0.1)
        numbers["exact_fused_advantage_n500"] = on_gpu[500].ratio("loop, p=0.1", "fused, all pairs")
    return numbers


def _small_numbers(rows: list[Row]) -> dict[str, Number]:
    tenth, all_of_them = ([row.sampled("loop", p) for row in rows] for p in (0.1, 1.0))
    # How much faster a graph with more pairs is: above 1 when a speed-up does not fall with p.
    steps = [row.ratio(f"loop, p={p:g}", f"loop, p={q:g}") for row in rows for p, q in pairwise(row.chances)]
    return {
        "cpu_loop_speedup_p01": Number.timed(tenth, "sizes", pick=statistics.median),
        "cpu_loop_speedup_p01_least": Number.timed_range(tenth, "sizes", pick=min),
        "cpu_loop_speedup_p1": Number.timed(all_of_them, "sizes", pick=statistics.fmean),
        "cpu_loop_step_ratio": Number.timed(steps, "steps", pick=max),
    }


def _large_numbers(rows: list[Row]) -> dict[str, Number]:
    law = [law_error(row.sampled("loop", p), p) for row in rows for p in row.chances]
    seconds, sampled = (rows[-1].calls[f"loop, {which}"].seconds for which in ("all pairs", "p=0.1"))
    return {
        "gpu_loop_law_error": Number.timed(law, "cells", pick=max),
        "gpu_loop_exponent": fit_exponent(rows),
        "gpu_loop_seconds_n500": mean_time(seconds),
        "gpu_sampled_seconds_n500": mean_time(sampled),
    }


def fit_exponent(rows: list[Row]) -> Number:
    """Return the slope of the loop's log time against the log number of pairs, by least squares in blocks of trials."""
    timed = [row.calls["loop, all pairs"].seconds for row in rows]
    x, blocks = [math.log(math.comb(row.n, 2)) for row in rows], min(BLOCKS, *map(len, timed))
    means = zip(*([float(part.mean()) for part in np.array_split(each, blocks)] for each in timed), strict=True)
    fitted = pair([statistics.linear_regression(x, [math.log(mean) for mean in each]).slope for each in means])
    if fitted.interval is None:
        return Number(fitted.mean, kind="one block of trials", clock=True)
    return replace(fitted.interval, kind=f"95% t interval, {blocks} blocks of trials", clock=True)


def law_error(ratio: Number, p: float) -> Number:
    """Return how far p times a speed-up is from 1, with its interval."""
    ends = [ratio.value if end is None else end for end in (ratio.low, ratio.high)]
    far = [abs(p * end - 1) for end in ends]
    return Number(abs(p * ratio.value - 1), 0.0 if p * ends[0] <= 1 <= p * ends[1] else min(far), max(far))


def draw(data: Data) -> Figure:
    """Draw the speed-up of the loop by sampling against p, and the time of a call against n on each machine."""
    machines = dict(sorted(data.machines.items()))  # the CPU first
    with styled_figure(4.9 * (1 + len(machines)), 4.6) as figure:
        first, *others = figure.subplots(1, 1 + len(machines))
        _draw_against_p(first, machines)
        for ax, (name, machine) in zip(others, machines.items(), strict=True):
            ax.sharey(others[0])  # before drawing, so that the limits have room for both
            _draw_times(ax, machine)
            ax.set_title(machine.origin["hardware"]["gpu"] if name == "gpu" else "CPU, 1 thread")
        for ax in (first, *others):
            ax.grid()
        figure.legend(*others[0].get_legend_handles_labels(), ncols=len(LINES), loc="outside lower center")
        return figure


def _draw_against_p(ax: Axes, machines: dict[str, Machine]) -> None:
    """Draw the loop: a line for each size on the CPU with several chances, and one for the largest on the GPU."""
    rows = [row for row in machines["cpu"].sizes if len(row.chances) > 1]
    chances = sorted({p for row in rows for p in row.chances})
    ax.plot(chances, [1 / p for p in chances], "--", color=INK, linewidth=1.1, label="1/p", zorder=1)
    labels = [f"n = {row.n}" for row in rows]
    if "gpu" in machines:
        rows.append(machines["gpu"].sizes[-1])
        labels.append(f"n = {rows[-1].n}, GPU")
    for k, (row, label) in enumerate(zip(rows, labels, strict=True)):
        shift = 1 + 0.03 * (k - (len(rows) - 1) / 2)  # side by side, so that every interval is visible
        colour, marker = group_look(k)
        x, numbers = [p * shift for p in row.chances], [row.sampled("loop", p) for p in row.chances]
        error_bars(ax, x, numbers, color=colour, marker=marker, label=label)
    make_log(ax, chances, TICKS)
    ax.set(xlabel="chance of a pair, p", title="Python loop: what a graph saves, by p")
    ax.set_ylabel("all pairs / sampled, with interval  [times]")
    ax.legend()


def _draw_times(ax: Axes, machine: Machine) -> None:
    """Draw the time of the four calls."""
    sizes = [row for row in machine.sizes if P in row.chances]
    for call, label, colour, marker in LINES:
        times = [row.calls[call].number(1000) for row in sizes]
        error_bars(ax, [row.n for row in sizes], times, color=colour, marker=marker, label=label)
    make_log(ax, [row.n for row in sizes])
    few = max((row.n for row in sizes if row.trained), default=0)
    ax.set(xlabel=f"agents, n (trained up to {few}, on n x as many observations)" if few else "agents, n")
    ax.set(ylabel="time of a call, median and quartiles  [ms]")


TITLE = "Time of a metric call: loop over pairs against fused kernel"
EXPERIMENT = Experiment("timing", TITLE, run, draw, Data, on_gpu=("gpu",))
