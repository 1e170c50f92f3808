"""Timing on machines that others use too: contestants take turns, and medians with quartiles are reported.

A slow second then hits all of them alike, and the ratio of two medians survives it. On a CPU with one thread, times are
of the processor: waiting for others, which a busy machine makes long, does not count.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch

from graphsnd.kernels.dispatch import available

# By title: rows of a result, and the columns to show, each the path of a value such as "contestants.cdist".
Tables = dict[str, tuple[Sequence[dict[str, Any]], Sequence[str]]]
REPEATED = 0.01  # seconds that the repeats of one measurement should last at least


@dataclass(frozen=True)
class Options:
    """What a benchmark is asked for."""

    device: torch.device
    quick: bool = False  # small teams, to see that it runs
    full: bool = False  # larger teams and more rounds
    seed: int = 0
    teams: tuple[Path, ...] = ()  # folders of trained teams, each with its observations
    begin: float = field(default_factory=perf_counter)

    @property
    def patience(self) -> dict[str, Any]:
        """Rounds and seconds of :func:`take_turns`."""
        rounds, seconds = (2, 0.0) if self.quick else (7, 5.0) if self.full else (5, 3.0)
        return {"rounds": rounds, "seconds": seconds}

    def step(self, name: str) -> None:
        """Print the name of a part as it begins, because the whole takes minutes."""
        print(f"{perf_counter() - self.begin:6.1f} s  {name}", file=sys.stderr)

    def each(self, name: str, sizes: Iterable[int], measure: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what ``measure`` gives for each team size."""
        rows = []
        for n in sizes:
            self.step(f"{name}, n = {n:,}")
            rows.append(measure(n))
        return rows


@dataclass(frozen=True, eq=False)
class Contestant:
    """Something to time."""

    name: str
    call: Callable[[], object]
    pairs: float | None = None  # pair distances that one whole call stands for
    share: float = 1.0  # part of the work that the call does; its time is divided by it
    notes: dict[str, Any] = field(default_factory=dict)  # how the part was chosen, for the JSON
    alone: bool = False  # time each call by itself, not several in a row


def make_limit(device: torch.device, features: int = 4) -> list[Contestant]:
    """Return the arithmetic limit of a device as a contestant; none where its compiler is not installed."""
    backend = "gpu" if device.type == "cuda" else "cpu"
    if available()[backend] is not None:
        return []
    limit = import_module(f"benchmarks.limit_{backend}").Limit(device, features)
    return [Contestant("limit", limit, limit.pairs)]


@dataclass(frozen=True)
class Clock:
    """Times calls on one device."""

    device: torch.device

    def seconds(self, call: Callable[[], object], repeats: int = 1) -> float:
        """Return the mean seconds of a call over ``repeats`` calls in a row."""
        if self.device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize(self.device)
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            torch.cuda.synchronize(self.device)
            return begin.elapsed_time(end) / 1000 / repeats
        now = process_time if torch.get_num_threads() == 1 else perf_counter
        start = now()
        for _ in range(repeats):
            call()
        return (now() - start) / repeats


def take_turns(
    contestants: Sequence[Contestant], clock: Clock, *, rounds: int, seconds: float
) -> dict[str, dict[str, Any]]:
    """Time every contestant once in each round.

    Args:
        contestants: Who takes part.
        clock: The device's clock.
        rounds: Rounds that are always played.
        seconds: Up to three times the rounds are played while less than this has passed.

    Returns:
        For each name: median, min and quartiles in seconds of a whole call, and what is known about the call.
    """
    repeats = {}
    for one in contestants:
        one.call()  # compiles, and fills caches
        repeats[one.name] = 1 if one.alone else _repeats(one, clock)
    times: dict[str, list[float]] = {one.name: [] for one in contestants}
    begin = perf_counter()
    for played in range(3 * rounds):
        if played >= rounds and perf_counter() - begin > seconds:
            break
        for one in contestants:
            times[one.name].append(clock.seconds(one.call, repeats[one.name]) / one.share)
    return {one.name: _record(one, times[one.name]) | {"repeats": repeats[one.name]} for one in contestants}


def summarise_times(times: Sequence[float]) -> dict[str, Any]:
    """Return median, min and quartiles of times in seconds."""
    # Quantiles need two values; a single one stands for all of them.
    q1, median, q3 = statistics.quantiles([*times, *times] if len(times) == 1 else times, n=4, method="inclusive")
    return {"median_s": median, "min_s": min(times), "q1_s": q1, "q3_s": q3, "rounds": len(times)}


def _repeats(one: Contestant, clock: Clock) -> int:
    """Return how many calls in a row last long enough to be timed."""
    spent = clock.seconds(one.call)
    if spent > REPEATED:
        return 1
    return max(1, min(200, round(REPEATED / max(min(spent, clock.seconds(one.call)), 1e-7))))


def _record(one: Contestant, times: list[float]) -> dict[str, Any]:
    summary = summarise_times(times)
    rate = None if one.pairs is None else one.pairs / summary["median_s"]
    return summary | {"pairs_per_second": rate, "share_timed": one.share} | one.notes
