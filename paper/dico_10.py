"""Ten agents held at a diversity of 0.1 by five controllers (section 6.2, figure 3).

DiCo on dispersion with all pairs, nearest neighbours, Bernoulli-0.1 and random regular graphs, and without control. At
paper scale the logs of the committed runs are read, and a machine with a GPU trains the missing runs. At the other
scales a smaller study is run, with the same arms in a team of six. Claims are judged by runs with the paper's 600
environments. The same runs with 120 show what the environments change. The metric's cost is timed by itself with ten
agents.

What the paper calls tracking is estimate times scale, which is on target by construction. The audit is reported beside
it: SND over all pairs of the policies that acted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from graphsnd.rl import Task
from paper.control import study as control
from paper.control.calls import MetricTimes, compute_speedups, time_calls
from paper.control.figure import draw_study
from paper.control.logs import gather_runs, name_sources, train_small
from paper.control.study import PUBLISHED, REFERENCE, control_task
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells, Stacks

AGENTS = 10
KNN, BERNOULLI, REGULAR = "knn:3", "bernoulli:0.1", "regular:3"
SPARSE = (KNN, BERNOULLI, REGULAR)
ARMS, TARGETS = (REFERENCE, *SPARSE), (0.1, "unconstrained")
MINIBATCH = 4096 * AGENTS  # observations of the published metric
FUSED = 2048  # observations per estimate in our runs
SEEDS, FEW = (0, 1, 2), PUBLISHED.replace(environments=120)

# Folders of logs, and the task that was trained in each.
ECONOMICAL: Stacks = {"control/n10": control_task(AGENTS, TARGETS, ARMS, SEEDS, settings=FEW)}
ALONE = control_task(AGENTS, (0.1,), seeds=SEEDS, settings=PUBLISHED.replace(observations=MINIBATCH))
WHOLE: Stacks = {
    **{f"control/n10-full/{arm.replace(':', '-')}": replace(ALONE, design=(arm,)) for arm in ARMS if arm != REGULAR},
    "control/n10-full/regular-3-unconstrained": replace(ALONE, design=(REGULAR,), target=TARGETS),
}

# Two cores can train a small team with few frames and narrow networks; the learning rate is that of the CPU preset.
SMALL = PUBLISHED.replace(
    environments=8, minibatch=200, epochs=10, hidden=(32, 32), learning_rate=1e-4, observations=256,
    audit_observations=1024, iterations=30,
)  # fmt: skip
TINY = SMALL.replace(
    environments=2, steps=25, minibatch=25, epochs=2, hidden=(8,), observations=25, audit_observations=50, iterations=4
)


@dataclass(frozen=True)
class Size:
    """A study, and how the metric is timed beside it."""

    task: Task
    window: int
    trials: int


SIZES = {
    Scale.SMOKE: Size(control_task(6, TARGETS, ARMS, (0, 1), settings=TINY), 2, 3),
    Scale.LAPTOP: Size(control_task(6, TARGETS, ARMS, (0, 1), settings=SMALL), 10, 21),
    Scale.PAPER: Size(control_task(AGENTS, TARGETS, ARMS, SEEDS, settings=ALONE.settings), 10, 51),
}


@dataclass(frozen=True)
class Data:
    """What the figure draws."""

    study: control.Study
    timed: MetricTimes
    twins: tuple[control.Twin, ...] = ()  # runs by the paper's protocol, and the same by ours


def run(scale: Scale, cells: Cells) -> Outcome:
    """Read the existing runs, or train a smaller study; time the metric."""
    size, twins = SIZES[scale], tuple[control.Twin, ...]()
    if scale is Scale.PAPER:
        (histories, folders), (full, more) = gather_runs(ECONOMICAL, cells), gather_runs(WHOLE, cells)
        study = control.summarise_study(size.task, size.window, full, control.describe_protocol(size.task))
        twins, folders = control.compare_protocols(full, histories, size.window), folders + more
    else:
        histories, folders = train_small(size.task, cells)
        study = control.summarise_study(size.task, size.window, histories)
    about = {"agents": AGENTS, "observations": MINIBATCH, "fused": FUSED, "trials": size.trials, "arms": list(SPARSE)}
    make = partial(time_calls, AGENTS, SPARSE, loop=MINIBATCH, fused=FUSED, trials=size.trials)
    timed = cells.get("timed", about, make, MetricTimes)
    data = Data(study, timed, twins)
    return Outcome(data, summarise(data, scale), study.seeds, name_sources(folders, cells))


def summarise(data: Data, scale: Scale) -> dict[str, Number | None]:
    """Return the numbers of a study; while runs are missing, the numbers of its runs are left out."""
    study = data.study
    speedups = {} if scale is Scale.SMOKE else _speedups(data.timed)
    if (shift := control.average_twins(data.twins)) is not None:
        speedups["environments_reward_difference"] = shift
    if study.missing:
        return {**speedups}
    arms = {cell.arm: cell for cell in control.group_arms(study.runs)}
    what = f"arms, means of {arms[REFERENCE].seeds} seeds"
    numbers = {
        "largest_tracking_error": Number.range([arms[arm].mean("tracking_error_of_mean") for arm in SPARSE], what),
        "largest_audit_error": Number.range([arms[arm].mean("audit_error") for arm in (BERNOULLI, REGULAR)], what),
        "knn_audit_error": Number.range([arms[KNN].mean("audit_error")], what),
    }
    others = {"knn": KNN, "bernoulli": BERNOULLI, "regular": REGULAR, "unconstrained": "unconstrained"}
    for name, arm in others.items():
        pair = control.compare_rewards(study.runs, arm)
        if pair and pair.interval:
            numbers[f"reward_difference_{name}"] = pair.interval
    return {**control.mention_protocol(numbers, study, AGENTS), **speedups}


def _speedups(timed: MetricTimes) -> dict[str, Number]:
    """Return the smallest speed-up over arms, from calls timed by themselves."""
    numbers = {}
    for name, times in (("loop", timed.loop), ("fused", timed.fused)):
        each = compute_speedups(times)
        slowest = min(each, key=lambda arm: each[arm].value)
        numbers[f"{name}_metric_speedup"] = replace(each[slowest], kind=f"{slowest}, {each[slowest].kind}")
    return numbers


TITLE = "Ten agents held at a diversity of 0.1"
STACKS = {**ECONOMICAL, **WHOLE}
EXPERIMENT = Experiment("dico-10", TITLE, run, lambda data: draw_study(data.study), Data, STACKS)
