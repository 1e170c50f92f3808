r"""A study of controlled training: logs of its runs, their last iterations, means over seeds, and pairs of arms.

The window is the last w iterations. For a run with target :math:`d^\ast`, applied signal :math:`a_t` (estimate times
scale) and audit :math:`d_t` (SND over all pairs),

.. math:: \text{tracking} = \tfrac1w \sum_t \frac{|a_t - d^\ast|}{d^\ast}, \qquad
    \text{audit} = \frac{|\bar d - d^\ast|}{d^\ast}, \qquad
    \text{absolute audit} = \tfrac1w \sum_t \frac{|d_t - d^\ast|}{d^\ast}.

The paper takes the absolute value inside the mean for its tracking error at n = 50, outside for its audit error, and
outside for its tracking error at n = 10. This module computes both forms of both errors. Unfinished runs are left out:
their last iterations are not those of the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binomtest, t

from graphsnd.control import audit_error, tracking_error
from graphsnd.errors import InputError
from graphsnd.rl import PRESETS, Settings, Task
from paper.control.logs import History, group_by, list_missing
from paper.experiment import Number

REFERENCE = "complete"  # the arm that the others are compared with
PUBLISHED = PRESETS["dispersion-10"].settings  # the paper's study with 10 agents; with 50 it had 120 environments


@dataclass(frozen=True)
class Rewarded:
    """A run's arm, target and seed, and its reward in the last iterations."""

    arm: str
    target: float | None
    seed: int
    reward: float


@dataclass(frozen=True)
class RunSummary(Rewarded):
    """A run in its last iterations; errors are None where there is no target."""

    reward_halves: tuple[float, float]  # means over the window's halves; the first is longer if the window is odd
    applied: float
    audit: float
    audit_minus_applied: float
    first_rewards: tuple[float, ...]  # rewards of the first two iterations
    first_audits: tuple[float, ...]
    tracking_error: float | None
    tracking_error_of_mean: float | None
    audit_error: float | None
    absolute_audit_error: float | None


@dataclass(frozen=True)
class ArmSummary:
    """The runs of one arm and target."""

    arm: str
    target: float
    runs: tuple[RunSummary, ...]

    @property
    def seeds(self) -> int:
        """Number of runs."""
        return len(self.runs)

    @property
    def reward_sem(self) -> float | None:
        """Standard error of the mean reward; None for one seed."""
        return standard_error([run.reward for run in self.runs])

    def mean(self, name: str) -> float:
        """Return the mean of a field over seeds."""
        return statistics.fmean(getattr(run, name) for run in self.runs)


@dataclass(frozen=True)
class Paired:
    """Differences of rewards between two arms, each pair with the same seed and target."""

    differences: tuple[float, ...]
    mean: float
    sem: float | None  # None for one pair
    interval: Number | None  # the mean with its 95% t interval; None for one pair
    sign_p: float | None  # p-value of the exact two-sided sign test; None when all differences are 0


@dataclass(frozen=True)
class Twin:
    """Differences between a run by the paper's protocol and the same run by the economical one, last iterations."""

    arm: str
    target: float | None
    seed: int
    iteration: int  # last iteration that counts
    reward: float
    audit_error: float | None  # None where there is no target


@dataclass(frozen=True)
class Band:
    """One column over iterations: mean and range over seeds."""

    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Curve:
    """One arm and target over iterations."""

    arm: str
    target: float | None
    iteration: list[int]
    applied: Band
    audit: Band


@dataclass(frozen=True)
class Study:
    """The part of a study that its figure and its numbers need. Missing runs are not filled in."""

    agents: int
    iterations: int  # number of iterations of a finished run
    window: int
    wanted: int  # number of runs of the whole study
    missing: tuple[str, ...]  # missing and unfinished runs
    runs: tuple[RunSummary, ...]
    curves: tuple[Curve, ...]
    departures: str = ""  # how the runs differ from the paper's, in words

    @property
    def arms(self) -> list[str]:
        """Arms with a finished run."""
        return list(dict.fromkeys(run.arm for run in self.runs))

    @property
    def targets(self) -> list[float]:
        """Targets of finished runs."""
        return sorted({run.target for run in self.runs if run.target is not None})

    @property
    def seeds(self) -> list[int]:
        """Seeds of finished runs."""
        return sorted({run.seed for run in self.runs})


def control_task(
    agents: int,
    targets: Sequence[float | str],
    designs: Sequence[str] = (REFERENCE,),
    seeds: Sequence[int] = (0,),
    settings: Settings = PUBLISHED,
) -> Task:
    """Return a controlled training in the paper's dispersion.

    Args:
        agents: Size of the team.
        targets: Targets, as :class:`~graphsnd.rl.Task` takes them.
        designs: Designs of the controllers.
        seeds: Seeds; each gives one run of every arm.
        settings: All other settings.
    """
    return Task("dispersion", agents, PRESETS["dispersion-10"].options, tuple(seeds), targets, designs, settings)


def summarise_study(task: Task, window: int, histories: Sequence[History], departures: str = "") -> Study:
    """Return a study from the runs that exist.

    Args:
        task: The whole study. Runs of arms that are not in it are included too.
        window: Number of last iterations to average.
        histories: The runs that exist.
        departures: How the runs differ from the paper's, in words.

    Raises:
        InputError: When there is no run at all.
    """
    if not histories:
        fix = "Run another scale, fetch the results/ of the repository, or use a machine with a GPU."
        raise InputError("results", "with logs of controlled training", "none", fix)
    done = [history for history in histories if history.iterations >= task.settings.iterations]
    return Study(
        agents=task.agents or 0,
        iterations=task.settings.iterations,
        window=window,
        wanted=len(task.runs()),
        missing=tuple(list_missing(histories, task)),
        runs=tuple(summarise_run(history, window) for history in done),
        curves=tuple(make_curves(done)),
        departures=departures,
    )


def describe_protocol(task: Task) -> str:
    """Return how the estimates of runs on a GPU differ from the paper's, which takes two on all observations.

    Example:
        >>> describe_protocol(control_task(50, (0.1,), settings=PUBLISHED.replace(environments=120)))
        '2,048 of 204,800 observations an estimate, one estimate a step, bfloat16, 120 environments'
    """
    settings, every = task.settings, task.settings.minibatch * (task.agents or 1)
    seen = f"{min(settings.observations, every):,} of {every:,} observations an estimate, one estimate a step"
    return f"{seen}, {'bfloat16' if settings.bfloat16 else 'TF32'}, {settings.environments} environments"


def compare_protocols(full: Sequence[History], economical: Sequence[History], window: int) -> tuple[Twin, ...]:
    """Return how runs by the paper's protocol differ from the same runs by an economical one.

    Args:
        full: Runs by the paper's protocol; some may be missing or unfinished.
        economical: Runs by the economical protocol, complete.
        window: Number of iterations to average, the last ones that both have.
    """
    others, twins = {history.run: history for history in economical}, []
    for history in full:
        other, run = others.get(history.run), history.run
        if other is None:
            continue
        common = min(history.iterations, other.iterations)
        mine, its = (summarise_run(replace(one, rows=one.rows[:common]), window) for one in (history, other))
        less = mine.audit_error - its.audit_error if mine.audit_error and its.audit_error else None
        twins.append(Twin(run.arm, run.target, run.seed, common, mine.reward - its.reward, less))
    return tuple(twins)


def average_twins(twins: Sequence[Twin], field: str = "reward") -> Number | None:
    """Return the mean difference of controlled runs with its 95% t interval over seeds; None for fewer than two."""
    held = [twin for twin in twins if twin.target is not None]
    seeds = group_by(held, lambda twin: twin.seed).values()
    means = [statistics.fmean(getattr(twin, field) for twin in mine) for mine in seeds]
    interval = pair(means).interval if means else None
    arms = len({twin.arm for twin in held})
    return interval and replace(interval, kind=f"95% t interval, {len(means)} seeds, {arms} arms")


def summarise_run(history: History, window: int) -> RunSummary:
    """Return a run in its last iterations."""
    rows, run = history.rows[-window:], history.run
    applied, audits, rewards = ([getattr(row, key) for row in rows] for key in ("applied", "audit", "reward"))
    half = len(rows) // 2
    return RunSummary(
        run.arm,
        run.target,
        run.seed,
        reward=statistics.fmean(rewards),
        reward_halves=(statistics.fmean(rewards[: len(rows) - half]), statistics.fmean(rewards[-half or None :])),
        applied=statistics.fmean(applied),
        audit=statistics.fmean(audits),
        audit_minus_applied=statistics.fmean(audits) - statistics.fmean(applied),
        first_rewards=tuple(row.reward for row in history.rows[:2]),
        first_audits=tuple(row.audit or 0.0 for row in history.rows[:2]),
        tracking_error=None if run.target is None else tracking_error(applied, run.target, last=window),
        tracking_error_of_mean=None if run.target is None else audit_error(applied, run.target, last=window),
        audit_error=None if run.target is None else audit_error(audits, run.target, last=window),
        absolute_audit_error=None if run.target is None else tracking_error(audits, run.target, last=window),
    )


def group_arms(runs: Iterable[RunSummary]) -> list[ArmSummary]:
    """Return the runs of each arm and target; those without a target are left out."""
    groups = group_by(runs, lambda run: (run.arm, run.target))
    return [ArmSummary(arm, target, tuple(mine)) for (arm, target), mine in groups.items() if target is not None]


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean; None for a single value.

    Example:
        >>> standard_error([1.0, 3.0]), standard_error([1.0])
        (1.0, None)
    """
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def compare_rewards(runs: Sequence[Rewarded], arm: str) -> Paired | None:
    """Return the reward differences between an arm and all pairs; None if no seed and target have both.

    A run without a target is compared with those of all targets of its seed.
    """
    full = [run for run in runs if run.arm == REFERENCE]
    pairs = [(one, other) for one in runs for other in full if one.arm == arm and one.seed == other.seed]
    differences = [one.reward - other.reward for one, other in pairs if one.target in (None, other.target)]
    return pair(differences) if differences else None


def compare_seeds(runs: Sequence[Rewarded], arm: str) -> Number | None:
    """Return the mean of :func:`compare_rewards` with its 95% t interval over seeds; None for fewer than two.

    Cells of one seed share networks and episodes: only seeds are independent.
    """
    seeds = group_by(runs, lambda run: run.seed).values()
    each = [one.mean for mine in seeds if (one := compare_rewards(mine, arm))]
    interval = pair(each).interval if each else None
    return interval and replace(interval, kind=f"95% t interval, {len(each)} seeds")


def pair(differences: Sequence[float], *, delta: float = 0.05) -> Paired:
    r"""Return the mean difference with its t interval, and the exact sign test.

    .. math:: \bar x \pm t_{k-1, 1-\delta/2} \, s / \sqrt k, \qquad
        p = \min\left(1, 2 \sum_{j \le \min(k_+, k_-)} \binom{k_+ + k_-}{j} 2^{-(k_+ + k_-)}\right)

    Cells of one seed share networks and episodes, so the interval assumes more independence than there is.

    Args:
        differences: Difference of each pair.
        delta: Chance that the interval misses, for normal differences.

    Example:
        >>> three = pair([1.0, 2.0, 3.0])
        >>> three.mean, round(three.interval.low, 3), three.sign_p
        (2.0, -0.484, 0.25)
    """
    mean, error = statistics.fmean(differences), standard_error(differences)
    # A tie says nothing about the sign and is left out, as usual in a sign test.
    signs = [value > 0 for value in differences if value]
    p = float(binomtest(sum(signs), len(signs)).pvalue) if signs else None
    interval = None
    if error is not None:
        reach = float(t.ppf(1 - delta / 2, len(differences) - 1)) * error
        interval = Number.around(mean, reach, f"{1 - delta:.0%} t interval, {len(differences)} pairs")
    return Paired(tuple(differences), mean, error, interval, p)


def mention_protocol(numbers: dict[str, Number], study: Study, agents: int) -> dict[str, Number]:
    """Return the numbers, each with a note on how the study differs from the paper's: its agents, or its protocol."""
    words = [f"{study.agents} agents"] * (study.agents != agents) + [study.departures] * bool(study.departures)
    text = "".join(f"; {one}" for one in words)
    return {name: replace(number, kind=f"{number.kind}{text}") for name, number in numbers.items()}


def find_settling(curve: Curve, within: float) -> int | None:
    """Return the first iteration from which the applied signal (mean over seeds) stays near the target.

    Args:
        curve: Curve of one arm and target.
        within: Largest distance from the target, relative to it.

    Returns:
        The iteration; None if the signal is outside at the end.
    """
    target = curve.target
    assert target is not None
    outside = [abs(value - target) > within * target for value in curve.applied.mean]
    last = max((place for place, is_outside in enumerate(outside) if is_outside), default=-1)
    return curve.iteration[last + 1] if last + 1 < len(outside) else None


def make_curves(histories: Sequence[History]) -> list[Curve]:
    """Return applied signal and audit over iterations for each arm and target; means have eight digits, ends five."""
    curves = []
    for (arm, target), mine in group_by(histories, lambda history: (history.run.arm, history.run.target)).items():
        common = min(len(history.rows) for history in mine)
        bands = []
        for name in ("applied", "audit"):
            values = np.array([[getattr(row, name) for row in history.rows[:common]] for history in mine])
            parts = ((values.mean(0), 8), (values.min(0), 5), (values.max(0), 5))
            # Five digits are more than a figure shows, and keep committed files small; where a mean settles needs more.
            bands.append(Band(*([float(f"{value:.{digits}g}") for value in part] for part, digits in parts)))
        curves.append(Curve(arm, target, [row.iteration for row in mine[0].rows[:common]], *bands))
    return curves
