"""Numbers of the core are those of tests/baselines/frozen.json, which an earlier commit computed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.baselines import make_frozen

FROZEN = json.loads(make_frozen.FILE.read_text(encoding="utf-8"))
CASES = dict(make_frozen.cases())
# Float32 slopes of Jensen-Shannon distances came from a compiled kernel in double precision, which is gone. Each slope
# moved by less than 1e-7 of the largest, but sums of 17,160 slopes, which cancel, by up to 6e-6 of it; against float64
# the old sums were off by as much.
TOLERANCES = {"metric categorical-JensenShannon() 130x33 float32": 1e-5}


def test_the_cases_are_those_of_the_file() -> None:
    assert set(CASES) == set(FROZEN)
    assert len(FROZEN) > 150


@pytest.mark.parametrize("name", FROZEN)
def test_numbers_did_not_move(name: str) -> None:
    tolerance = 1e-6 if "float32" in name or "modules" in name else 1e-12
    compare(json.loads(json.dumps(CASES[name]())), FROZEN[name], TOLERANCES.get(name, tolerance), name)


def compare(value: Any, frozen: Any, tolerance: float, where: str) -> None:
    """Compare numbers inside of lists and dicts; what was exactly 0 is exactly 0."""
    if isinstance(frozen, dict):
        assert set(value) == set(frozen), where
        for key in frozen:
            compare(value[key], frozen[key], tolerance, f"{where}: {key}")
    elif isinstance(frozen, list) and frozen and all(isinstance(x, float) for x in frozen):
        # Single numbers of a list may cancel; they are compared in units of the largest.
        assert all(x == 0 for x, before in zip(value, frozen, strict=True) if before == 0), where
        assert value == pytest.approx(frozen, rel=tolerance, abs=tolerance * max(map(abs, frozen))), where
    elif isinstance(frozen, list):
        assert len(value) == len(frozen), where
        for one, two in zip(value, frozen, strict=True):
            compare(one, two, tolerance, where)
    elif isinstance(frozen, float) and frozen:
        assert value == pytest.approx(frozen, rel=tolerance), where
    else:
        assert value == frozen, where
