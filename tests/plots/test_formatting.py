from __future__ import annotations

import pytest

from graphsnd.plots.tables import format_duration, format_interval


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0009994, "999 us"), (0.0009996, "1.00 ms"), (0.9996, "1.00 s"), (99.96, "100 s")]
)
def test_durations_keep_three_digits_where_the_unit_changes(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_intervals_keep_trailing_zeros() -> None:
    assert format_interval((0.5, 1.25)) == "[0.5000, 1.250]"
