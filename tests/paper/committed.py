"""Numbers that are computed again from committed data, beside the committed numbers."""

from __future__ import annotations

from typing import Any

import pytest

from paper.experiment import Number


def assert_same_numbers(numbers: Any, committed: dict[str, Number], *, rel: float = 0.0) -> None:
    """Every number is the committed one, to a relative tolerance; older files have more of them."""
    again = {name: number for name, number in vars(numbers).items() if number is not None}
    assert set(again) <= set(committed)
    for name, number in again.items():
        for end in ("value", "low", "high"):
            new, old = getattr(number, end), getattr(committed[name], end)
            assert (new is None) == (old is None), name
            assert new == (old if old is None or not rel else pytest.approx(old, rel=rel, abs=rel / 100)), name
