from __future__ import annotations

from graphsnd.plots.formatting import distance_unit


def test_units() -> None:
    assert distance_unit("wasserstein") == "action units"
    assert distance_unit("total-variation") == "total variation, at most 1"
