"""Attacks on the library: hostile calls, command lines, damaged files, faults, kills, load.

A theme is a module of this folder with ``run(seed, cases) -> Outcome``; its ``FULL`` is the number of cases of a long
run. ``make campaign`` runs them all; the tests of this folder run a small number of cases of each.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LONG = 10  # seconds of a processor that a case may take, and ten times as many on the clock of a busy machine


@dataclass
class Outcome:
    """What came of a theme's cases."""

    cases: int = 0
    refused: int = 0  # with the clear error that was expected
    failures: Counter[str] = field(default_factory=Counter)  # by kind and place, so that one fault counts once
    examples: dict[str, str] = field(default_factory=dict)  # the first case of each, enough to repeat it

    def fail(self, kind: str, example: str) -> None:
        """Note a failure."""
        self.failures[kind] += 1
        self.examples.setdefault(kind, example)


@contextmanager
def limited() -> Iterator[None]:
    """Raise TimeoutError in what takes over ``LONG`` seconds."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signals = (signal.SIGPROF, signal.SIGALRM)
    before = [signal.signal(number, stop) for number in signals]
    signal.setitimer(signal.ITIMER_PROF, LONG)
    signal.setitimer(signal.ITIMER_REAL, 10 * LONG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
