"""Timing for the experiments: calls take turns in every trial, each is timed alone, and all times are kept.

Turns matter on a machine that others use: a slow second hits all calls of a trial, and their ratio survives it.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch

RESAMPLES, LEAST = 4000, 5  # of the bootstrap; trials from which on it is used
DIGITS = 9  # of seconds that are kept: nanoseconds


def take_turns(
    calls: Mapping[str, Callable[[], int]], *, trials: Mapping[str, int], device: torch.device
) -> dict[str, dict[str, Any]]:
    """Time every call once in each trial that it takes part in.

    Args:
        calls: Each does its work, reads the result, and returns how many pairs it looked at.
        trials: In how many each takes part, from the first one on.
        device: Synchronised before and after each call when it is a GPU.

    Returns:
        For each name the ``seconds`` and the ``pairs`` of all trials, and median, quartiles and mean of the seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    pairs: dict[str, list[int]] = {name: [] for name in calls}
    for trial in range(max(trials.values())):
        for name, call in calls.items():
            if trial >= trials[name]:
                continue
            _wait(device)
            begin = perf_counter()
            count = call()
            _wait(device)
            seconds[name].append(round(perf_counter() - begin, DIGITS))
            pairs[name].append(count)
    return {name: {**summary(seconds[name]), "seconds": seconds[name], "pairs": pairs[name]} for name in calls}


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and mean.

    Example:
        >>> summary([1.0, 2.0, 9.0])
        {'median_s': 2.0, 'q1_s': 1.5, 'q3_s': 5.5, 'mean_s': 4.0}
    """
    q1, median, q3 = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else 3 * [seconds[0]]
    return {"median_s": median, "q1_s": q1, "q3_s": q3, "mean_s": statistics.fmean(seconds)}


def speedup(full: Sequence[float], part: Sequence[float], *, seed: int = 0) -> dict[str, Any]:
    r"""How many times faster the second is: the ratio of mean times, with an interval over trials.

    .. math:: \bar{T}_{\mathrm{full}} / \bar{T}_{\mathrm{part}}

    Means, as the paper has them, and not medians: at n = 4 and p = 0.1 every other draw is empty, so the median of the
    sampled time is that of no work at all.

    Args:
        full: Seconds in each trial.
        part: The same; where one has more trials, the first ones count.
        seed: Of the bootstrap.

    Returns:
        ``value``, ``low``, ``high`` and ``kind``, what the two ends are: a bootstrap over trials, or the range of
        the trials' own ratios where there are too few of them.

    Example:
        >>> speedup([2.0, 4.0], [1.0, 1.0])
        {'value': 3.0, 'low': 2.0, 'high': 4.0, 'kind': 'range of 2 trials'}
    """
    common = min(len(full), len(part))
    above, below = np.array(full[:common]), np.array(part[:common])
    if common < LEAST:
        ratios, kind = above / below, f"range of {common} trial{'s' * (common > 1)}"
        low, high = ratios.min(), ratios.max()
    else:
        drawn = np.random.default_rng(seed).integers(common, size=(RESAMPLES, common))
        low, high = np.quantile(above[drawn].mean(axis=1) / below[drawn].mean(axis=1), (0.025, 0.975))
        kind = f"95% bootstrap interval, {common} trials"
    return {"value": float(above.mean() / below.mean()), "low": float(low), "high": float(high), "kind": kind}


def conditions(device: torch.device) -> dict[str, Any]:
    """What a time depends on beside the work: threads, and how busy the machine is at this moment."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {"threads": torch.get_num_threads(), "load": load, "gpu": gpu}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
