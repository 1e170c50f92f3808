"""The numbers of the designs that claims are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from paper.experiment import Number

BERNOULLI = "fixed bernoulli:0.1"


def numbers(data: dict[str, Any]) -> dict[str, Number]:
    """From what the experiment wrote down."""
    teams = data["teams"]
    found = {
        "fresh_over_graph_rmse": _worst([_ratio(team, _starting(team, "fresh circulant")) for team in teams]),
        "distances_needed": _worst([_share(team, "fewest distances", "distances") for team in teams]),
        "distances_needed_rmse": _worst([_ratio(team, _role(team, "fewest distances")) for team in teams]),
        "evaluations_needed": _worst([_share(team, "fewest evaluations", "evaluations") for team in teams]),
        "evaluations_needed_rmse": _worst([_ratio(team, _role(team, "fewest evaluations")) for team in teams]),
        "largest_design_z": _largest_z(teams),
        "rmse_over_exact": _over_exact(teams),
        "bernoulli_rmse": _worst([bernoulli(team)["rmse"] for team in teams]),
    }
    trained = [team for team in teams if team["team"].startswith("trained")]
    if trained:
        ratios = [_ratio(team, _starting(team, "fixed regular")) for team in trained]
        found["regular_over_bernoulli_rmse"] = _mean(ratios)
        exact = [_starting(team, "fixed regular")["exact"] / bernoulli(team)["exact"] for team in trained]
        found["regular_over_bernoulli_exact"] = _mean(exact)
    return found | _evaluations(data["evaluations"]) | _benchmarks(data["benchmarks"])


def bernoulli(team: dict[str, Any]) -> dict[str, Any]:
    """The row of the paper's estimator."""
    return next(row for row in team["designs"] if row["name"] == BERNOULLI)


def _starting(team: dict[str, Any], start: str) -> dict[str, Any]:
    return next(row for row in team["designs"] if row["name"].startswith(start))


def _role(team: dict[str, Any], role: str) -> dict[str, Any]:
    return next(row for row in team["designs"] if row["role"] == role)


def _ratio(team: dict[str, Any], row: dict[str, Any]) -> float:
    return float(row["rmse"] / bernoulli(team)["rmse"])


def _share(team: dict[str, Any], role: str, what: str) -> float:
    """Of all distances, or of all evaluations."""
    n, row = team["n"], _role(team, role)
    whole = n * (n - 1) // 2 if what == "distances" else n
    return float(row[what] / (whole * team["observations"]))


def _largest_z(teams: Sequence[dict[str, Any]]) -> Number:
    scores = [abs(row["bias"]) / row["bias_error"] for team in teams for row in team["designs"] if row["bias_error"]]
    return Number(max(scores), kind=f"largest of {len(scores)}")


def _over_exact(teams: Sequence[dict[str, Any]]) -> Number:
    ratios = [row["rmse"] / row["exact"] for team in teams for row in team["designs"] if row["exact"]]
    return Number(statistics.fmean(ratios), min(ratios), max(ratios), kind=f"range of {len(ratios)} cells")


def _evaluations(found: dict[str, Any]) -> dict[str, Number]:
    seconds = found["seconds"]
    shares = [a / (a + b) for a, b in zip(seconds["answers"], seconds["pairs"], strict=True)]
    touched = found["touched"]
    kind = f"median, range of {len(shares)} trials"
    numbers = {
        "evaluations_of_graph": Number(statistics.fmean(touched), min(touched), max(touched), kind=_range(touched))
    }
    if found["n"] == 100:
        numbers["evaluation_share"] = Number(statistics.median(shares), min(shares), max(shares), kind=kind)
    return numbers


def _benchmarks(rows: Sequence[dict[str, Any]]) -> dict[str, Number]:
    """From policies to the number: what sampling a tenth of the pairs saves once everything else is counted."""
    ratios = [row["all_pairs_s"] / row["graph_s"] for row in rows if row["n"] == 100]
    return {"whole_speedup": _worst(ratios, "x")} if ratios else {}


def _worst(values: Sequence[float], unit: str = "") -> Number:
    return Number(max(values), min(values), max(values), unit, kind=f"largest, {_range(values)}")


def _mean(values: Sequence[float]) -> Number:
    return Number(statistics.fmean(values), min(values), max(values), kind=f"mean, {_range(values)}")


def _range(values: Sequence[float]) -> str:
    return f"range of {len(values)}"
