"""Numbers of the core are those of tests/baselines/frozen.json, which an earlier commit computed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.baselines import make_frozen

FROZEN = json.loads(make_frozen.FILE.read_text(encoding="utf-8"))
CASES = dict(make_frozen.cases())
# Slopes in single precision are rounded pull by pull, so another order of the pulls moves each by up to 4e-7 of the
# largest, and sums of up to 17,160 slopes, which cancel, by more.
SUMS_OF_SLOPES = 2e-5


def test_the_cases_are_those_of_the_file() -> None:
    assert set(CASES) == set(FROZEN)
    assert len(FROZEN) > 150


@pytest.mark.parametrize("name", FROZEN)
def test_numbers_did_not_move(name: str) -> None:
    tolerance = 1e-6 if "float32" in name or "modules" in name else 1e-12
    compare(json.loads(json.dumps(CASES[name]())), FROZEN[name], tolerance, name)


def compare(value: Any, frozen: Any, tolerance: float, where: str) -> None:
    """Compare numbers inside of lists and dicts; what was exactly 0 is exactly 0."""
    if isinstance(frozen, dict):
        assert set(value) == set(frozen), where
        for key in frozen:
            single = tolerance == 1e-6 and key in ("gradients", "slopes")
            compare(value[key], frozen[key], SUMS_OF_SLOPES if single else tolerance, f"{where}: {key}")
    elif isinstance(frozen, list) and frozen and all(isinstance(x, float) for x in frozen):
        # Single numbers of a list may cancel; they are compared in units of the largest. The last two are sums.
        assert all(x == 0 for x, before in zip(value[:8], frozen[:8], strict=True) if before == 0), where
        assert value == pytest.approx(frozen, rel=tolerance, abs=tolerance * max(map(abs, frozen))), where
    elif isinstance(frozen, list):
        assert len(value) == len(frozen), where
        for one, two in zip(value, frozen, strict=True):
            compare(one, two, tolerance, where)
    elif isinstance(frozen, float) and frozen:
        assert value == pytest.approx(frozen, rel=tolerance), where
    else:
        assert value == frozen, where
