from __future__ import annotations

from tests.campaign import calls


def test_every_public_callable_answers_or_refuses() -> None:
    outcome = calls.run(seed=0, cases=600)
    assert outcome.cases > 1000  # a valid call of each, and the hostile ones
    assert outcome.refused > 300
    assert not outcome.failures, outcome.examples
