"""Is a difference real? Two teams on the same observations, and algorithms over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError, check_clusters, check_finite, check_layout, check_number, describe, plural
from graphsnd.estimation.estimate import Interval
from graphsnd.estimation.intervals import check_confidence, cluster_error, cluster_sums
from graphsnd.estimation.on_graph import observation_values
from graphsnd.estimation.source import as_source
from graphsnd.teams import Policy, Team

Array = NDArray[np.float64]
RESAMPLES = 9999
ALPHA = 0.05  # p-values up to this are called a difference
TRIMMED = 0.25  # at each end: the interquartile mean is the mean of the middle half


@dataclass(frozen=True)
class TeamsComparison:
    """The SND of two teams on the same observations, and how sure their difference is.

    Example:
        >>> seen = torch.randn(640, 4, generator=torch.Generator().manual_seed(0))
        >>> same = compare([torch.sin, torch.cos], [torch.cos, torch.sin], seen)
        >>> same.difference, same.p_value, same.clusters, round(same.resolution, 6)
        (0.0, 1.0, 32, 0.0002)
    """

    first: float  # SND of the first team
    second: float  # SND of the second
    difference: float  # first - second
    interval: Interval  # of the difference, over observations not seen, by clusters; asymptotic
    p_value: float  # that the clusters' differences are as likely to have the other sign
    confidence: float  # coverage of the interval
    clusters: int  # their number
    observations: int  # their number
    distance: str  # its name
    resolution: float  # the smallest p-value that this number of clusters can give

    def __float__(self) -> float:
        return self.difference

    def __str__(self) -> str:
        low, high = self.interval
        what = f"SND {self.first:.6g} and {self.second:.6g}: difference {self.difference:+.4g}"
        where = f"{self.clusters} clusters of {self.observations:,} shared observations"
        sure = f"in [{low:+.4g}, {high:+.4g}] with {100 * self.confidence:.4g}% confidence"
        return f"{what}, {sure}, p = {self.p_value:.2g} ({where})"


@checked(own="first second observations clusters distance confidence")
def compare(
    first: Behavior | Team | Policy | Sequence[Policy],
    second: Behavior | Team | Policy | Sequence[Policy],
    observations: Any = None,
    *,
    clusters: torch.Tensor | Sequence[int] | None = None,
    distance: Distance | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    backend: str = "auto",
) -> TeamsComparison:
    r"""Compare the SND of two teams on the same observations: is a difference of 0.02 real?

    Both are measured exactly at every observation, so the difference is paired: what makes an observation tell agents
    apart, it does for both teams. What is left to chance is which observations were made. Those of one episode
    resemble each other, so the interval (Student's) and the test (signs of the clusters' differences flipped at random:
    scipy's ``permutation_test``) are over clusters.

    Args:
        first: A behaviour, or policies.
        second: The same; the teams may have different sizes.
        observations: ``[..., features]`` for policies, shown to both teams; None for behaviours, which must have been
            evaluated on the same ones.
        clusters: Episode or environment of each observation, integers of the leading shape or flat; 32 contiguous
            blocks when None.
        distance: Distance object; the family's default when None.
        confidence: Coverage of the interval.
        seed: Of the test.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The comparison.

    Raises:
        InputError: For different numbers or layouts of observations, different distances, or fewer than 2 clusters.

    Example:
        >>> import torch, graphsnd as gs
        >>> seen = torch.randn(640, 4, generator=torch.Generator().manual_seed(0))
        >>> teams = [[(lambda o, k=k, n=n: k * o[:, :n]) for k in range(3)] for n in (2, 1)]
        >>> found = gs.compare(*teams, seen)
        >>> found.interval[0] > 0, found.p_value < 0.01
        (True, True)
    """
    confidence = check_confidence(confidence)
    sources = [as_source(team, observations, distance, backend) for team in (first, second)]
    count = sources[0].observations
    if sources[1].observations != count:
        raise InputError("second", f"on the same {count} observations", f"{sources[1].observations} of them")
    check_layout("second", sources[1].batch_shape, sources[0].batch_shape)
    distances = [source.distance for source in sources]
    if distances[0] != distances[1]:  # two Joints may have other weights under one name
        expected = f"with the distance {distances[0]}, as the first"
        raise InputError("second", expected, distances[1], "Choose one: distance=.")
    with torch.no_grad():
        values = [observation_values(source).double() for source in sources]
    for value in values:
        check_finite("team", value)
    groups = check_clusters(clusters, sources[0].batch_shape)
    (one, sizes), (two, _) = (cluster_sums(each, None, groups, count) for each in values)
    mean = float((one - two).sum()) / count
    _, interval = cluster_error(one - two, sizes, mean, confidence, lowest=-math.inf)
    if interval is None:
        fix = "A single episode says nothing about others."
        raise InputError("clusters", "to be at least 2 different ones", len(sizes), fix)
    test = stats.permutation_test(
        (one.numpy(), two.numpy()), lambda a, b, axis: (a - b).sum(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=RESAMPLES, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return TeamsComparison(
        float(values[0].mean()), float(values[1].mean()), mean, interval, float(test.pvalue),
        confidence, len(sizes), count, distances[0].name, _smallest_p(2 ** float(len(sizes))),
    )  # fmt: skip


@dataclass(frozen=True)
class Score:
    """The final values of an algorithm's runs, summarised.

    Example:
        >>> score = compare_runs({"ippo": [1.0, 2.0, 3.0, 40.0]}).scores["ippo"]
        >>> score.value, score.interval[0] <= score.value <= score.interval[1], score.runs
        (2.5, True, ((1.0, 2.0, 3.0, 40.0),))
    """

    value: float  # interquartile mean: of the middle half of all runs; of fewer than four, their mean
    interval: Interval | None  # bootstrap over runs, within each task; None where a task has one run
    runs: tuple[tuple[float, ...], ...]  # of each task


@dataclass(frozen=True)
class Difference:
    """An algorithm compared with the first one.

    Example:
        >>> runs = {"ippo": [1.0, 2.0, 3.0, 4.0, 5.0], "dico": [11.0, 12.0, 13.0, 14.0, 15.0]}
        >>> paired = compare_runs(runs, paired=True).differences["dico"]
        >>> paired.value, paired.pairs, paired.resolution, paired.verdict
        (10.0, 5, 0.0625, 'too few seeds: p is 0.062 at best')
        >>> compare_runs(runs).differences["dico"].verdict
        'shown, p = 0.0079'
    """

    value: float  # interquartile mean of the paired differences, or difference of interquartile means
    interval: Interval | None  # of the value, by bootstrap; None where a task has one run
    probability: float  # that a run of it is above a run of the first, mean over tasks; ties count half
    probability_interval: Interval | None  # the same of the probability
    p_value: float  # of a permutation test of means, times the number of comparisons
    resolution: float  # the smallest p-value that these numbers of runs can give
    paired: bool  # whether runs were compared seed by seed
    pairs: int  # of runs with the same seed, over all tasks; 0 where runs were not paired

    @property
    def verdict(self) -> str:
        """Say in words what the runs show, and what they cannot show."""
        if self.resolution > ALPHA:
            return f"too few seeds: p is {self.resolution:.2g} at best"
        return f"{'shown' if self.p_value <= ALPHA else 'not shown'}, p = {self.p_value:.2g}"


@dataclass(frozen=True)
class RunsComparison:
    """Algorithms over seeds.

    Example:
        >>> found = compare_runs({"ippo": [1.0, 2.0, 3.0, 4.0], "dico": [11.0, 12.0, 13.0, 14.0]})
        >>> list(found.scores), found.differences["dico"].value, found.confidence
        (['ippo', 'dico'], 10.0, 0.95)
        >>> print(found)
        Interquartile means over runs, intervals with 95% confidence
        ippo: 2.5 in [1, 4], 4 runs
        dico: 12.5 in [11, 14], 4 runs; +10 in [+8, +12] from ippo: shown, p = 0.029
    """

    scores: dict[str, Score]  # of each algorithm
    differences: dict[str, Difference]  # of all but the first, from the first
    confidence: float  # coverage of the intervals

    def __str__(self) -> str:
        lines = [f"Interquartile means over runs, intervals with {100 * self.confidence:.4g}% confidence"]
        for name, score in self.scores.items():
            count, other = sum(map(len, score.runs)), self.differences.get(name)
            text = f"{name}: {score.value:.4g}{_within(score.interval)}, {count} {plural('run', count)}"
            if other is not None:
                first = next(iter(self.scores))
                text += f"; {other.value:+.4g}{_within(other.interval, '+')} from {first}: {other.verdict}"
            lines.append(text)
        return "\n".join(lines)


def _within(interval: Interval | None, sign: str = "") -> str:
    return "" if interval is None else f" in [{interval[0]:{sign}.4g}, {interval[1]:{sign}.4g}]"


@checked(own="runs confidence")
def compare_runs(
    runs: Mapping[str, Sequence[Any]],
    *,
    paired: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RunsComparison:
    """Compare algorithms by the final values of their runs: interquartile means, intervals, tests of the differences.

    Everything is scipy's: ``trim_mean`` (0.25 at each end), ``bootstrap`` (percentile; runs are drawn again within
    each task, which is what makes it stratified) and ``permutation_test`` of means, whose p-values of several tasks
    are combined by Fisher's method unless runs are paired.

    Args:
        runs: By algorithm: one value for each seed, ``[runs]``, or for several tasks a list of them.
        paired: Whether run k of each algorithm has the same seed.
        confidence: Coverage of the intervals.
        resamples: Of the bootstrap and of the permutation test, which is exact where there are no more permutations.
        seed: Of both.

    Returns:
        The comparison with the first algorithm.

    Raises:
        InputError: For no run, values that are not finite, other numbers of tasks, or of runs where they are paired.

    Example:
        >>> found = compare_runs({"ippo": [1.0, 2.0, 3.0, 4.0], "dico": [11.0, 12.0, 13.0, 14.0]})
        >>> found.scores["ippo"].value, found.differences["dico"].probability, found.differences["dico"].verdict
        (2.5, 1.0, 'shown, p = 0.029')
    """
    confidence = check_confidence(confidence)
    check_number("resamples", resamples, low=99, high=10**7)
    if not isinstance(runs, Mapping) or not runs:
        raise InputError("runs", "to be a dict of at least one algorithm", describe(runs))
    tasks = {name: _read_tasks(name, values) for name, values in runs.items()}
    base, shape = next(iter(tasks)), [len(task) for task in next(iter(tasks.values()))]
    for name, parts in tasks.items():
        if len(parts) != len(shape) or (paired and [len(part) for part in parts] != shape):
            fix = "Compare algorithms on the same tasks, and paired ones with the same seeds."
            raise InputError(f"runs[{name!r}]", f"of {shape} runs, as {base!r}", [len(part) for part in parts], fix)
    options = {"n_resamples": resamples, "vectorized": True, "rng": np.random.default_rng(seed)}

    def interval(parts: Sequence[Array], statistic: Any) -> Interval | None:
        if min(len(part) for part in parts) < 2:
            return None
        level = {"confidence_level": confidence, "method": "percentile"}
        ends = stats.bootstrap(parts, statistic, axis=-1, **level, **options).confidence_interval
        return float(ends.low), float(ends.high)

    def differ(parts: list[Array]) -> Difference:
        ours, both = tasks[base], [*parts, *tasks[base]]
        gaps = [one - two for one, two in zip(parts, ours, strict=True)] if paired else both
        gap = iqm if paired else _iqm_gap
        p, least = zip(*_tests(parts, ours, paired, options), strict=True)
        several = len(tasks) - 1
        joint = [float(stats.combine_pvalues(each).pvalue) if len(each) > 1 else each[0] for each in (p, least)]
        p_value, resolution = (min(1.0, several * each) for each in joint)
        return Difference(
            float(gap(*gaps)), interval(gaps, gap), float(_win_rate(*both)), interval(both, _win_rate),
            p_value, resolution, paired, sum(shape) * paired,
        )  # fmt: skip

    scores = {
        name: Score(float(iqm(*parts)), interval(parts, iqm), tuple(tuple(part.tolist()) for part in parts))
        for name, parts in tasks.items()
    }
    return RunsComparison(scores, {name: differ(parts) for name, parts in tasks.items() if name != base}, confidence)


def _read_tasks(name: str, values: Any) -> list[Array]:
    try:
        several = len(values) > 0 and np.ndim(values[0]) == 1
        tasks = [np.asarray(task, dtype=np.float64) for task in (values if several else [values])]
    except (TypeError, ValueError, KeyError):
        raise InputError(f"runs[{name!r}]", "to be numbers, one for each run", repr(values)[:60]) from None
    if any(task.ndim != 1 or not len(task) or not np.isfinite(task).all() for task in tasks):
        raise InputError(f"runs[{name!r}]", "to be finite numbers, at least one for each task", repr(values)[:60])
    return tasks


def iqm(*tasks: Array, axis: int = -1) -> Any:
    """Return the interquartile mean of the runs of all tasks."""
    return stats.trim_mean(np.concatenate(tasks, axis=axis), TRIMMED, axis=axis)


def _iqm_gap(*tasks: Array, axis: int = -1) -> Any:
    """Return the difference of two algorithms, of which the tasks of the first come first."""
    half = len(tasks) // 2
    return iqm(*tasks[:half], axis=axis) - iqm(*tasks[half:], axis=axis)


def _win_rate(*tasks: Array, axis: int = -1) -> Any:
    """Return the share of pairs of runs in which the first algorithm's is above, mean over tasks; U / (n m)."""
    half = len(tasks) // 2
    pairs = [(one[..., :, None], two[..., None, :]) for one, two in zip(tasks[:half], tasks[half:], strict=True)]
    return np.mean([((one > two) + 0.5 * (one == two)).mean(axis=(-2, -1)) for one, two in pairs], axis=0)


def _tests(ours: list[Array], theirs: list[Array], paired: bool, options: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the p-value of each task, of all together where runs are paired, and the smallest there could be."""
    if paired:
        ours, theirs = [np.concatenate(ours)], [np.concatenate(theirs)]
    tests = []
    for one, two in zip(ours, theirs, strict=True):
        kind = "samples" if paired else "independent"
        if min(len(one), len(two)) < 2:
            tests.append((1.0, 1.0))  # one run of an algorithm says nothing about others
            continue
        ways = 2.0 ** len(one) if paired else math.comb(len(one) + len(two), len(one))
        test = stats.permutation_test((one, two), _mean_gap, permutation_type=kind, **options)
        tests.append((float(test.pvalue), _smallest_p(ways, options["n_resamples"])))
    return tests


def _mean_gap(one: Array, two: Array, axis: int = -1) -> Any:
    # Of means: interquartile means leave out the ends, so that many permutations tie and few runs show nothing.
    return one.mean(axis=axis) - two.mean(axis=axis)


def _smallest_p(ways: float, resamples: int = RESAMPLES) -> float:
    """Return the smallest two-sided p-value of a permutation test with this number of permutations."""
    return min(1.0, 2 / min(ways, resamples + 1))
