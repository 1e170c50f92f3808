"""One hundred agents in training: SND over all pairs and over a Bernoulli-0.1 graph, every 25 iterations (section 6.1).

At paper scale the log of the committed run is read, three seeds on a GPU, and its first and last teams are measured
again; at the others a shorter training is run here. How closely the two curves run is compared with how closely they
should: one draw of the graph has a known standard error, exactly.

Policies are compared on the observations of all agents, as equation (1) says. Beside that stands what the paper's log
compared, each policy on its own observations.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from graphsnd.behavior import Gaussian
from graphsnd.errors import InputError
from graphsnd.metric import pairwise, snd
from graphsnd.plots.style import BLUE, FAINT, INK, VERMILLION, group_look, styled_figure
from graphsnd.storage import read_json
from graphsnd.teams import StackedTeam, Team
from graphsnd.training import PRESETS, Row, Settings, Task, Trainer, read_rows
from graphsnd.training.checkpoint import DESCRIPTION
from paper.cells import Cells
from paper.experiment import Z95, Experiment, Number, Outcome, Scale
from paper.shared.calls import Answers, all_pairs, loop_call, loop_mean, some_pairs
from paper.shared.expected import bernoulli_error
from paper.shared.rollouts import observe, on_own, one_thread, pooled, train_cell
from paper.shared.stopwatch import Timing, take_turns

COMMITTED = "training/navigation-100"
ROLLOUT_SEED, GRAPH_SEED = 42, 88

_TABLE = PRESETS["navigation"].settings


@dataclass(frozen=True)
class Size:
    """A training, and how its teams are measured."""

    agents: int
    settings: Settings
    observations: int = 4096
    trials: int = 7  # of the timing, for each seed


SIZES = {
    Scale.SMOKE: Size(
        10, _TABLE.replace(iterations=3, steps=8, environments=4, minibatch=16, diversity_every=1), 64, 3
    ),
    # As many updates of an iteration as the paper has, on a quarter of the samples.
    Scale.LAPTOP: Size(
        100, _TABLE.replace(iterations=100, environments=8, minibatch=128, diversity_every=5), trials=11
    ),
    Scale.PAPER: Size(100, _TABLE),
}


@dataclass(frozen=True)
class LogRow:
    """What the training logged when it measured diversity."""

    iteration: int
    seed: int
    reward: float
    snd: float
    graph_snd: float
    snd_seconds: float
    graph_snd_seconds: float

    @property
    def gap(self) -> float:
        """Return Graph-SND over SND less 1."""
        return self.graph_snd / self.snd - 1


@dataclass(frozen=True)
class End:
    """The first or the last team of a seed."""

    seed: int
    iteration: int
    snd: float
    own_snd: float  # with each policy on its own observations
    expected: float  # standard error of one draw of the graph, over SND


@dataclass(frozen=True)
class SeedTimes:
    """Calls on the last team of a seed."""

    seed: int
    calls: dict[str, Timing]  # "loop, all" and "loop, graph"

    def speedups(self) -> list[float]:
        """Return the time of all pairs over that of a graph, trial by trial."""
        full, part = (self.calls[f"loop, {which}"].seconds for which in ("all", "graph"))
        return [above / below for above, below in zip(full, part, strict=True)]


@dataclass(frozen=True)
class Data:
    """The log, and what was measured on its teams."""

    task: dict[str, Any]  # as the training describes itself
    probability: float  # of the graph
    log: list[LogRow]
    ends: list[End]
    times: list[SeedTimes]

    def by_seed(self) -> dict[int, list[LogRow]]:
        """Return the measurements of every seed, in order."""
        return {seed: [row for row in self.log if row.seed == seed] for seed in {row.seed: 0 for row in self.log}}


@dataclass(frozen=True)
class Numbers:
    """What the claims are compared with."""

    largest_gap: Number
    curve_correlation: Number | None  # None for curves of two points
    snd_growth: Number
    own_observation_error: Number
    final_snd_own_observations: Number
    fused_speedup: Number
    loop_speedup: Number


def run(scale: Scale, cells: Cells) -> Outcome[Data, Numbers]:
    """Train, or read the log of the committed run; then measure the first and the last team of every seed."""
    size = SIZES[scale]
    sources = (f"results/{COMMITTED}",) if scale is Scale.PAPER else ()
    with one_thread():
        if sources:
            folder = cells.results / COMMITTED
            task = committed_task(folder)
        else:
            folder, task = cells.folder("training"), make_task(size)
            train_cell(task, cells, "training")
        ends, times = [], []
        for seed in task.seeds:
            about = {**task.to_dict(), "observations": size.observations, "seeds_here": [ROLLOUT_SEED, GRAPH_SEED]}
            about["team"] = fingerprint(folder, seed)
            ends += cells.get(f"ends,seed={seed}", about, partial(measure_ends, task, seed, folder, size), list[End])
            about["trials"] = size.trials
            make = partial(measure_times, task, seed, folder, size)
            times.append(cells.get(f"times,seed={seed}", about, make, SeedTimes))
    rows = [row for row in read_rows(folder, Row) if row.snd is not None]
    log = [LogRow(**{field.name: getattr(row, field.name) for field in fields(LogRow)}) for row in rows]
    data = Data(task.to_dict(), task.settings.diversity_probability, log, ends, times)
    return Outcome(data, summarise(data), task.seeds, sources)


def fingerprint(folder: Path, seed: int) -> str:
    """Return what tells a team from that of another training in the same folder."""
    return hashlib.sha256((folder / f"seed-{seed}" / "team.safetensors").read_bytes()).hexdigest()[:16]


def make_task(size: Size) -> Task:
    """Return the training of a scale, in the paper's world for 100 agents.

    Example:
        >>> make_task(SIZES[Scale.PAPER]).to_dict()["options"]["agent_radius"]
        0.03
    """
    navigation = PRESETS["navigation"]
    return Task(navigation.world, size.agents, navigation.options, (0,), size.settings)


def committed_task(folder: Path) -> Task:
    """Return what the committed run was made from.

    Raises:
        InputError: Where there is no such run.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise InputError("results", f"with the run {COMMITTED}", str(folder), "Run another scale, or fetch results/.")
    return Task.from_dict(read_json(path, DESCRIPTION), path)


def measure_ends(task: Task, seed: int, folder: Path, size: Size) -> list[End]:
    """Measure the first and the last team of a seed: SND, the error of one draw, and policies on their own."""
    # Weights are drawn on the host, so the policies before the first update are those of any device.
    first = Trainer(task.make_world("cpu"), task.settings, seeds=(seed,)).team(seed)
    ends = []
    for iteration, team in ((0, first), (task.settings.iterations, last_team(folder, seed))):
        seen = _observe(task, team, seed)
        with torch.no_grad():
            distances = pairwise(team.evaluate(pooled(seen, size.observations))).double()
        exact = float(distances.sum()) / (len(distances) * (len(distances) - 1))
        own = float(snd(on_own(team, seen, size.observations)))
        expected = bernoulli_error(distances, task.settings.diversity_probability) / exact
        ends.append(End(seed, iteration, exact, own, expected))
    return ends


def measure_times(task: Task, seed: int, folder: Path, size: Size) -> SeedTimes:
    """Time all pairs and a new graph in a Python loop, on the last team of a seed."""
    team = last_team(folder, seed)
    with torch.no_grad():
        behavior = team.evaluate(pooled(_observe(task, team, seed), size.observations))
    if not isinstance(behavior, Gaussian):
        raise InputError("team", "of Gaussian policies", repr(behavior))
    mean, pairs = partial(loop_mean, Answers.of(behavior)), all_pairs(behavior.agents)
    everyone, generator = pairs.tolist(), np.random.default_rng((GRAPH_SEED, seed))
    calls = {
        "loop, all": loop_call(mean, lambda: everyone),
        "loop, graph": loop_call(mean, partial(some_pairs, pairs, task.settings.diversity_probability, generator)),
    }
    return SeedTimes(seed, take_turns(calls, trials=size.trials, warm=1))


def _observe(task: Task, team: StackedTeam, seed: int) -> Tensor:
    return observe(team, task.make_world("cpu"), steps=task.settings.steps, seed=ROLLOUT_SEED + seed)


def last_team(folder: Path, seed: int) -> StackedTeam:
    """Return the team at the end of a run."""
    team = Team.load(folder / f"seed-{seed}")
    if not isinstance(team, StackedTeam):
        raise InputError("team", "of stacked policies", repr(team))
    return team


def summarise(data: Data) -> Numbers:
    """Return the numbers of a run."""
    runs, last = data.by_seed().values(), max(end.iteration for end in data.ends)
    sizes = [abs(row.gap) for row in data.log if row.graph_snd]  # a graph without an edge has no gap
    curves = [[(row.snd, row.graph_snd) for row in rows] for rows in runs if len(rows) > 2]
    likeness = [float(np.corrcoef(np.array(curve).T)[0, 1]) for curve in curves]
    ends = [end for end in data.ends if end.iteration == last]
    return Numbers(
        largest_gap=Number(max(sizes), kind=f"largest of {len(sizes)}"),
        curve_correlation=Number.range(likeness, "seeds", pick=min) if likeness else None,
        snd_growth=Number.range((rows[-1].snd / rows[0].snd for rows in runs), "seeds", pick=min, unit="x"),
        own_observation_error=_mean(abs(end.own_snd / end.snd - 1) for end in ends),
        final_snd_own_observations=_mean(end.own_snd for end in ends),
        fused_speedup=_median([row.snd_seconds / row.graph_snd_seconds for row in data.log]),
        loop_speedup=_median([ratio for times in data.times for ratio in times.speedups()]),
    )


def _mean(values: Iterable[float]) -> Number:
    return Number.range(values, "seeds", pick=statistics.fmean)


def _median(values: Sequence[float]) -> Number:
    return Number.range(values, "measurements", pick=statistics.median, unit="x")


def draw(data: Data) -> Figure:
    """Draw curves, gaps and protocols."""
    with styled_figure(15.6, 4.6) as figure:
        curves, gaps, protocols = figure.subplots(1, 3)
        _draw_curves(curves, data)
        _draw_gaps(gaps, data)
        _draw_protocols(protocols, data)
        for ax in (curves, gaps):
            ax.set_xlabel("iteration")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure


def _draw_curves(ax: Axes, data: Data) -> None:
    percent = f"{100 * data.probability:g}%"
    for k, (seed, rows) in enumerate(data.by_seed().items()):
        colour, _ = group_look(k)
        x = [row.iteration for row in rows]
        ax.plot(x, [row.snd for row in rows], color=colour, linewidth=1.8, label=f"seed {seed}, all pairs")
        label = f"seed {seed}, {percent} of pairs"
        sampled = [row.graph_snd for row in rows]
        ax.plot(x, sampled, "o", color=colour, markerfacecolor="white", markersize=5, label=label)
    ax.set_ylim(bottom=0)
    ax.set(ylabel="SND  [action units]", title=f"a  Diversity of {data.task['agents']} agents in training")
    ax.legend(loc="lower right")
    ax.grid()


def _draw_gaps(ax: Axes, data: Data) -> None:
    """Draw the gaps with the band in which 95% of them should lie, from the exact error at both ends."""
    ends = [0, max(end.iteration for end in data.ends)]
    errors = [statistics.fmean(end.expected for end in data.ends if end.iteration == k) for k in ends]
    reach = [100 * Z95 * error for error in errors]
    ax.fill_between(ends, [-r for r in reach], reach, color=FAINT, label="95% of draws, exact", linewidth=0)
    for k, (seed, rows) in enumerate(data.by_seed().items()):
        colour, marker = group_look(k)
        kept = [row for row in rows if row.graph_snd]
        gaps = [100 * row.gap for row in kept]
        ax.plot([row.iteration for row in kept], gaps, marker, color=colour, markersize=5, label=f"seed {seed}")
    ax.axhline(0, color=INK, linewidth=1)
    largest = max(map(abs, ax.get_ylim()))
    ax.set(ylim=(-1.05 * largest, 1.45 * largest), ylabel="Graph-SND / SND - 1  [%]", title="b  Gap between the curves")
    ax.legend(loc="upper left", ncols=4, fontsize=8.5, columnspacing=1.0, handletextpad=0.3)
    ax.grid(axis="y")


def _draw_protocols(ax: Axes, data: Data) -> None:
    """Draw SND as equation (1) has it, and with each policy on its own observations."""
    ends = [0, max(end.iteration for end in data.ends)]
    groups = [[end for end in data.ends if end.iteration == iteration] for iteration in ends]
    together, alone = ([[getattr(end, name) for end in group] for group in groups] for name in ("snd", "own_snd"))
    looks = (
        (together, "all policies on the observations of all (equation 1)", BLUE, "o", -0.176),
        (alone, "each policy on its own observations (the paper's log)", VERMILLION, "s", 0.176),
    )
    for columns, label, colour, marker, shift in looks:
        for place, values in enumerate(columns):
            x, mean = place + shift, statistics.fmean(values)
            ax.bar(x, mean, width=0.3, color=colour, alpha=0.3)
            ax.plot([x] * len(values), values, marker, color=colour, markersize=6, label=None if place else label)
            at = (x, max(values))
            ax.annotate(f"{mean:.3g}", at, (0, 5), textcoords="offset points", ha="center", va="bottom", fontsize=9)
    ax.set_xticks((0, 1), ("before training", f"after {ends[-1]} iterations"))
    ax.set(xlim=(-0.5, 1.5), ylim=(0, 1.3 * max(max(end.snd, end.own_snd) for end in data.ends)))
    ax.set(ylabel="mean distance over all pairs  [action units]", title="c  What is measured: seeds and their mean")
    ax.legend(loc="upper left")
    ax.grid(axis="y")


EXPERIMENT = Experiment(
    "training", "One hundred agents in training: sampled against full SND", run, draw, Data, Numbers
)
