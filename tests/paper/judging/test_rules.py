from __future__ import annotations

from typing import Any

import pytest

from graphsnd.errors import InputError
from paper.experiment import Number
from paper.judging.rules import Rule

CASES: list[tuple[dict[str, Any], Number, bool]] = [
    ({"at_most": 1}, Number(1.0), True),
    ({"at_most": 1}, Number(1.0000001), False),
    ({"at_least": 1}, Number(1.0), True),
    ({"at_least": 1}, Number(0.99), False),
    ({"below": 1}, Number(1.0), False),
    ({"below": 1}, Number(0.99), True),
    ({"above": 1}, Number(1.0), False),
    ({"above": 1}, Number(1.01), True),
    ({"between": [9, 10]}, Number(9.0), True),
    ({"between": [9, 10]}, Number(10.1), False),
    ({"interval": {"covers": 1}}, Number(3.0, 0.9, 1.0), True),  # of the interval, not of the value
    ({"interval": {"covers": 1}}, Number(1.0, 1.1, 1.2), False),
    ({"interval": {"below": 1}}, Number(0.5, 0.1, 1.0), False),
    ({"interval": {"below": 1}}, Number(0.5, None, 0.99), True),
    ({"interval": {"above": 1}}, Number(1.5, 1.0, 2.0), False),
    ({"interval": {"above": 1}}, Number(1.5, 1.01), True),
    ({"interval": {"within": [0, 2]}}, Number(1.0, 0.0, 2.0), True),
    ({"interval": {"within": [0, 2]}}, Number(1.0, -0.1, 1.0), False),
    ({"at_least": 2, "interval": {"above": 1}}, Number(2.0, 1.5, 2.5), True),
    ({"at_least": 2, "interval": {"above": 1}}, Number(2.0, 0.5, 2.5), False),
    ({"at_least": 2, "interval": {"above": 1}}, Number(1.9, 1.5, 2.5), False),
]


@pytest.mark.parametrize(("entry", "number", "expected"), CASES)
def test_rules(entry: dict[str, Any], number: Number, expected: bool) -> None:
    assert Rule.parse(entry).holds(number) is expected


@pytest.mark.parametrize("test", ["covers", "below", "above"])
def test_an_interval_that_is_not_there_is_an_error(test: str) -> None:
    with pytest.raises(InputError, match="with an interval"):
        Rule.parse({"interval": {test: 1}}).holds(Number(1.0))
    if test != "covers":
        half = Number(1.0, 0.0, None) if test == "below" else Number(1.0, None, 2.0)
        with pytest.raises(InputError):
            Rule.parse({"interval": {test: 1}}).holds(half)


def test_the_last_digit_does_not_decide() -> None:
    mean = (0.461 + 0.435 + 0.514) / 3
    assert mean > 0.47
    assert Rule.parse({"between": [0.28, 0.47]}).holds(Number(mean))
    assert Rule.parse({"at_most": 0.47}).holds(Number(mean))
    assert not Rule.parse({"at_most": 0.47}).holds(Number(0.4700001))
    assert not Rule.parse({"at_most": 0}).holds(Number(1e-12))
