"""Timing for the experiments: calls take turns in every trial, each is timed alone, and all times are kept.

Turns matter on a machine that others use: a slow second hits all calls of a trial, and their ratio survives it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from paper.experiment import Number

CPU = torch.device("cpu")
RESAMPLES, LEAST = 4000, 5  # of the bootstrap; trials from which on it is used
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


def take_turns(
    calls: Mapping[str, Callable[[], int]],
    *,
    trials: Mapping[str, int] | int,
    device: torch.device = CPU,
    warm: int = 0,
) -> dict[str, Timing]:
    """Time every call once in each trial that it takes part in.

    Args:
        calls: Each does its work, reads the result, and returns the number of pairs it looked at.
        trials: In which each takes part, from the first one on.
        device: Synchronised before and after each call when it is a GPU.
        warm: Untimed rounds before the first trial.
    """
    for _ in range(warm):
        for call in calls.values():
            call()
    turns = dict.fromkeys(calls, trials) if isinstance(trials, int) else trials
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    pairs: dict[str, list[int]] = {name: [] for name in calls}
    for trial in range(max(turns.values())):
        for name, call in calls.items():
            if trial >= turns[name]:
                continue
            _wait(device)
            begin = perf_counter()
            count = call()
            _wait(device)
            seconds[name].append(round(perf_counter() - begin, DIGITS))
            pairs[name].append(count)
    return {name: Timing(seconds[name], pairs[name]) for name in calls}


def speedup(full: Sequence[float], part: Sequence[float], *, medians: bool = False, seed: int = 0) -> Number:
    r"""Return how many times faster the second is: the ratio of mean times, with an interval over trials.

    .. math:: \bar{T}_{\mathrm{full}} / \bar{T}_{\mathrm{part}}

    Means, as the paper has them, and not medians: at n = 4 and p = 0.1 every other draw is empty, so the median of the
    sampled time is that of no work at all.

    Args:
        full: Seconds in each trial.
        part: The same; where one has more trials, the first ones count.
        medians: Whether medians are divided in place of means.
        seed: Of the bootstrap.

    Returns:
        The ratio with a bootstrap interval over trials, or the range of the trials' own ratios where there are too few
        of them.

    Example:
        >>> speedup([2.0, 4.0], [1.0, 1.0])
        Number(value=3.0, low=2.0, high=4.0, unit='x', kind='range of 2 trials')
    """
    average = np.median if medians else np.mean
    common = min(len(full), len(part))
    above, below = np.array(full[:common]), np.array(part[:common])
    if common < LEAST:
        ratios, kind = above / below, f"range of {common} trial{'s' * (common > 1)}"
        low, high = ratios.min(), ratios.max()
    else:
        drawn = np.random.default_rng(seed).integers(common, size=(RESAMPLES, common))
        low, high = np.quantile(average(above[drawn], axis=1) / average(below[drawn], axis=1), (0.025, 0.975))
        kind = f"{'ratio of medians, ' * medians}95% bootstrap interval, {common} trials"
    return Number(float(average(above) / average(below)), low, high, "x", kind)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
