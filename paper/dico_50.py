"""Fifty agents at three diversities, all pairs against Bernoulli-0.1, audited (section 6.2, appendix D).

At paper scale the logs of the committed runs are read, and a machine with a GPU trains those that are missing; at the
others a smaller study is trained here, with the same arms in a team of six. Diversity is estimated on all observations
of a minibatch, as in the published runs. Runs at one target on a hundredth of them tell whether that is as good; they
have a third arm, which the paper does not have and which asks four random agents at every observation.

Some things need no training of fifty agents and are measured at their full size: the metric by itself, in a loop and
fused; the edges of the graphs that training draws; what part of a published step its estimates take. A controller that
is wrong on purpose shows what tracking error and audit can tell.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch

from graphsnd.rl import PRESETS, Settings, Task
from graphsnd.rl.log import run_folder
from paper.control import actions, calls, faulty_controllers
from paper.control import study as control
from paper.control.actions import ActionDiversity
from paper.control.calls import Edges, MetricTimes, StepShare
from paper.control.faulty_controllers import DOUBLED, FaultyStudy
from paper.control.figure import draw_study
from paper.control.logs import gather_runs, group_by, name_sources, train_small
from paper.control.study import REFERENCE, control_task
from paper.dico_10 import SMALL, TINY
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells, Stacks
from paper.shared.rollouts import one_thread

AGENTS, P = 50, 0.1
BERNOULLI, THIRD = "bernoulli:0.1", "agents:4"
NAMES = {REFERENCE: "full", BERNOULLI: "bernoulli"}  # the paper's arms in the names of numbers
TARGETS, ARMS = (0.12, 0.14, 0.15), (REFERENCE, BERNOULLI, THIRD)
PUBLISHED, SEEDS = PRESETS["dispersion-50"].settings, (0, 1, 2)
FULL = PUBLISHED.replace(observations=PUBLISHED.minibatch * AGENTS)
# Folders of logs, and what was trained together.
ECONOMICAL: Stacks = {"control/n50": control_task(AGENTS, (0.12,), ARMS, SEEDS, settings=PUBLISHED)}
# On all observations one run keeps a GPU busy, so that nothing is gained by more of them at once.
WHOLE: Stacks = {
    f"control/n50-full/{run_folder(run)}": control_task(
        AGENTS, (run.target or 0,), (run.arm,), (run.seed,), settings=FULL
    )
    for seed in SEEDS
    for target in TARGETS
    for run in control_task(AGENTS, (target,), (BERNOULLI, REFERENCE), (seed,), settings=FULL).runs()
}
# The paper's Table 7: applied SND with its standard error, and milliseconds of a call. What ours are compared with.
PAPER_APPLIED = {
    (BERNOULLI, 0.12): (0.12032, 1.2e-4), (BERNOULLI, 0.14): (0.140354, 7.3e-5), (BERNOULLI, 0.15): (0.150261, 1.1e-5),
    (REFERENCE, 0.12): (0.12026, 1.0e-4), (REFERENCE, 0.14): (0.140166, 2.5e-5), (REFERENCE, 0.15): (0.150301, 1.5e-5),
}  # fmt: skip
PAPER_MS = {REFERENCE: 18.9, BERNOULLI: 2.0}
# Observations of many episodes differ little from one iteration to the next, as in the published runs.
FAULTY = SMALL.replace(iterations=20, environments=16, minibatch=400, epochs=5, learning_rate=5e-5)
FAULTY_AGENTS, FAULTY_TARGET = 4, 0.12


@dataclass(frozen=True)
class Size:
    """A study and what is measured beside it."""

    task: Task
    window: int
    faulty: Settings
    faulty_window: int
    loop: int  # observations in the loop over pairs
    trials: int
    edges: tuple[int, int]  # seeds and iterations whose graphs are drawn
    frames: int  # of the minibatch in which estimates are timed


SIZES = {
    Scale.SMOKE: Size(control_task(6, TARGETS, ARMS, (0,), settings=TINY), 2, TINY, 2, 200, 1, (1, 2), 2),
    Scale.LAPTOP: Size(
        control_task(6, TARGETS, ARMS, (0, 1), settings=SMALL.replace(iterations=25)),
        10, FAULTY, 10, 4096, 25, (1, 20), 16,
    ),
    Scale.PAPER: Size(
        control_task(AGENTS, TARGETS, tuple(NAMES), SEEDS, settings=FULL),
        50, FAULTY.replace(iterations=60), 20, 4096 * AGENTS, 20, (1, 167), 64,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Data:
    """What the figure draws and the numbers are made of; what smoke scale leaves out is None."""

    study: control.Study
    actions: tuple[ActionDiversity, ...]
    faulty: FaultyStudy
    edges: Edges | None = None
    timed: MetricTimes | None = None
    step: StepShare | None = None
    on_gpu: MetricTimes | None = None  # the loop where the paper timed it
    twins: tuple[control.Twin, ...] = ()  # runs on all observations, and the same on some


def run(scale: Scale, cells: Cells) -> Outcome:
    """Read the runs that are there, or train a smaller study; then measure what is beside it."""
    size, more = SIZES[scale], dict[str, Any]()
    if scale is Scale.PAPER:
        (full, folders), (few, others) = (gather_runs(each, cells) for each in (WHOLE, ECONOMICAL))
        study = control.summarise_study(size.task, size.window, full, control.describe_protocol(size.task))
        more["twins"] = control.compare_protocols(full, few, size.window)
        ratios = [action for folder in folders for action in actions.read_actions(folder)]
        earlier, sources = cells.earlier(Data), name_sources(folders + others, cells)
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
    data = replace(Data(study, tuple(ratios), *_measure_beside(scale, size, cells)), **more)
    return Outcome(data, summarise(data, scale), study.seeds, sources)


def _timed(size: Size) -> dict[str, Any]:
    fused = PUBLISHED.observations
    return {"agents": AGENTS, "arms": [BERNOULLI], "loop": size.loop, "fused": fused, "trials": size.trials}


def _measure_beside(scale: Scale, size: Size, cells: Cells) -> tuple[Any, ...]:
    """Cells that are measured here at every scale: faulty controllers, edges, times, and the share of a step."""
    about: dict[str, Any] = {"agents": FAULTY_AGENTS, "target": FAULTY_TARGET, "window": size.faulty_window}
    make = partial(faulty_controllers.run_faulty_study, settings=size.faulty, **about)
    faulty = cells.get("faulty", {**about, **asdict(size.faulty)}, make, FaultyStudy)
    if scale is Scale.SMOKE:
        return (faulty,)
    seeds, iterations = size.edges
    edges: dict[str, Any] = {"agents": AGENTS, "p": P, "seeds": list(range(seeds)), "iterations": iterations}
    edges["steps"] = PUBLISHED.optimiser_steps
    timed = _timed(size)
    step = {"agents": AGENTS, "frames": size.frames, "steps": 4}
    return (
        faulty,
        cells.get("edges", edges, partial(calls.count_edges, **edges), Edges),
        cells.get("timed", timed, partial(calls.time_calls, **timed), MetricTimes),
        cells.get("step", step, partial(calls.measure_step, **step), StepShare),
    )


def summarise(data: Data, scale: Scale) -> dict[str, Number | None]:
    """Return the numbers of a study and of what was measured beside it."""
    study, wrong = data.study, data.faulty.run(DOUBLED)
    both = [run for run in study.runs if run.arm in NAMES]
    grid = {} if study.missing else compare_arms(study) | _actions(data.actions)
    kind = f"reads {data.faulty.factor:g} times what is there, {data.faulty.agents} agents"
    return {
        **control.mention_protocol(grid, study, AGENTS),
        **_costs(data, in_training=scale is Scale.PAPER),
        "rollout_difference": compare_starts(both),
        "shortcut_reward_difference": control.average_twins(data.twins),
        "shortcut_audit_difference": control.average_twins(data.twins, "audit_error"),
        "wrong_estimator_tracking_error": Number(wrong.tracking_error, kind=kind),
        "wrong_estimator_audit_error": Number(wrong.audit_error, kind=kind),
        "published_metric_share": Number(calls.published_share(), kind="from the paper's times"),
    }


def compare_arms(study: control.Study) -> dict[str, Number]:
    """Return what the logs of the paper's two arms tell."""
    both = [run for run in study.runs if run.arm in NAMES]
    cells = control.group_arms(both)
    gap = {"smallest_tracking_gap": find_smallest_gap(both)}
    return {**_errors(cells), **gap, **_applied(both), **_settling(study), **_rewards(cells), **_pairs(both)}


def _errors(cells: Sequence[control.ArmSummary]) -> dict[str, Number]:
    what = f"targets, {cells[0].seeds} seeds"
    numbers = {}
    for arm, name in NAMES.items():
        mine = [cell for cell in cells if cell.arm == arm]
        numbers[f"largest_tracking_error_{name}"] = Number.range([cell.mean("tracking_error") for cell in mine], what)
        numbers[f"largest_audit_error_{name}"] = Number.range([cell.mean("audit_error") for cell in mine], what)
    absolute = [cell.mean("absolute_audit_error") for cell in cells if cell.arm == BERNOULLI]
    apart = [cell.mean("audit_minus_applied") for cell in cells]
    return numbers | {
        "largest_absolute_audit_error_bernoulli": Number.range(absolute, what),
        "largest_audit_minus_applied": Number.range([abs(value) for value in apart]),
        "smallest_audit_minus_applied": Number.range(apart, pick=min),
    }


def find_smallest_gap(runs: Sequence[control.RunSummary]) -> Number:
    """Return by how much more Bernoulli is off its target than full, at the target where that is least."""
    errors = {(run.arm, run.target, run.seed): run.tracking_error or 0.0 for run in runs}
    sparse = group_by((key for key in errors if key[0] == BERNOULLI), lambda key: key[1])
    gaps = [control.pair([errors[key] - errors[(REFERENCE, *key[1:])] for key in mine]) for mine in sparse.values()]
    least = min(gaps, key=lambda gap: gap.mean)
    kind = f"least of {len(gaps)} targets"
    if least.interval is None:
        return Number(least.mean, kind=kind)
    return replace(least.interval, kind=f"{kind}, 95% t interval, {len(least.differences)} seeds")


def _applied(runs: Sequence[control.RunSummary]) -> dict[str, Number]:
    """The applied signal as the paper's Table 7 has it: mean and standard error over seeds."""
    groups = group_by(runs, lambda run: (run.arm, run.target)).items()
    cells = {key: [run.applied for run in mine] for key, mine in groups if key[1] is not None}
    off = [abs(statistics.fmean(values) / target - 1) for (_, target), values in cells.items() if target]
    numbers = {"applied_off_target": Number.range(off)}
    errors = {key: control.standard_error(values) for key, values in cells.items()}
    if all(errors.values()):
        numbers["applied_largest_sem"] = Number.range(error for error in errors.values() if error)
        z = [
            abs(statistics.fmean(cells[key]) - paper) / math.hypot(sem, errors[key] or 0.0)
            for key, (paper, sem) in PAPER_APPLIED.items()
        ]
        numbers["applied_largest_z"] = Number.range(z)
    return numbers


def _settling(study: control.Study) -> dict[str, Number]:
    """A cell that is outside at the end counts as one that settles after it."""
    after = study.iterations + 1
    # Iterations count from 1, so `or` stands for None alone.
    settled = [control.find_settling(curve) or after for curve in study.curves if curve.arm in NAMES]
    slowest = Number.range(settled)
    kind = f"{slowest.kind}{'; not within the run' * (max(settled) == after)}"
    return {"settling_iteration": replace(slowest, kind=kind)}


def _rewards(cells: Sequence[control.ArmSummary]) -> dict[str, Number]:
    numbers, steps = {}, []
    for cell in cells:
        name, error, reward = f"reward_{NAMES[cell.arm]}_{round(100 * cell.target):03}", cell.reward_sem, _reward(cell)
        kind = f"one standard error either way, {cell.seeds} seeds"
        numbers[name] = Number(reward) if error is None else Number.around(reward, error, kind)
    for arm in NAMES:
        ordered = sorted((cell for cell in cells if cell.arm == arm), key=lambda cell: cell.target)
        steps += [_reward(after) - _reward(before) for before, after in itertools.pairwise(ordered)]
    numbers["smallest_reward_step"] = Number.range(steps, "steps", pick=min)
    # Rewards of a tiny run may be 0.
    pairs = [(_reward(sparse), _reward(full)) for sparse, full in _match(cells)]
    gaps = [abs(sparse / full - 1) for sparse, full in pairs if sparse and full]
    grown = [abs(full.reward_growth) for _, full in _match(cells) if full.reward_growth is not None and _reward(full)]
    for name, values in (("largest_reward_gap", gaps), ("late_reward_growth", grown)):
        if values:
            numbers[name] = Number.range(values, "targets")
    return numbers


def _reward(cell: control.ArmSummary) -> float:
    return cell.mean("reward")


def _match(cells: Sequence[control.ArmSummary]) -> list[tuple[control.ArmSummary, control.ArmSummary]]:
    """Bernoulli and full at every target."""
    full = {cell.target: cell for cell in cells if cell.arm == REFERENCE}
    return [(cell, full[cell.target]) for cell in cells if cell.arm == BERNOULLI]


def _pairs(runs: Sequence[control.RunSummary]) -> dict[str, Number]:
    paired = control.compare_rewards(runs, BERNOULLI)
    if paired is None or paired.interval is None or paired.sem is None:
        return {}
    kind = f"{len(paired.differences)} pairs"
    by_seed = control.compare_seeds(runs, BERNOULLI)
    numbers = {} if by_seed is None else {"paired_reward_by_seed": by_seed}
    numbers |= {"paired_reward_difference": paired.interval, "paired_reward_sem": Number(paired.sem, kind=kind)}
    # Fewer than six pairs could not reject at 5% if they all agreed, so that they say nothing is no finding.
    if paired.sign_p is not None and sum(map(bool, paired.differences)) >= 6:
        numbers["sign_test_p"] = Number(paired.sign_p, kind=f"exact, two-sided, {kind}")
    spread = _spread_between_seeds(runs)
    if spread:
        numbers["difference_over_seed_sd"] = Number(abs(paired.mean) / spread, kind="pooled over arms and targets")
    return numbers


def _spread_between_seeds(runs: Sequence[control.RunSummary]) -> float | None:
    """Standard deviation of reward between seeds, pooled over arms and targets by degrees of freedom."""
    cells = [[run.reward for run in cell] for cell in group_by(runs, lambda run: (run.arm, run.target)).values()]
    freedom = sum(len(values) - 1 for values in cells)
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in cells if len(values) > 1)
    return math.sqrt(squares / freedom) if freedom else None


def compare_starts(runs: Sequence[control.RunSummary]) -> Number | None:
    """The largest difference of rewards in the second iteration between matched runs of both arms.

    None where rewards agree though policies do not: then they are too coarse to tell.
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


def _costs(data: Data, *, in_training: bool) -> dict[str, Number]:
    if data.edges is None or data.timed is None or data.step is None:
        return {}
    edges, step = data.edges, data.step
    low, high = sorted((step.share, step.arithmetic))
    kind = "measured on a CPU, and counted in multiplications"
    loop = calls.compute_speedups(data.timed.loop)[BERNOULLI]
    numbers = {
        "mean_edges": Number.around(edges.mean, 2.58 * edges.sem, f"99% interval, {edges.graphs:,} graphs"),
        "loop_metric_speedup": loop,
        "estimate_share": Number(step.share, low, high, kind=kind),
    }
    if data.on_gpu is not None:
        over = [data.on_gpu.loop[arm].number(1000).value / paper for arm, paper in PAPER_MS.items()]
        numbers["loop_time_over_paper"] = Number.range(over, "calls, full and Bernoulli", unit="x")
    trained = list(data.study.metric_speedups.get(BERNOULLI, {}).values())
    if in_training and trained:
        numbers["fused_metric_speedup"] = Number.range(trained, "targets", pick=statistics.median, unit="x")
    elif not in_training:
        numbers["fused_metric_speedup"] = calls.compute_speedups(data.timed.fused)[BERNOULLI]
    return numbers


TITLE = "Fifty agents at three diversities, full against sampled"
STACKS = {**ECONOMICAL, **WHOLE}
EXPERIMENT = Experiment(
    "dico-50", TITLE, run, lambda data: draw_study(data.study, data.faulty), Data, STACKS, ("on_gpu",)
)
