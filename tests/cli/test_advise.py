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


@pytest.mark.parametrize(
    ("options", "word"),
    [(("--goal", "most"), "--goal"), (("--device", "tpu"), "--device"), (("--agents", 1), "--agents")],
)
def test_bad_input_is_named(options: tuple[object, ...], word: str, run: Any) -> None:
    result = run("advise", *SIZES, *options)
    assert result.exit_code == 2
    assert f"`{word}`" in result.stderr
