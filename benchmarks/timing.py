"""Timing on machines that others use too: contestants take turns, and medians with quartiles are reported.

A slow second then hits all of them alike, and the ratio of two medians survives it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

REPEATED = 0.01  # seconds that the repeats of one measurement should last at least


@dataclass(frozen=True, eq=False)
class Contestant:
    """Something to time."""

    name: str
    call: Callable[[], object]
    pairs: float | None = None  # pair distances that one whole call stands for
    share: float = 1.0  # part of the work that the call does; its time is divided by it
    notes: dict[str, Any] = field(default_factory=dict)  # how the part was chosen, for the JSON


@dataclass(frozen=True)
class Clock:
    """How calls are timed on one device."""

    device: torch.device

    def seconds(self, call: Callable[[], object], repeats: int = 1) -> float:
        """Mean seconds of a call over ``repeats`` calls in a row."""
        if self.device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize(self.device)
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            torch.cuda.synchronize(self.device)
            return begin.elapsed_time(end) / 1000 / repeats
        start = perf_counter()
        for _ in range(repeats):
            call()
        return (perf_counter() - start) / repeats

    def peak(self, call: Callable[[], object]) -> int | None:
        """Bytes that a call allocates at its peak beside its input; None on a CPU, where only the process is known."""
        if self.device.type != "cuda":
            call()
            return None
        torch.cuda.synchronize(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        call()
        torch.cuda.synchronize(self.device)
        return torch.cuda.max_memory_allocated(self.device) - before


def take_turns(
    contestants: Sequence[Contestant], clock: Clock, *, rounds: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """Time every contestant once in each round.

    Args:
        contestants: Who takes part.
        clock: The device's clock.
        rounds: Rounds that are always played.
        seconds: More rounds are played, up to three times as many, while less than this has passed.

    Returns:
        For each name: median, min and quartiles in seconds of a whole call, and what is known about the call.
    """
    peaks, repeats = {}, {}
    for one in contestants:
        one.call()  # compiles, and fills caches
        peaks[one.name] = clock.peak(one.call)
        repeats[one.name] = _repeats(one, clock)
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    begin = perf_counter()
    for played in range(3 * rounds):
        if played >= rounds and perf_counter() - begin > seconds:
            break
        for one in contestants:
            times[one.name].append(clock.seconds(one.call, repeats[one.name]) / one.share)
    return {
        one.name: _record(one, times[one.name]) | {"repeats": repeats[one.name], "peak_bytes": peaks[one.name]}
        for one in contestants
    }


def _repeats(one: Contestant, clock: Clock) -> int:
    """How many calls in a row last long enough to be timed."""
    spent = clock.seconds(one.call)
    if spent > REPEATED:
        return 1
    return max(1, min(200, round(REPEATED / max(min(spent, clock.seconds(one.call)), 1e-7))))


def _record(one: Contestant, times: list[float]) -> dict[str, Any]:
    q1, median, q3 = statistics.quantiles(times, n=4, method="inclusive")
    return {
        "median_s": median,
        "min_s": min(times),
        "q1_s": q1,
        "q3_s": q3,
        "rounds": len(times),
        "pairs_per_second": None if one.pairs is None else one.pairs / median,
        "share_timed": one.share,
        **one.notes,
    }
