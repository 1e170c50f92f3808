"""A few seconds of load."""

from __future__ import annotations

import sys

import pytest

from tests.campaign import load


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_answers_under_load_are_those_of_one_thread() -> None:
    outcome = load.run(seed=0, cases=1)
    assert outcome.cases > 0
    assert not outcome.failures, outcome.examples
