"""Acceptance rules: what a measured number must satisfy for a claim to stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphsnd.errors import InputError
from paper.experiment import Number

Ends = tuple[float, ...]


def _below(one: float, two: float) -> bool:
    """At most as large, up to rounding: a mean of shares that is exactly the limit must not fail by a last digit."""
    return one <= two or math.isclose(one, two, rel_tol=1e-9, abs_tol=0.0)


# What is written, how it reads, how many numbers it takes, and the test itself.
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
    """One test of a number or of its interval."""

    interval: bool  # whether [low, high] is tested, or the value
    test: str  # a key of INTERVAL or of VALUE
    ends: Ends

    def holds(self, number: Number) -> bool:
        """Whether ``number`` passes.

        Raises:
            InputError: When an interval is tested that the number does not have.
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
    def parse(cls, entry: Any, name: str = "rule") -> Rule:
        """Read ``{at_most: 1.0e-12}``, ``{between: [9, 10]}`` or ``{interval: {covers: 1}}``.

        Args:
            entry: What YAML made of it.
            name: Of the rule, for error messages.

        Raises:
            InputError: For anything else.
        """
        if not isinstance(entry, dict) or not entry:
            raise InputError(name, "to map a test to its limit", repr(entry), "For example: {at_most: 0.01}")
        conditions = []
        for test, limit in entry.items():
            if test != "interval":
                conditions.append(_condition(name, False, test, limit))
                continue
            if not isinstance(limit, dict) or not limit:
                raise InputError(f"{name}.interval", f"to hold one of {', '.join(INTERVAL)}", repr(limit))
            conditions += [_condition(f"{name}.interval", True, inner, ends) for inner, ends in limit.items()]
        return cls(tuple(conditions))

    def holds(self, number: Number) -> bool:
        """Whether all conditions hold."""
        return all(condition.holds(number) for condition in self.conditions)

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


def _condition(name: str, interval: bool, test: Any, limit: Any) -> Condition:
    known: dict[str, Any] = INTERVAL if interval else VALUE
    if test not in known:
        names = [*known] if interval else [*known, "interval"]
        raise InputError(name, f"with tests among {', '.join(names)}", repr(test))
    count = known[test][1]
    ends = limit if isinstance(limit, list) else [limit]
    good = all(isinstance(end, (int, float)) and not isinstance(end, bool) and math.isfinite(end) for end in ends)
    if len(ends) != count or not good:
        expected = "to be a finite number" if count == 1 else f"to be a list of {count} finite numbers"
        fix = "YAML reads 1e-3 as text: write 1.0e-3." if any(isinstance(end, str) for end in ends) else ""
        raise InputError(f"{name}.{test}", expected, repr(limit), fix)
    if count == 2 and ends[0] > ends[1]:
        raise InputError(f"{name}.{test}", "with the lower end first", repr(limit))
    return Condition(interval, test, tuple(float(end) for end in ends))
