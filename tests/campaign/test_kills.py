from __future__ import annotations

from tests.campaign import kills


def test_after_kills_a_run_goes_on_to_the_same_bits() -> None:
    outcome = kills.run(0, 6)
    assert not outcome.failures, outcome.examples
