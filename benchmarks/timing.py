"""Timing on shared machines: calls take turns, and medians with quartiles are reported.

A slow second then affects all calls alike, and the ratio of two medians hardly changes. On a CPU with one thread, times
are processor times: waiting for other programs does not count.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch

from graphsnd.kernels.dispatch import available

REPEATED = 0.01  # seconds that the repeats of one measurement should last at least


@dataclass(frozen=True)
class Options:
    """The options of a benchmark."""

    device: torch.device
    quick: bool = False  # small teams, to see that it runs
    full: bool = False  # larger teams and more rounds
    seed: int = 0
    teams: tuple[Path, ...] = ()  # folders of trained teams, each with its observations
    begin: float = field(default_factory=perf_counter)

    @property
    def rounds(self) -> int:
        """Rounds of :func:`race`."""
        return 2 if self.quick else 15 if self.full else 9

    def step(self, name: str) -> None:
        """Print the name of a part as it begins, because the whole takes minutes."""
        print(f"{perf_counter() - self.begin:6.1f} s  {name}", file=sys.stderr)

    def each(self, name: str, sizes: Iterable[int], measure: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the result of ``measure`` for each team size."""
        rows = []
        for n in sizes:
            self.step(f"{name}, n = {n:,}")
            rows.append(measure(n))
        return rows


@dataclass(frozen=True)
class Clock:
    """Times calls on one device: by events on a GPU, by processor time on a CPU with one thread, else by wall clock."""

    device: torch.device
    wall: bool = False  # whether to use the wall clock everywhere, and to wait for the device before and after

    def seconds(self, call: Callable[[], object], repeats: int = 1) -> float:
        """Return the mean seconds of a call over ``repeats`` calls in a row."""
        cuda = self.device.type == "cuda"
        if cuda and not self.wall:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize(self.device)
            begin.record()
            for _ in range(repeats):
                call()
            end.record()
            torch.cuda.synchronize(self.device)
            return begin.elapsed_time(end) / 1000 / repeats
        now = perf_counter if self.wall or torch.get_num_threads() > 1 else process_time
        wait = torch.cuda.synchronize if cuda else lambda: None
        wait()
        start = now()
        for _ in range(repeats):
            call()
        wait()
        return (now() - start) / repeats


def take_turns(
    calls: Mapping[str, Callable[[], object]],
    clock: Clock,
    *,
    rounds: Mapping[str, int] | int,
    repeats: Mapping[str, int] | int = 1,
    warm: int = 1,
) -> dict[str, list[float]]:
    """Time every call once in each round that it takes part in; the one timing loop of this repository.

    Every other round runs in reverse order, so that no call always follows the same one.

    Args:
        calls: Calls to time, by name.
        clock: The device's clock.
        rounds: Number of rounds; by name where calls take part in the first few only.
        repeats: Calls in a row whose mean is one time; by name where they differ.
        warm: Untimed rounds before the first one, which compile and fill caches.

    Returns:
        The seconds of every round, by name.
    """
    for call in [*calls.values()] * warm:
        call()
    turns, often = (dict.fromkeys(calls, each) if isinstance(each, int) else each for each in (rounds, repeats))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for played in range(max(turns.values())):
        for name in list(calls)[:: -1 if played % 2 else 1]:
            if played < turns[name]:
                times[name].append(clock.seconds(calls[name], often[name]))
    return times


@dataclass(frozen=True, eq=False)
class Contestant:
    """Something to time."""

    name: str
    call: Callable[[], object]
    pairs: float | None = None  # number of pair distances that one whole call stands for
    share: float = 1.0  # part of the work that the call does; its time is divided by it
    notes: dict[str, Any] = field(default_factory=dict)  # how the part was chosen, for the JSON
    alone: bool = False  # time each call by itself, not several in a row


def make_limit(device: torch.device, features: int = 4) -> list[Contestant]:
    """Return the arithmetic limit of a device as a contestant; an empty list if its compiler is not installed."""
    backend = "gpu" if device.type == "cuda" else "cpu"
    if available()[backend] is not None:
        return []
    limit = import_module(f"benchmarks.limit_{backend}").Limit(device, features)
    return [Contestant("limit", limit, limit.pairs)]


def race(contestants: Sequence[Contestant], clock: Clock, rounds: int) -> dict[str, dict[str, Any]]:
    """Return median, min and quartiles in seconds of a whole call of each contestant, and its rates and notes."""
    calls, repeats = {one.name: one.call for one in contestants}, {}
    for one in contestants:
        one.call()
        repeats[one.name] = 1 if one.alone else _count_repeats(one, clock)
    times = take_turns(calls, clock, rounds=rounds, repeats=repeats, warm=0)
    found = {}
    for one in contestants:
        summary = summarise_times([seconds / one.share for seconds in times[one.name]])
        rate = None if one.pairs is None else one.pairs / summary["median_s"]
        about = {"pairs_per_second": rate, "share_timed": one.share, "repeats": repeats[one.name]}
        found[one.name] = summary | about | one.notes
    return found


def summarise_times(times: Sequence[float]) -> dict[str, Any]:
    """Return median, min and quartiles of times in seconds."""
    # Quantiles need two values; a single one stands for all of them.
    q1, median, q3 = statistics.quantiles([*times, *times] if len(times) == 1 else times, n=4, method="inclusive")
    return {"median_s": median, "min_s": min(times), "q1_s": q1, "q3_s": q3, "rounds": len(times)}


def _count_repeats(one: Contestant, clock: Clock) -> int:
    """Return how many calls in a row last long enough to be timed."""
    spent = clock.seconds(one.call)
    if spent > REPEATED:
        return 1
    return max(1, min(200, round(REPEATED / max(min(spent, clock.seconds(one.call)), 1e-7))))
