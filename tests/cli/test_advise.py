from __future__ import annotations

import json
from typing import Any

import pytest

import graphsnd as gs

SIZES = ("--agents", 300, "--observations", 100_000)


@pytest.mark.parametrize("goal", ["global", "local", "proxy"])
def test_it_says_what_advise_returns(goal: str, run: Any) -> None:
    expected = gs.advise(300, 100_000, goal)
    assert json.loads(run("advise", *SIZES, "--goal", goal, "--json").stdout) == expected.to_dict()
    assert run("advise", *SIZES, "--goal", goal).stdout == f"{expected}\n"
