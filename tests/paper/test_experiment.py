from __future__ import annotations

import statistics

import numpy as np
import pytest

from paper.experiment import Number


@pytest.mark.parametrize(("pick", "value", "word"), [
    (max, 9.0, "largest"), (min, 1.0, "smallest"), (statistics.fmean, 4.0, "mean"), (statistics.median, 2.0, "median"),
])  # fmt: skip
def test_a_range(pick: object, value: float, word: str) -> None:
    number = Number.range(iter([2.0, 1.0, 9.0]), "seeds", pick=pick, unit="x")  # type: ignore[arg-type]
    assert number == Number(value, 1.0, 9.0, "x", f"{word}, range of 3 seeds")


def test_numbers_are_plain_floats() -> None:
    number = Number(np.float32(0.5), np.int64(0), 1)
    assert [type(end) for end in (number.value, number.low, number.high)] == [float] * 3
