"""Does diversity pay, and how much of it? Rewards of teams that were trained at several levels of SND."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from graphsnd.errors import InputError, as_tensor, check_integer, check_number, describe, plural
from graphsnd.estimation.estimate import Interval, round_outwards

Array = NDArray[np.float64]
DRAWS = 10_000  # simulated studies without an effect, whose quantiles are the critical values
PRIOR = 1.0  # weight, in seeds, of the common variance in the variance of a level
MOST = 10**8  # numbers in these studies, 0.8 GB
LINE = "{:<15} {:>6} {:>5}  {:<23} {}"  # a line of the table
UNCONSTRAINED = "None stands for unconstrained agents."


class Gain(NamedTuple):
    """A difference of mean rewards with its simultaneous interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        error = (self.high - self.low) / 6
        if self.low * self.high > 0:  # enough digits to show the sign of both ends
            error = min(error, abs(self.low), abs(self.high))
        value, low, high = round_outwards(*self, error)
        return f"{'+' * (self.value > 0)}{value} [{low}, {high}]"


@dataclass(frozen=True)
class LevelCurve:
    """Mean rewards by level of diversity: what the best level gains, and which levels may be the best.

    It prints as the verdict and a table.

    Example:
        >>> curve = level_curve([0, 0.1, 0.2], [[1.0, 1.1, 0.9], [1.6, 1.4, 1.5], [1.2, 1.1, 1.3]])
        >>> curve.best, curve.may_be_best, round(curve.gain.value, 3)
        (1, (1,), 0.5)
    """

    levels: tuple[float | None, ...]  # the targets: 0 shares all parameters, None is unconstrained
    snd: tuple[float, ...]  # audited SND, mean over seeds; without an audit the target, NaN where unconstrained
    rewards: tuple[float, ...]  # means over seeds
    intervals: tuple[Interval, ...]  # Student's interval of each mean; NaN for one seed
    seeds: tuple[int, ...]  # runs at each level
    best: int  # place of the level with the highest mean
    may_be_best: tuple[int, ...]  # places of levels that no other level beats
    over_shared: tuple[Gain, ...] | None  # differences from level 0, simultaneous over levels; None without a level 0
    over_unconstrained: tuple[Gain, ...] | None  # differences from the unconstrained level
    confidence: float  # level of all intervals and of may_be_best

    @property
    def gain(self) -> Gain | None:
        """Difference of the best other level from level 0; its interval allows for choosing the best."""
        return self._best_over(self.over_shared, 0)

    @property
    def gain_over_unconstrained(self) -> Gain | None:
        """Difference of the best other level from the unconstrained one."""
        return self._best_over(self.over_unconstrained, None)

    def _best_over(self, gains: tuple[Gain, ...] | None, level: float | None) -> Gain | None:
        others = [each for each, own in zip(gains or (), self.levels, strict=False) if own != level]
        # If all intervals hold, the highest gain is between the highest lower end and the highest upper end.
        return Gain(*map(max, zip(*others, strict=True))) if others else None

    @property
    def verdict(self) -> str:
        """The answer in a sentence: the best level against level 0, or without one against the unconstrained level."""
        known, gain = self.gain is not None, self.gain or self.gain_over_unconstrained
        gains = self.over_shared if known else self.over_unconstrained
        assert gain is not None
        assert gains is not None
        if gain.low <= 0 <= gain.high:
            least, most = min(self.seeds), max(self.seeds)
            seeds = f"{least}{f' to {most}' * (least < most)} {plural('seed', most)}"
            what = "sharing all parameters" if known else "leaving diversity free"
            return f"No level is better than {what}, as far as {seeds} can tell"
        others = [place for place, own in enumerate(self.levels) if own != (0 if known else None)]
        # Of a level whose own interval says so: the highest mean may be that of an unreliable one.
        place = max(others, key=lambda other: (gains[other].low > 0, self.rewards[other]))
        at = f"SND {self.snd[place]:.3g}{', unconstrained' * (self.levels[place] is None)}"
        at = "no constraint" if math.isnan(self.snd[place]) else at
        return f"{'Diversity' if known else 'Control'} {'pays' if gain.low > 0 else 'costs'}: {gains[place]} at {at}"

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.gain and self.gain_over_unconstrained:
            lines.append(f"Best other level, difference from unconstrained: {self.gain_over_unconstrained}")
        table = [LINE.format(*row).rstrip() for row in [self.heads(), *self.rows()]]
        return "\n".join([*lines, "", *table, "* may be the best level"])

    def heads(self) -> tuple[str, ...]:
        """Return the heads of the table."""
        return ("level", "SND", "seeds", "reward", f"difference from {'level 0' if self.gain else 'none'}")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table: level, SND, seeds, mean reward, difference; * where it may be the best."""
        rows: list[tuple[str, ...]] = []
        for place, gain in enumerate(self.over_shared or self.over_unconstrained or ()):
            level, snd, ends = self.levels[place], self.snd[place], self.intervals[place]
            mean = f"{self.rewards[place]:.4g}" if math.isnan(ends[0]) else str(Gain(self.rewards[place], *ends))
            name = ("unconstrained" if level is None else f"{level:g}") + " *" * (place in self.may_be_best)
            shown = "-" if math.isnan(snd) else f"{snd:.3g}"
            rows.append((name, shown, str(self.seeds[place]), mean.lstrip("+"), str(gain) if any(gain) else ""))
        return rows


def level_curve(
    levels: Iterable[float | None],
    rewards: Any,
    snd: Any = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> LevelCurve:
    r"""Compare the rewards of teams that were trained at several levels of diversity: does diversity pay?

    Every level is compared with every other by Student's statistic. The distribution of its maximum over levels comes
    from simulated studies without an effect, with as many seeds and the same variances: Dunnett's test for variances
    that may differ. The variance of a level is averaged with the common one, which counts as one more seed,

    .. math:: \tilde s_k^2 = \frac{\nu_k s_k^2 + \bar s^2}{\nu_k + 1}, \qquad
        t_{jk} = \frac{\bar r_j - \bar r_k}{\sqrt{\tilde s_j^2 / n_j + \tilde s_k^2 / n_k}}

    because the variance of three seeds is too noisy, and the common one alone misses a level that is unreliable.

    Seeds are paired: if all levels have the same number of runs, run s of each level counts as the same seed, and what
    a seed adds to all levels is removed. If the runs are not paired in fact, this costs one degree of freedom in eight
    (with eight levels). With different numbers of runs nothing is paired.

    Args:
        levels: Target SND of each level, all different: 0 where agents share all parameters, None for agents without a
            constraint. At least two, one of them 0 or None.
        rewards: Reward of every run at the end of training, ``[levels, seeds]``; a list of lists where levels have
            different numbers of runs; or a mapping from level to rewards.
        snd: Audited SND of every run, in the same form, or of every level ``[levels]``; the targets when None. Rewards
            belong to the SND that was reached, not to the target.
        confidence: Coverage of the intervals.
        seed: Seed of the simulated studies.

    Returns:
        The curve with its verdict.

    Raises:
        InputError: For equal levels, no level 0 or None, rewards that are not finite or do not fit, or one seed.

    Example:
        >>> runs = {0: [1.0, 1.1, 0.9], 0.3: [1.6, 1.4, 1.5], None: [1.2, 1.1, 1.3]}
        >>> print(level_curve(runs, runs, [0, 0.31, 0.82]))
        Diversity pays: +0.50 [0.16, 0.84] at SND 0.31
        Best other level, difference from unconstrained: +0.300 [0.011, 0.589]
        <BLANKLINE>
        level              SND seeds  reward                  difference from level 0
        0                    0     3  1.00 [0.75, 1.25]
        0.3 *             0.31     3  1.50 [1.25, 1.75]       +0.50 [0.16, 0.84]
        unconstrained     0.82     3  1.20 [0.95, 1.45]       +0.20 [-0.16, 0.56]
        * may be the best level
    """
    confidence = check_number("confidence", confidence, above=0, below=1)
    seed = check_integer("seed", seed, "to be an integer, at least 0", low=0)
    asked = _check_levels(levels)
    runs = _read("rewards", rewards, asked)
    counts = (~np.isnan(runs)).sum(1)
    if not (counts > 1).any():
        raise InputError("rewards", "with at least 2 seeds at some level", "1 at each")
    if snd is None:
        reached = [math.nan if level is None else level for level in asked]
    else:
        reached = np.nanmean(_read("snd", snd, asked), 1).tolist()
    low, high = find_gains(runs, confidence, np.random.default_rng(seed), min(DRAWS, MOST // runs.size))
    means = np.nanmean(runs, 1)
    gaps = np.stack([means[:, None] - means, low, high], -1)  # [level, over level, 3]
    errors = np.sqrt(np.nansum((runs - means[:, None]) ** 2, 1) / np.maximum(counts - 1, 1) / counts)
    half = stats.t.ppf((1 + confidence) / 2, counts - 1) * errors  # the quantile is NaN for one seed
    over = {level: tuple(Gain(*row) for row in gaps[:, place].tolist()) for place, level in enumerate(asked)}
    return LevelCurve(
        tuple(asked), tuple(reached), tuple(means.tolist()),
        tuple(zip((means - half).tolist(), (means + half).tolist(), strict=True)), tuple(counts.tolist()),
        int(means.argmax()), tuple(np.flatnonzero((low <= 0).all(0)).tolist()), over.get(0.0), over.get(None),
        confidence,
    )  # fmt: skip


def find_gains(runs: Array, confidence: float, generator: np.random.Generator, draws: int) -> tuple[Array, Array]:
    """Return simultaneous intervals of all differences of means.

    Args:
        runs: Rewards ``[..., levels, seeds]``, NaN where a level has fewer.
        confidence: Probability that all differences from one level are inside.
        generator: Generator of the simulated studies.
        draws: Number of simulated studies.

    Returns:
        Lower and upper ends of the difference of level j from level k, ``[..., j, k]``.
    """
    gaps, errors, variances = _compare(runs)
    noise = np.where(np.isnan(runs), np.nan, 1.0) * np.sqrt(variances)[..., None]
    studies = generator.standard_normal((draws, *runs.shape)) * noise
    gap, error, _ = _compare(studies)
    reach = np.quantile(np.abs(gap / error).max(-2), confidence, axis=0)[..., None, :] * errors
    reach = reach * (1 - np.eye(runs.shape[-2]))  # a level differs from itself by 0
    return gaps - reach, gaps + reach


def _compare(runs: Array) -> tuple[Array, Array, Array]:
    """Return differences of means and their standard errors ``[..., j, k]``, and the variances ``[..., levels]``."""
    absent = np.isnan(runs)
    counts, levels = (~absent).sum(-1), runs.shape[-2]
    means = np.nanmean(runs, -1)
    rest, freedom = runs - means[..., None], counts - 1.0
    if not absent.any():
        rest = rest - rest.mean(-2, keepdims=True)
        freedom = freedom * (levels - 1) / levels
    squares = np.nansum(rest**2, -1)
    common = squares.sum(-1, keepdims=True) / freedom.sum(-1, keepdims=True)
    variances = (squares + PRIOR * common) / (freedom + PRIOR)
    each = np.maximum(variances / counts, np.finfo(float).tiny)  # equal rewards have differences without error
    return means[..., :, None] - means[..., None, :], np.sqrt(each[..., :, None] + each[..., None, :]), variances


def _check_levels(levels: Iterable[float | None]) -> list[float | None]:
    asked = [None if level is None else check_number("levels", level, low=0, fix=UNCONSTRAINED) for level in levels]
    if len(asked) < 2 or len(set(asked)) < len(asked) or not {0.0, None} & set(asked):
        raise InputError("levels", "to be different, at least 2, with 0 (shared) or None (unconstrained)", asked)
    return asked


def _read(name: str, values: Any, levels: Sequence[float | None]) -> Array:
    """Return numbers by level and run ``[levels, most]``, NaN where a level has fewer."""
    if isinstance(values, Mapping):
        missing = [level for level in levels if level not in values]
        if missing:
            raise InputError(name, f"for every level, {levels}", f"none for {missing[0]}")
        values = [values[level] for level in levels]
    try:
        rows = [np.atleast_1d(np.asarray(_plain(row), dtype=float)) for row in _plain(values)]
    except (TypeError, ValueError):
        raise InputError(name, "to be numbers, [levels, seeds] or a list for each level", describe(values)) from None
    if len(rows) != len(levels) or any(row.ndim != 1 or not row.size for row in rows):
        got = [row.shape for row in rows]
        raise InputError(name, f"to be numbers of the runs of each of {len(levels)} levels", got)
    for level, row in zip(levels, rows, strict=True):
        if not np.isfinite(row).all():
            fix = "Leave out runs that crashed: a list of lists."
            raise InputError(name, "to be finite", f"NaN or infinite ones at level {level}", fix)
    most = max(row.size for row in rows)
    return np.stack([np.pad(row, (0, most - row.size), constant_values=np.nan) for row in rows])


def _plain(values: Any) -> Any:
    """Return a tensor of any device as an array, and anything else unchanged."""
    tensor = as_tensor(values)
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else values
