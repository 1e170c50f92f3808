from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import share
from benchmarks.__main__ import main
from benchmarks.figures import share_figure
from benchmarks.timing import Options
from graphsnd.estimation import costs


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


def test_rates_explain_the_times_they_come_from(result: dict[str, Any]) -> None:
    rate, parts = costs.Rate(**result["rates"]), result["parts"]
    n, observations = result["n"], result["observations_of_costs"]
    exact = math.comb(n, 2) * observations * 2 * 4 / rate.second
    assert exact == pytest.approx(parts["exact"]["min_s"])
    unit = exact / (math.comb(n, 2) * observations)
    assert rate.call * unit == pytest.approx(parts["tiny"]["min_s"])
    assert rate.point * unit * n * observations == pytest.approx(parts["bound"]["min_s"])
    assert all(value >= 0 for value in result["rates"].values())


def test_the_package_gets_the_rates_of_a_device_and_keeps_the_others(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made = tmp_path / "costs.json", tmp_path / "share.json"
    file.write_text(costs.FILE.read_text())
    source = {"format": 1, "suite": "share", "device": "cpu", "hardware": {}}
    made.write_text(json.dumps(result | source | dict.fromkeys(("command", "commit", "date"), "known")))
    monkeypatch.setattr(share.costs, "FILE", file)
    main(["--costs", str(made)])
    before, after = (json.loads(path.read_text()) for path in (Path(costs.__file__).with_name("costs.json"), file))
    assert after["cpu"]["rates"]["second"] == pytest.approx(result["rates"]["second"], rel=1e-2)
    assert after["cuda"] == before["cuda"]


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
