"""Numbers that are computed again from committed data, beside the committed numbers."""

from __future__ import annotations

from typing import Any

import pytest

from paper.experiment import Number


def assert_same_numbers(numbers: Any, committed: dict[str, Number], *, rel: float = 0.0) -> None:
    """Every committed number that is still a field is the same, to a relative tolerance."""
    again = {name: number for name, number in vars(numbers).items() if number is not None}
    assert set(again) == set(committed)
    for name, number in committed.items():
        for end in ("value", "low", "high"):
            new, old = getattr(again[name], end), getattr(number, end)
            assert (new is None) == (old is None), name
            assert new == (old if old is None or not rel else pytest.approx(old, rel=rel, abs=rel / 100)), name
