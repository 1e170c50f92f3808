from __future__ import annotations

from dataclasses import replace

import networkx
import pytest
import torch
from scipy.stats import spearmanr

from graphsnd import graphs
from paper.expanders.comparison import Data, ordered_split
from paper.expanders.families import AS_PUBLISHED, Family
from paper.expanders.reported import Reported, report, summarise_reported
from paper.rows import decode
from paper.runner import RESULTS, read_result


def test_loads_are_twice_the_betweenness_that_is_counted_by_hand() -> None:
    # The middle edge of a path of four carries two times two pairs, in both directions.
    path = graphs.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    assert ordered_split(path) == 8
    assert ordered_split(graphs.complete(5)) == 2


def test_the_graphs_of_the_committed_rows_are_drawn_again() -> None:
    data = decode(Data, read_result(RESULTS / "expanders" / "paper.json").data)
    rows = [row for row in data.rows(trained=False, own=True) if row.family != Family.UNION]
    found = report([row for row in rows if (row.n, row.degree) == (50, 6)], 50)
    assert {one.family for one in found} == {family.value for family in AS_PUBLISHED[:3]}
    for one in found[:5]:  # random regular
        graph = graphs.random_regular(50, 6, seed=found.index(one)).to_networkx()
        values = sorted(networkx.adjacency_spectrum(graph).real)
        assert one.gap == pytest.approx(1 - max(values[-2], -values[0]) / 6)
        assert one.split is None


def test_known_numbers() -> None:
    rows = [
        Reported(500, degree, family.value, off=0.1 * k, gap=0.2 * k, split=load * (1.0 + k))
        for degree, load in ((9, 10.0), (18, 4.0))
        for k, family in enumerate(AS_PUBLISHED)
    ]
    rows[-1] = replace(rows[-1], gap=0.0)
    numbers = summarise_reported(rows)
    order = [spearmanr(range(4), gaps).statistic for gaps in ([0, 1, 2, 3], [0, 1, 2, 0])]
    assert numbers["gap_correlation"].value == pytest.approx(sum(order) / 2)
    assert numbers["split_over_regular_smallest_n500"].value == 2
    assert numbers["split_over_regular_largest_n500"].value == 4
    assert numbers["split_over_regular_largest_n500"].kind == "knn, union, d = 9"
