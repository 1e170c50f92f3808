"""Timing for the experiments: calls take turns in every trial, each is timed alone, and all times are kept.

Turns matter on a machine that others use: a slow second hits all calls of a trial, and their ratio survives it. What
lasts longer than a trial, another program or a clock that slows down, makes neighbouring trials alike. So an interval
is over blocks of trials, whose ratios differ by that noise too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from scipy.stats import t

from benchmarks import timing
from benchmarks.timing import Clock
from graphsnd.errors import plural
from paper.experiment import Number

CPU = torch.device("cpu")
BLOCKS = 5  # of consecutive trials
DIGITS = 9  # of seconds that are kept: nanoseconds


@dataclass(frozen=True)
class Timing:
    """The times of one call."""

    seconds: list[float]  # of every trial
    pairs: list[int]  # that the call looked at in every trial
    whole: float = 1.0  # by which seconds are multiplied where a part of the work was timed

    @property
    def quartiles(self) -> list[float]:
        """Return the first quartile of the seconds, their median, and the third quartile.

        Example:
            >>> Timing([1.0, 2.0, 9.0], [1, 1, 1]).quartiles
            [1.5, 2.0, 5.5]
        """
        return (
            statistics.quantiles(self.seconds, n=4, method="inclusive") if len(self.seconds) > 1 else 3 * self.seconds
        )

    def number(self, factor: float = 1.0, unit: str = "s") -> Number:
        """Return the median of the whole work with its quartiles, in seconds times ``factor``."""
        q1, median, q3 = (factor * (seconds * self.whole) for seconds in self.quartiles)
        return Number(median, q1, q3, unit, "quartiles")


class Fastest(Clock):
    """Counts the fastest of several calls in a row: right after another one, a call would find its caches empty."""

    def seconds(self, call: Callable[[], object], repeats: int = 1) -> float:
        """Return the least seconds of a call."""
        return min(super(Fastest, self).seconds(call) for _ in range(repeats))


def take_turns(
    calls: Mapping[str, Callable[[], int]],
    *,
    trials: Mapping[str, int] | int,
    clock: Clock | None = None,
    block: int = 1,
    warm: int = 0,
) -> dict[str, Timing]:
    """Time every call once in each trial that it takes part in; see :func:`benchmarks.timing.take_turns`.

    Args:
        calls: Each does its work, reads the result, and returns the number of pairs it looked at.
        trials: In which each takes part, from the first one on.
        clock: Clock; the wall clock on a CPU when None.
        block: Calls in a row of a trial.
        warm: Untimed rounds before the first trial.
    """
    counts: dict[str, list[int]] = {name: [] for name in calls}
    counted = {name: partial(_count, call, counts[name]) for name, call in calls.items()}
    times = timing.take_turns(counted, clock or Clock(CPU, wall=True), rounds=trials, repeats=block, warm=warm)
    return {
        name: Timing([round(each, DIGITS) for each in seconds], counts[name][warm::block])
        for name, seconds in times.items()
    }


def _count(call: Callable[[], int], counts: list[int]) -> None:
    counts.append(call())


def speedup(full: Sequence[float], part: Sequence[float], *, medians: bool = False) -> Number:
    r"""Return how many times faster the second is: the ratio of mean times, with an interval over blocks of trials.

    .. math:: \bar{T}_{\mathrm{full}} / \bar{T}_{\mathrm{part}} \cdot
        \exp(\pm t_{b-1} \, s_{\log} / \sqrt{b})

    Means, as the paper has them, and not medians: at n = 4 and p = 0.1 every other draw is empty, so the median of the
    sampled time is that of no work at all.

    Args:
        full: Seconds in each trial.
        part: The same; where one has more trials, the first ones count.
        medians: Whether medians are divided in place of means.

    Returns:
        The ratio with a 95% t interval from the logarithms of the ratios of b = 5 blocks; of as many as there are
        trials where those are fewer. One trial has no interval.

    Example:
        >>> ratio = speedup([2.0, 4.0], [1.0, 1.0])
        >>> ratio.value, round(ratio.low, 3), ratio.kind
        (3.0, 0.037, '95% t interval, 2 blocks of 1 trial')
        >>> speedup([2.0], [1.0])
        Number(value=2.0, low=None, high=None, unit='x', kind='one trial', clock=True)
    """
    average = np.median if medians else np.mean
    common = min(len(full), len(part))
    above, below = np.array(full[:common]), np.array(part[:common])
    value, blocks = float(average(above) / average(below)), min(BLOCKS, common)
    if blocks < 2:
        return Number(value, unit="x", kind="one trial", clock=True)
    split = zip(np.array_split(above, blocks), np.array_split(below, blocks), strict=True)
    logs = np.log([average(one) / average(other) for one, other in split])
    reach = float(t.ppf(0.975, blocks - 1) * logs.std(ddof=1) / blocks**0.5)
    size = common // blocks
    kind = f"{'ratio of medians, ' * medians}95% t interval, {blocks} blocks of {size} {plural('trial', size)}"
    return Number(value, value * math.exp(-reach), value * math.exp(reach), "x", kind, clock=True)


def mean_time(seconds: Sequence[float]) -> Number:
    """Return a mean time with its interval over blocks of trials, as that of :func:`speedup`."""
    return replace(speedup(seconds, [1.0] * len(seconds)), unit="s")


def median_time(seconds: Sequence[float]) -> Number:
    """Return a median time with its interval over blocks of trials, as that of :func:`speedup`."""
    number = speedup(seconds, [1.0] * len(seconds), medians=True)
    return replace(number, unit="s", kind=number.kind.removeprefix("ratio of "))
