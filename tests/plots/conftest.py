from __future__ import annotations

import pytest

from graphsnd.plots import Study, example_team, run_study


@pytest.fixture(scope="session")
def small() -> Study:
    """A team of 24 agents, measured every way."""
    return run_study(example_team(24, 200, seed=0), seed=0)
