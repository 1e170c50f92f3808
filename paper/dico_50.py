"""Fifty agents at three diversities, all pairs against Bernoulli-0.1, audited (section 6.2, appendix D).

At paper scale the logs of the committed runs are read, and a machine with a GPU trains the missing runs. At the other
scales a smaller study is trained, with the same arms in a team of six. Diversity is estimated on all observations of a
minibatch, as in the published runs. Runs at one target use a hundredth of the observations, to see whether that is as
good. They have a third arm, which is not in the paper and compares four random agents at every observation.

The metric by itself needs no training of fifty agents and is timed at its full size, in a loop and fused. Controllers
that are wrong on purpose show which faults the tracking error and the audit detect. The author's two grids are
compared with our runs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch

from graphsnd.designs.design import Bernoulli
from graphsnd.rl import PRESETS, Settings, Task
from graphsnd.rl.log import run_folder
from paper import dico_10
from paper.control import actions, author, calls, faulty_controllers
from paper.control import study as control
from paper.control.actions import ActionDiversity
from paper.control.calls import Iteration, MetricTimes
from paper.control.faulty_controllers import DOUBLED, FaultyStudy
from paper.control.figure import draw_study
from paper.control.logs import gather_runs, group_by, name_sources, train_small
from paper.control.study import REFERENCE, control_task
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells, Stacks
from paper.shared.rollouts import one_thread

AGENTS, P = 50, 0.1
BERNOULLI, THIRD = "bernoulli:0.1", "agents:4"
NAMES = {REFERENCE: "full", BERNOULLI: "bernoulli"}  # the paper's arms in the names of numbers
TARGETS, ARMS = (0.12, 0.14, 0.15), (REFERENCE, BERNOULLI, THIRD)
PUBLISHED, SEEDS = PRESETS["dispersion-50"].settings, (0, 1, 2)
FULL = PUBLISHED.replace(observations=PUBLISHED.minibatch * AGENTS)
# Folders of logs, and the task that was trained in each.
ECONOMICAL: Stacks = {"control/n50": control_task(AGENTS, (0.12,), ARMS, SEEDS, settings=PUBLISHED)}
# On all observations one run keeps a GPU busy, so several at once would save no time.
WHOLE: Stacks = {
    f"control/n50-full/{run_folder(run)}": control_task(
        AGENTS, (run.target or 0,), (run.arm,), (run.seed,), settings=FULL
    )
    for seed in SEEDS
    for target in TARGETS
    for run in control_task(AGENTS, (target,), (BERNOULLI, REFERENCE), (seed,), settings=FULL).runs()
}
PAPER_MS = {REFERENCE: 18.9, BERNOULLI: 2.0}  # milliseconds of a call, Table 7
Cell = tuple[str, float]  # an arm and a target
BANDS = (0.03, 0.025, 0.02)  # relative distances from the target within which a cell is settled; the paper names none
# Observations of many episodes differ little from one iteration to the next, as in the published runs.
FAULTY = dico_10.SMALL.replace(iterations=20, environments=16, minibatch=400, epochs=5, learning_rate=5e-5)
FAULTY_AGENTS, FAULTY_TARGET = 4, 0.12


@dataclass(frozen=True)
class Size:
    """A study and the size of its other measurements."""

    task: Task
    window: int
    faulty: Settings
    faulty_window: int
    loop: int  # observations in the loop over pairs
    trials: int


SIZES = {
    Scale.SMOKE: Size(control_task(6, TARGETS, ARMS, (0,), settings=dico_10.TINY), 2, dico_10.TINY, 2, 200, 1),
    Scale.LAPTOP: Size(
        control_task(6, TARGETS, ARMS, (0, 1), settings=dico_10.SMALL.replace(iterations=25)),
        10, FAULTY, 10, 4096, 25,
    ),
    Scale.PAPER: Size(
        control_task(AGENTS, TARGETS, tuple(NAMES), SEEDS, settings=FULL),
        50, FAULTY.replace(iterations=60), 20, 4096 * AGENTS, 20,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Data:
    """The data of the figure and of the numbers; fields that smoke scale leaves out are None."""

    study: control.Study
    actions: tuple[ActionDiversity, ...]
    faulty: FaultyStudy
    timed: MetricTimes | None = None
    iteration: Iteration | None = None  # times of the runs by the paper's protocol
    smaller: Iteration | None = None  # times of the runs with ten agents
    on_gpu: MetricTimes | None = None  # times of the loop on a GPU, as in the paper
    twins: tuple[control.Twin, ...] = ()  # runs on all observations, and the same on some


def run(scale: Scale, cells: Cells) -> Outcome:
    """Read the existing runs, or train a smaller study; then take the other measurements."""
    size, more = SIZES[scale], dict[str, Any]()
    if scale is Scale.PAPER:
        (full, folders), (few, others) = (gather_runs(each, cells) for each in (WHOLE, ECONOMICAL))
        study = control.summarise_study(size.task, size.window, full, control.describe_protocol(size.task))
        more["twins"] = control.compare_protocols(full, few, size.window)
        more["iteration"] = None if study.missing else calls.time_iterations(full, BERNOULLI)
        ten, beside = gather_runs(dico_10.WHOLE, cells)
        more["smaller"] = calls.time_iterations(ten, BERNOULLI) if ten else None
        ratios = [action for folder in folders for action in actions.read_actions(folder)]
        earlier, sources = cells.earlier(Data), (*name_sources(folders + others + beside, cells), "results/author")
        if torch.cuda.is_available() and (cells.again or not (earlier and earlier.on_gpu)):
            make_times = partial(calls.time_calls, **_timed(size), device=torch.device("cuda"))
            more["on_gpu"] = cells.get("timed on a GPU", _timed(size), make_times, MetricTimes)
        elif earlier and earlier.on_gpu:
            more["on_gpu"], sources = earlier.on_gpu, (*sources, "results/dico-50/paper.json")
    else:
        histories, folders = train_small(size.task, cells)
        study = control.summarise_study(size.task, size.window, histories)
        make = partial(actions.write_actions, folders[0])
        with one_thread():
            ratios = cells.get("actions", size.task.to_dict(), make, list[ActionDiversity])
        sources = name_sources(folders, cells)
    data = Data(study, tuple(ratios), *_measure_beside(scale, size, cells), **more)
    return Outcome(data, summarise(data, scale), study.seeds, sources)


def _timed(size: Size) -> dict[str, Any]:
    fused = PUBLISHED.observations
    return {"agents": AGENTS, "arms": [BERNOULLI], "loop": size.loop, "fused": fused, "trials": size.trials}


def _measure_beside(scale: Scale, size: Size, cells: Cells) -> tuple[Any, ...]:
    """Measure the faulty controllers and the times, which every scale measures on this machine."""
    about: dict[str, Any] = {"agents": FAULTY_AGENTS, "target": FAULTY_TARGET, "window": size.faulty_window}
    make = partial(faulty_controllers.run_faulty_study, settings=size.faulty, **about)
    faulty = cells.get("faulty", {**about, **asdict(size.faulty)}, make, FaultyStudy)
    if scale is Scale.SMOKE:
        return (faulty,)
    timed = _timed(size)
    return faulty, cells.get("timed", timed, partial(calls.time_calls, **timed), MetricTimes)


def summarise(data: Data, scale: Scale) -> dict[str, Number | None]:
    """Return the numbers of a study and of the other measurements."""
    study, wrong = data.study, data.faulty.run(DOUBLED)
    both = [run for run in study.runs if run.arm in NAMES]
    grid = {} if study.missing else compare_arms(study) | _actions(data.actions)
    kind = f"reads {data.faulty.factor:g} times what is there, {data.faulty.agents} agents"
    return {
        **control.mention_protocol(grid, study, AGENTS),
        **_costs(data),
        "rollout_difference": compare_starts(both),
        "shortcut_reward_difference": control.average_twins(data.twins),
        "shortcut_audit_difference": control.average_twins(data.twins, "audit_error"),
        "wrong_estimator_tracking_error": Number(wrong.tracking_error, kind=kind),
        "wrong_estimator_audit_error": Number(wrong.audit_error, kind=kind),
        **(pool(both) if scale is Scale.PAPER and grid else {}),
    }


def pool(runs: Sequence[control.RunSummary]) -> dict[str, Number | None]:
    """Return the numbers of our grid beside the author's two, and of all three pooled, each grid with its own seeds."""
    first, second = author.read_grids()
    every: list[control.Rewarded] = [*runs, *first, *second]
    return {
        "second_grid_reward": control.compare_seeds(second, BERNOULLI),
        "pooled_reward": control.compare_seeds(every, BERNOULLI),
        "pooled_smallest_step": find_smallest_step(every),
        **author.compare_values(runs, (first, second)),
        **author.time_iterations(second),
    }


def compare_arms(study: control.Study) -> dict[str, Number]:
    """Return the numbers from the logs of the paper's two arms."""
    both = [run for run in study.runs if run.arm in NAMES]
    cells = control.group_arms(both)
    gap = _pick_least(_match(both, "tracking_error"))
    steps = {"smallest_tracking_gap": gap, "smallest_reward_step": find_smallest_step(both)}
    return {**_errors(cells), **steps, "settling_iteration": _settle(study), **_rewards(cells), **_pairs(both)}


def _errors(cells: Sequence[control.ArmSummary]) -> dict[str, Number]:
    what = f"targets, {cells[0].seeds} seeds"
    numbers = {}
    for arm, name in NAMES.items():
        mine = [cell for cell in cells if cell.arm == arm]
        numbers[f"largest_tracking_error_{name}"] = Number.range([cell.mean("tracking_error") for cell in mine], what)
        numbers[f"largest_audit_error_{name}"] = Number.range([cell.mean("audit_error") for cell in mine], what)
    absolute = [cell.mean("absolute_audit_error") for cell in cells if cell.arm == BERNOULLI]
    apart = [cell.mean("audit_minus_applied") for cell in cells]
    # Table 7 has the mean of the applied signal and its standard error over seeds.
    off = [abs(cell.mean("applied") / cell.target - 1) for cell in cells]
    sem = [control.standard_error([run.applied for run in cell.runs]) for cell in cells]
    if known := [error for error in sem if error]:
        numbers["applied_largest_sem"] = Number.range(known)
    return numbers | {
        "applied_off_target": Number.range(off),
        "largest_absolute_audit_error_bernoulli": Number.range(absolute, what),
        "largest_audit_minus_applied": Number.range([abs(value) for value in apart]),
        "smallest_audit_minus_applied": Number.range(apart, pick=min),
    }


def _pair(runs: Sequence[control.Rewarded], field: str, cell: Cell, other: Cell) -> control.Paired:
    """Return the paired differences between two cells, seed by seed."""
    values = {(run.arm, run.target, run.seed): getattr(run, field) for run in runs}
    return control.pair([value - values[(*other, key[2])] for key, value in values.items() if key[:2] == cell])


def _match(runs: Sequence[control.Rewarded], field: str) -> dict[str, control.Paired]:
    """Return the paired differences between Bernoulli and full at every target."""
    targets = sorted({run.target for run in runs if run.target is not None})
    return {f"target {one:g}": _pair(runs, field, (BERNOULLI, one), (REFERENCE, one)) for one in targets}


def _pick_least(pairs: Mapping[str, control.Paired]) -> Number:
    """Return the pair with the least mean, with its interval where there is one."""
    name, least = min(pairs.items(), key=lambda item: item[1].mean)
    number = least.interval or Number(least.mean)
    return replace(number, kind=f"least of {len(pairs)}, {name}; {number.kind}")


def find_smallest_step(runs: Sequence[control.Rewarded]) -> Number:
    """Return the smallest increase of reward from one target to the next, over both arms, with its interval."""
    steps = {
        f"{NAMES[arm]}, {before:g} to {after:g}": _pair(runs, "reward", (arm, after), (arm, before))
        for arm in NAMES
        for before, after in itertools.pairwise(sorted({run.target for run in runs if run.target is not None}))
    }
    return _pick_least(steps)


def _settle(study: control.Study) -> Number:
    """Return the iteration at which the slowest cell settles in the middle band; the ends are the other two bands."""
    after = study.iterations + 1  # counts for a cell that is outside at the end
    curves = [curve for curve in study.curves if curve.arm in NAMES]
    # Iterations count from 1, so `or` replaces only None.
    slowest = [max(control.find_settling(curve, band) or after for curve in curves) for band in BANDS]
    kind = f"slowest of {len(curves)} cells; within {', '.join(f'{band:.1%}' for band in BANDS)}: {slowest}"
    return Number(slowest[1], slowest[0], slowest[2], kind=kind)


def _rewards(cells: Sequence[control.ArmSummary]) -> dict[str, Number]:
    numbers, rewards = {}, {}
    for cell in cells:
        name, error = f"reward_{NAMES[cell.arm]}_{round(100 * cell.target):03}", cell.reward_sem
        kind = f"one standard error either way, {cell.seeds} seeds"
        rewards[cell.arm, cell.target] = reward = cell.mean("reward")
        numbers[name] = Number(reward) if error is None else Number.around(reward, error, kind)
    # Rewards of a tiny run may be 0.
    pairs = [(reward, rewards[REFERENCE, target]) for (arm, target), reward in rewards.items() if arm == BERNOULLI]
    gaps = [abs(sparse / full - 1) for sparse, full in pairs if sparse and full]
    halves = [run.reward_halves for cell in cells if cell.arm == REFERENCE for run in cell.runs]
    grown = [abs(late / early - 1) for early, late in halves if early]
    for name, values, what in (("largest_reward_gap", gaps, "targets"), ("late_reward_growth", grown, "runs")):
        if values:
            numbers[name] = Number.range(values, what)
    return numbers


def _pairs(runs: Sequence[control.RunSummary]) -> dict[str, Number]:
    paired = control.compare_rewards(runs, BERNOULLI)
    if paired is None or paired.interval is None or paired.sem is None:
        return {}
    kind = f"{len(paired.differences)} pairs"
    by_seed = control.compare_seeds(runs, BERNOULLI)
    numbers = {} if by_seed is None else {"paired_reward_by_seed": by_seed}
    numbers |= {"paired_reward_difference": paired.interval, "paired_reward_sem": Number(paired.sem, kind=kind)}
    # Fewer than six pairs cannot reject at 5% even if all have the same sign, so a large p would be no finding.
    if paired.sign_p is not None and sum(map(bool, paired.differences)) >= 6:
        numbers["sign_test_p"] = Number(paired.sign_p, kind=f"exact, two-sided, {kind}")
    spread = _spread_between_seeds(runs)
    if spread:
        apart = [one.interval for one in _match(runs, "reward").values() if one.interval]
        largest = max(apart, key=lambda one: abs(one.value))
        value, low, high = (end / spread for end in (largest.value, largest.low or 0.0, largest.high or 0.0))
        kind = f"largest of {len(apart)} targets; {largest.kind}"
        numbers["difference_over_seed_sd"] = Number(value, low, high, kind=kind)
    return numbers


def _spread_between_seeds(runs: Sequence[control.RunSummary]) -> float | None:
    """Return the standard deviation of reward between seeds, pooled over arms and targets, which share the seeds."""
    cells = group_by(runs, lambda run: (run.arm, run.target)).values()
    variances = [statistics.variance([run.reward for run in cell]) for cell in cells if len(cell) > 1]
    return math.sqrt(statistics.fmean(variances)) if variances else None


def compare_starts(runs: Sequence[control.RunSummary]) -> Number | None:
    """Return the largest difference of rewards in the second iteration between matched runs of both arms.

    None if rewards agree although policies differ: then rewards are too coarse to show a difference.
    """
    full = {(run.target, run.seed): run for run in runs if run.arm == REFERENCE}
    pairs = [(run, full.get((run.target, run.seed))) for run in runs if run.arm == BERNOULLI]
    long = [(a, b) for a, b in pairs if b is not None and min(len(a.first_rewards), len(b.first_rewards)) == 2]
    if not long:
        return None
    rewards = max(abs(a.first_rewards[1] - b.first_rewards[1]) for a, b in long)
    audits = max(abs(a.first_audits[1] - b.first_audits[1]) for a, b in long)
    return None if rewards == 0 and audits > 0 else Number(rewards, kind="largest of matched runs")


def _actions(measured: Sequence[ActionDiversity]) -> dict[str, Number]:
    ratios = [action.ratio for action in measured if action.target is not None]
    return {"environment_over_controlled": Number.range(ratios, "teams", pick=statistics.fmean)} if ratios else {}


def _costs(data: Data) -> dict[str, Number]:
    shares = {"mean_edges": Bernoulli(P).pairs(AGENTS), "arithmetic_share": calls.arithmetic_share(AGENTS)}
    numbers = {name: Number(value) for name, value in shares.items()}
    if data.timed is not None:
        for way, times in (("loop", data.timed.loop), ("fused", data.timed.fused)):
            numbers[f"{way}_metric_speedup"] = calls.compute_speedups(times)[BERNOULLI]
    if (one := data.iteration) is not None:
        kind = "median over iterations and runs, one estimate a step"
        numbers["iteration_seconds"] = Number(one.seconds, unit="s", kind=kind)
        numbers["estimate_share"] = Number(one.estimates, kind=kind)
        numbers["fused_metric_speedup"] = Number(one.metric_speedup, unit="x", kind=kind)
    if data.iteration is not None and data.smaller is not None:
        numbers["metric_share_growth"] = Number(data.iteration.metric / data.smaller.metric, unit="x", kind="medians")
    if data.on_gpu is not None:
        over = [data.on_gpu.loop[arm].number(1000).value / paper for arm, paper in PAPER_MS.items()]
        numbers["loop_time_over_paper"] = Number.range(over, "calls, full and Bernoulli", unit="x")
    return numbers


TITLE = "Fifty agents at three diversities, full against sampled"
STACKS = {**ECONOMICAL, **WHOLE}
EXPERIMENT = Experiment(
    "dico-50", TITLE, run, lambda data: draw_study(data.study, data.faulty), Data, STACKS, ("on_gpu",)
)
