"""Timing for the experiments: calls take turns in every trial, each is timed alone, and all times are kept.

Turns matter on a shared machine: a slow second affects all calls of a trial, and their ratio hardly changes. Longer
disturbances, such as another program or a clock that slows down, make neighbouring trials alike. So an interval is over
blocks of trials, whose ratios include that noise too.
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
BLOCKS = 5  # number of blocks of consecutive trials
DIGITS = 9  # decimal places of stored seconds: nanoseconds


@dataclass(frozen=True)
class Timing:
    """The times of one call."""

    seconds: list[float]  # seconds of every trial
    pairs: list[int]  # number of pairs that the call measured in every trial
    whole: float = 1.0  # factor from the timed part of the work to the whole

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
    """Clock that takes the fastest of several calls in a row, because the first call after another has cold caches."""

    def seconds(self, call: Callable[[], object], repeats: int = 1) -> float:
        """Return the seconds of the fastest call."""
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
        calls: Calls to time; each does its work, reads the result, and returns the number of pairs it measured.
        trials: Number of trials of each call, counted from the first trial.
        clock: Clock; the wall clock on a CPU when None.
        block: Number of calls in a row in a trial.
        warm: Number of untimed rounds before the first trial.
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

    It uses means, as the paper does, and not medians: at n = 4 and p = 0.1 every other draw is empty, so the median of
    the sampled time would be that of no work at all.

    Args:
        full: Seconds of the first call in each trial.
        part: Seconds of the second call; if one has more trials, the first ones count.
        medians: Divide medians instead of means.

    Returns:
        The ratio with a 95% t interval from the logarithms of the ratios of b = 5 blocks. With fewer than five trials
        each trial is a block. One trial has no interval.

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
    """Return a mean time with its interval over blocks of trials, as in :func:`speedup`."""
    return replace(speedup(seconds, [1.0] * len(seconds)), unit="s")


def median_time(seconds: Sequence[float]) -> Number:
    """Return a median time with its interval over blocks of trials, as in :func:`speedup`."""
    number = speedup(seconds, [1.0] * len(seconds), medians=True)
    return replace(number, unit="s", kind=number.kind.removeprefix("ratio of "))
