from __future__ import annotations

import pytest

from graphsnd.plots import example_team
from graphsnd.plots.study import Study, run_study


@pytest.fixture(scope="session")
def small() -> Study:
    """A team of 24 agents, measured every way."""
    return run_study(example_team(24, 200, seed=0), seed=0)
