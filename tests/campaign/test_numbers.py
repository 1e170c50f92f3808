from __future__ import annotations

from tests.campaign import numbers


def test_no_number_is_wrong() -> None:
    outcome = numbers.run(seed=0, cases=100)
    assert outcome.cases == 100
    assert not outcome.failures, outcome.examples
