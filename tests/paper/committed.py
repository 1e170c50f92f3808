"""Numbers that are computed again from committed data, beside the committed numbers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paper.experiment import Number


def assert_same_numbers(
    numbers: Mapping[str, Number | None], committed: dict[str, Number], *, rel: float = 1e-10
) -> None:
    """Every number is the committed one, but for last digits of another processor or SciPy; older files have more."""
    again = {name: number for name, number in numbers.items() if number is not None}
    assert set(again) <= set(committed)
    for name, number in again.items():
        assert number.clock == committed[name].clock, name
        for one, other in zip((number, *number.ends), (committed[name], *committed[name].ends), strict=True):
            for end in ("value", "low", "high"):
                new, old = getattr(one, end), getattr(other, end)
                assert (new is None) == (old is None), name
                assert new == (old if old is None else pytest.approx(old, rel=rel, abs=rel / 100)), name
