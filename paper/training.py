"""One hundred agents in training: SND over all pairs and over a Bernoulli-0.1 graph, every 25 iterations (section 6.1).

At paper scale the log of the committed run is read (three seeds on a GPU), and its first and last teams are measured
again; a machine with a GPU trains the run if it is missing. At the other scales a shorter training is run. The gap
between the two curves is compared with the expected gap: the standard error of one draw of the graph is known exactly.

Policies are compared on the observations of all agents, as equation (1) says. The comparison of the paper's log, each
policy on its own observations, is reported too.

The published SND ends at 0.139 and ours does not. The published code stores actions after clipping them to the box,
with the log-probabilities of the unclipped actions. Trials do the same, and measure SND in both ways.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from graphsnd.metric import pairwise, snd
from graphsnd.plots.style import FAINT, INK, MUTED, group_look, styled_figure
from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.rl.diversity import DiversityLog
from graphsnd.rl.independent import IndependentPolicy
from graphsnd.rl.log import read_rows
from graphsnd.rl.method import Method
from graphsnd.rl.rollout import RolloutBuffer
from graphsnd.rl.streams import Streams
from graphsnd.rl.trainer import independent
from graphsnd.rl.worlds import World
from graphsnd.teams import StackedTeam
from graphsnd.teams.team import Team
from paper.experiment import Z95, Experiment, Number, Outcome, Scale
from paper.runner import Cells, gather_stacks, train_cell
from paper.shared.calls import Answers, all_pairs, distance, loop_call, loop_mean, some_pairs
from paper.shared.expected import bernoulli_error
from paper.shared.rollouts import as_gaussian, observe, on_own, one_thread, pooled
from paper.shared.stopwatch import Timing, speedup, take_turns

COMMITTED = "training/navigation-100"
ROLLOUT_SEED, GRAPH_SEED = 42, 88

_NAVIGATION = PRESETS["navigation-100"]
_TABLE = _NAVIGATION.settings
_TINY = _TABLE.replace(iterations=3, steps=8, environments=4, minibatch=16, diversity_every=1)
# As many updates of an iteration as the paper has, on a quarter of the samples.
_SHORT = _TABLE.replace(iterations=100, environments=8, minibatch=128, diversity_every=5)


@dataclass(frozen=True)
class Size:
    """A training, and how its teams are measured."""

    agents: int
    settings: Settings
    observations: int = 4096
    trials: int = 20  # timed trials for each seed


SIZES = {
    Scale.SMOKE: Size(10, _TINY, 64, 3),
    Scale.LAPTOP: Size(100, _SHORT),
    Scale.PAPER: Size(100, _TABLE),
}
STACKS: Mapping[str, Task] = {COMMITTED: Task(_NAVIGATION.world, 100, _NAVIGATION.options, (0, 1, 2), settings=_TABLE)}
# The published code stores clipped actions, averages losses over agents and clips the norm of all gradients together.
CLIPPED, AS_PUBLISHED = "clipped", "clipped, joint"
TRIALS: dict[str, Settings] = {CLIPPED: _TABLE, AS_PUBLISHED: _TABLE.replace(joint=True)}
# From the published log: SND by iteration, and the entropy of the policies at the end.
PUBLISHED_SND, PUBLISHED_ENTROPY = {1: 0.040, 50: 0.185, 500: 0.139}, 1.002


@dataclass(frozen=True)
class LogRow:
    """One measurement of diversity in the log of the training."""

    iteration: int
    seed: int
    reward: float
    snd: float
    graph_snd: float
    snd_seconds: float
    graph_snd_seconds: float

    @property
    def gap(self) -> float:
        """Return Graph-SND / SND - 1."""
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
class TrialRow:
    """A measurement in a trial."""

    trial: str
    iteration: int
    reward: float
    entropy: float
    snd: float
    own_snd: float  # with each policy on its own observations


@dataclass(frozen=True)
class SeedTimes:
    """Calls on the last team of a seed."""

    seed: int
    calls: dict[str, Timing]  # "loop, all" and "loop, graph"

    def speedup(self) -> Number:
        """Return the time of all pairs over that of a graph."""
        full, part = (self.calls[f"loop, {which}"].seconds for which in ("all", "graph"))
        return speedup(full, part, medians=True)


@dataclass(frozen=True)
class Data:
    """The log, and the measurements on its teams."""

    task: dict[str, Any]  # the task in the training's ``about.json``
    probability: float  # edge probability of the graph
    log: list[LogRow]
    ends: list[End]
    times: list[SeedTimes]
    trials: list[TrialRow] = field(default_factory=list)

    def by_seed(self) -> dict[int, list[LogRow]]:
        """Return the measurements of every seed, in order."""
        return {seed: [row for row in self.log if row.seed == seed] for seed in {row.seed: 0 for row in self.log}}


def run(scale: Scale, cells: Cells) -> Outcome:
    """Train, or read the log of the committed run; then measure the first and the last team of every seed."""
    size, sources, trials = SIZES[scale], tuple[str, ...](), list[TrialRow]()
    with one_thread():
        if scale is Scale.PAPER:
            (folder,), task = gather_stacks(STACKS, cells), STACKS[COMMITTED]
            earlier, sources = cells.earlier(Data), (f"results/{COMMITTED}",)
            if torch.cuda.is_available() and (cells.again or not (earlier and earlier.trials)):
                trials = run_trials(cells)
            elif earlier and earlier.trials:
                trials, sources = earlier.trials, (*sources, "results/training/paper.json")
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
    rows = [row for row in read_rows(folder) if row.snd is not None]
    log = [LogRow(**{one.name: getattr(row, one.name) for one in fields(LogRow)}) for row in rows]
    data = Data(task.to_dict(), task.settings.diversity_probability, log, ends, times, trials)
    return Outcome(data, summarise(data), task.seeds, sources)


def run_trials(cells: Cells, trials: Mapping[str, Settings] = TRIALS, device: str = "cuda") -> list[TrialRow]:
    """Train one seed for each trial, a cell each."""
    rows = []
    for name, settings in trials.items():
        task = replace(STACKS[COMMITTED], seeds=(0,), settings=settings)
        cell = name.replace(", ", ",")
        rows += cells.get(cell, task.to_dict(), partial(run_trial, name, task, cells, device), list[TrialRow])
    return rows


def run_trial(name: str, task: Task, cells: Cells, device: str) -> list[TrialRow]:
    """Train with clipped stored actions, and with the log-probabilities of the unclipped ones."""
    trainer = Trainer(task.make_world(device), task.settings, seeds=task.seeds, method=store_clipped)
    rows = []
    for _ in range(task.settings.iterations):
        (row,) = trainer.step()
        if row.snd is not None and row.entropy is not None:
            cells.step(f"{name}, iteration {row.iteration} of {task.settings.iterations}")
            own = on_own(trainer.team(row.seed), trainer.buffer.observations[0], task.settings.diversity_observations)
            rows.append(TrialRow(name, row.iteration, row.reward, row.entropy, row.snd, float(snd(own))))
    return rows


class ClippedStore(DiversityLog):
    """Clips the stored actions after a rollout, and leaves their log-probabilities as they were."""

    def after_rollout(self, buffer: RolloutBuffer, iteration: int) -> None:
        """Clip the stored actions to the box of the world."""
        buffer.actions.clamp_(-1, 1)


def store_clipped(world: World, settings: Settings, streams: Sequence[Streams], seeds: Sequence[int]) -> Method:
    """Return independent PPO that learns from clipped actions with the probabilities of unclipped ones."""
    method = independent(world, settings, streams, seeds)
    assert isinstance(method.policy, IndependentPolicy)
    return method._replace(companion=ClippedStore(method.policy, seeds, settings))


def fingerprint(folder: Path, seed: int) -> str:
    """Return a fingerprint that distinguishes a team from that of another training in the same folder."""
    return hashlib.sha256((folder / f"seed-{seed}" / "team.safetensors").read_bytes()).hexdigest()[:16]


def make_task(size: Size) -> Task:
    """Return the training of a scale, in the paper's world for 100 agents.

    Example:
        >>> make_task(SIZES[Scale.PAPER]).to_dict()["options"]["agent_radius"]
        0.03
    """
    return Task(_NAVIGATION.world, size.agents, _NAVIGATION.options, (0,), settings=size.settings)


def measure_ends(task: Task, seed: int, folder: Path, size: Size) -> list[End]:
    """Measure the first and the last team of a seed: SND, the error of one draw, and policies on their own."""
    # Weights are drawn on the host, so the policies before the first update are the same on any device.
    first = Trainer(task.make_world("cpu"), task.settings, seeds=(seed,)).team(seed)
    ends = []
    for iteration, team in ((0, first), (task.settings.iterations, last_team(folder, seed))):
        seen = roll_out(task, team, seed)
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
        behavior = as_gaussian(team.evaluate(pooled(roll_out(task, team, seed), size.observations)))
    mean, pairs = partial(loop_mean, partial(distance, Answers.of(behavior))), all_pairs(behavior.agents)
    everyone, generator = pairs.tolist(), np.random.default_rng((GRAPH_SEED, seed))
    calls = {
        "loop, all": loop_call(mean, lambda: everyone),
        "loop, graph": loop_call(mean, partial(some_pairs, pairs, task.settings.diversity_probability, generator)),
    }
    return SeedTimes(seed, take_turns(calls, trials=size.trials, warm=1))


def roll_out(task: Task, team: StackedTeam, seed: int) -> Tensor:
    """Return the observations of a seed's team in one more rollout; see :func:`~paper.shared.rollouts.observe`."""
    return observe(team, task.make_world("cpu"), steps=task.settings.steps, seed=ROLLOUT_SEED + seed)


def last_team(folder: Path, seed: int) -> StackedTeam:
    """Return the team at the end of a run."""
    team = Team.load(folder / f"seed-{seed}")
    assert isinstance(team, StackedTeam)
    return team


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    runs, last = data.by_seed().values(), max(end.iteration for end in data.ends)
    sizes = [abs(row.gap) for row in data.log if row.graph_snd]  # a graph without an edge has no gap
    curves = [[(row.snd, row.graph_snd) for row in rows] for rows in runs if len(rows) > 2]
    likeness = [float(np.corrcoef(np.array(curve).T)[0, 1]) for curve in curves]
    ends, mean = [end for end in data.ends if end.iteration == last], statistics.fmean
    fused = [row.snd_seconds / row.graph_snd_seconds for row in data.log]
    return {
        "largest_gap": Number(max(sizes), kind=f"largest of {len(sizes)}"),
        "curve_correlation": Number.range(likeness, "seeds", pick=min) if likeness else None,
        "snd_growth": Number.range((rows[-1].snd / rows[0].snd for rows in runs), "seeds", pick=min, unit="x"),
        "own_observation_error": Number.range((abs(end.own_snd / end.snd - 1) for end in ends), "seeds", pick=mean),
        "final_snd_own_observations": Number.range((end.own_snd for end in ends), "seeds", pick=mean),
        "fused_speedup": Number.range(fused, "measurements", pick=statistics.median, unit="x"),
        "loop_speedup": Number.timed([times.speedup() for times in data.times], "seeds", pick=statistics.median),
        **_trial_numbers(data.trials),
    }


def _trial_numbers(trials: Sequence[TrialRow]) -> dict[str, Number]:
    rows, alone = ([row for row in trials if row.trial == name] for name in (AS_PUBLISHED, CLIPPED))
    if not rows or not alone:
        return {}
    same = min(rows, key=lambda row: abs(row.entropy - PUBLISHED_ENTROPY))
    kind = f"at iteration {same.iteration}, where the entropy is {same.entropy:.3g}"
    return {
        "final_snd_clipped": Number(rows[-1].own_snd, kind=f"at iteration {rows[-1].iteration}"),
        "final_snd_clipped_alone": Number(alone[-1].own_snd, kind=f"at iteration {alone[-1].iteration}"),
        "matched_snd_clipped": Number(same.own_snd, kind=kind),
    }


def draw(data: Data) -> Figure:
    """Draw curves, gaps and trials."""
    with styled_figure(15.6 if data.trials else 11.0, 4.6) as figure:
        curves, gaps, *trials = figure.subplots(1, 3 if data.trials else 2)
        _draw_curves(curves, data)
        _draw_gaps(gaps, data)
        for ax in trials:
            _draw_trials(ax, data)
        for ax in (curves, gaps, *trials):
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


def _draw_trials(ax: Axes, data: Data) -> None:
    """Draw the measure of the published log, for trials that learn as the published code does, beside that log."""
    plain = data.by_seed()[0]
    x, y = [row.iteration for row in plain], [row.snd for row in plain]
    ax.plot(x, y, "--", color=MUTED, label="stored as drawn (shared observations)")
    for k, name in enumerate(dict.fromkeys(row.trial for row in data.trials)):
        rows = [row for row in data.trials if row.trial == name]
        label = f"stored {name}"
        ax.plot([row.iteration for row in rows], [row.own_snd for row in rows], color=group_look(k)[0], label=label)
    ax.plot(*zip(*PUBLISHED_SND.items(), strict=True), "X", color=INK, markersize=8, label="the published log")
    ax.set_ylim(bottom=0)
    ax.set(ylabel="mean distance on own observations", title="c  Actions stored clipped, as published")
    ax.legend(loc=(0.3, 0.44))
    ax.grid()


TITLE = "One hundred agents in training: sampled against full SND"
EXPERIMENT = Experiment("training", TITLE, run, draw, Data, STACKS, ("trials",))
