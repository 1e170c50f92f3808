from __future__ import annotations

from tests.campaign import mutations


def test_damaged_and_hostile_files_load_or_are_refused() -> None:
    outcome = mutations.run(0, 400)
    assert not outcome.failures, outcome.examples
    assert outcome.cases == 400
    assert outcome.refused > 250
