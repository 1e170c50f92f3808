from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from benchmarks import share
from benchmarks.figures import share_figure
from benchmarks.timing import Options


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return share.measure(Options(torch.device("cpu"), quick=True))


def test_shares_are_rates_over_that_of_the_limit(result: dict[str, Any]) -> None:
    assert [(row["n"], row["features"]) for row in result["features"]] == [(4, 4), (4, 8), (16, 4), (16, 8)]
    for row in result["features"] + result["observations"]:
        snd, limit = row["contestants"]["snd"], row["contestants"]["limit"]
        rate = math.comb(row["n"], 2) * row["observations"] / snd["min_s"]
        fastest = limit["pairs_per_second"] * limit["median_s"] / limit["min_s"]
        assert row["share"] == pytest.approx(rate / fastest)


@pytest.mark.parametrize(
    ("gaps", "expected"), [((2, 1.5), None), ((0.5, 0.1), 10), ((10, 0.1), 10**1.5), ((2, 0.5, 2, 0.5), 10**3.5)]
)
def test_the_crossover_lies_between_the_sizes_where_the_faster_one_changes(
    gaps: tuple[float, ...], expected: float | None
) -> None:
    rows = [
        {"n": 10 ** (k + 1), "contestants": {"exact": {"min_s": 1.0}, "ring:4": {"min_s": gap}}}
        for k, gap in enumerate(gaps)
    ]
    found = share.crossing({"crossover": rows}, "ring:4")
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_figure_has_a_row_for_each_machine(result: dict[str, Any]) -> None:
    machine = {"device": "cpu", "hardware": {"threads": 2}}
    figure = share_figure([result | machine] * 2)
    assert len(figure.axes) == 6
    assert "features" in figure.axes[0].get_xlabel()
