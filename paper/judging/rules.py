"""Acceptance rules: what a measured number must satisfy to confirm a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphsnd.errors import InputError
from paper.experiment import Number

Ends = tuple[float, ...]


def _below(one: float, two: float) -> bool:
    """Return whether ``one`` is at most ``two``, up to rounding: a mean of shares exactly at the limit must pass."""
    return one <= two or math.isclose(one, two, rel_tol=1e-9, abs_tol=0.0)


# Name of the test in YAML, its text, the number of its limits, and the test itself.
VALUE: dict[str, tuple[str, int, Callable[[float, Ends], bool]]] = {
    "at_most": ("at most {}", 1, lambda value, ends: _below(value, ends[0])),
    "at_least": ("at least {}", 1, lambda value, ends: _below(ends[0], value)),
    "below": ("below {}", 1, lambda value, ends: value < ends[0]),
    "above": ("above {}", 1, lambda value, ends: value > ends[0]),
    "between": ("between {} and {}", 2, lambda value, ends: _below(ends[0], value) and _below(value, ends[1])),
}
INTERVAL: dict[str, tuple[str, int, Callable[[float, float, Ends], bool]]] = {
    "covers": ("interval covers {}", 1, lambda low, high, ends: low <= ends[0] <= high),
    "below": ("interval below {}", 1, lambda low, high, ends: high < ends[0]),
    "above": ("interval above {}", 1, lambda low, high, ends: low > ends[0]),
    "within": ("interval within {} and {}", 2, lambda low, high, ends: ends[0] <= low and high <= ends[1]),
}


@dataclass(frozen=True)
class Condition:
    """A test of a number or of its interval."""

    interval: bool  # whether [low, high] is tested instead of the value
    test: str  # a key of INTERVAL or of VALUE
    ends: Ends

    @classmethod
    def read(cls, interval: bool, test: str, limit: Any) -> Condition:
        """Return a condition from the name of its test, and one limit or a list of two.

        Raises:
            InputError: For an unknown test, and for limits that do not fit the test.
        """
        ends = tuple(float(end) for end in (limit if isinstance(limit, list) else [limit]))
        known: dict[str, Any] = INTERVAL if interval else VALUE
        if test not in known or len(ends) != known[test][1] or not -math.inf < ends[0] <= ends[-1] < math.inf:
            raise InputError("rule", f"of {', '.join(known)}, with finite limits in order", f"{{{test}: {limit}}}")
        return cls(interval, test, ends)

    def holds(self, number: Number) -> bool:
        """Return whether ``number`` passes.

        Raises:
            InputError: When an interval is tested and the number has none.
        """
        if not self.interval:
            return VALUE[self.test][2](number.value, self.ends)
        low, high = (math.nan if end is None else end for end in (number.low, number.high))
        missing = math.isnan(high if self.test == "below" else low if self.test == "above" else low + high)
        if missing:
            raise InputError("number", f"with an interval, because its rule is: {self}", f"{number.value:g} alone")
        return INTERVAL[self.test][2](low, high, self.ends)

    def __str__(self) -> str:
        if self.test == "between" and self.ends[0] == self.ends[1]:
            return f"exactly {self.ends[0]:g}"
        return (INTERVAL if self.interval else VALUE)[self.test][0].format(*(f"{end:g}" for end in self.ends))


@dataclass(frozen=True)
class Rule:
    """Conditions that must all hold.

    Example:
        >>> rule = Rule.parse({"at_least": 0.9, "interval": {"covers": 1}})
        >>> str(rule), rule.holds(Number(0.99, 0.97, 1.01)), rule.holds(Number(0.99, 0.98, 0.995))
        ('at least 0.9 and interval covers 1', True, False)
    """

    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, entry: dict[str, Any]) -> Rule:
        """Read ``{at_most: 1.0e-12}``, ``{between: [9, 10]}`` or ``{interval: {covers: 1}}``."""
        values = {test: limit for test, limit in entry.items() if test != "interval"}
        read = [Condition.read(False, *one) for one in values.items()]
        return cls((*read, *(Condition.read(True, *one) for one in entry.get("interval", {}).items())))

    def holds(self, number: Number) -> bool:
        """Return whether all conditions hold."""
        return all(condition.holds(number) for condition in self.conditions)

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))
