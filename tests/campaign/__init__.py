"""Attacks on the library: hostile calls, command lines, damaged files, faults, kills, load.

A theme is a module of this folder with ``run(seed, cases) -> Outcome``; its ``FULL`` is the number of cases of a long
run. ``make campaign`` runs them all; the tests of this folder run a small number of cases of each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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
