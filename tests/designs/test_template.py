from __future__ import annotations

import itertools

import pytest
import torch
from scipy import stats

import graphsnd as gs
from graphsnd.designs.template import ordered_subsets
from graphsnd.graphs.random import integer_seed
from graphsnd.kernels.relabelling import reference

CPU = torch.device("cpu")


def compiled(n: int, size: int, count: int, generator: torch.Generator) -> torch.Tensor:
    return ordered_subsets(n, size, count, generator, CPU)


def plain(n: int, size: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """What a GPU runs."""
    return reference(n, size, count, integer_seed(generator), CPU)


@pytest.mark.parametrize("draw", [compiled, plain])
@pytest.mark.parametrize(("n", "size"), [(5, 5), (5, 3), (9, 2), (4, 1)])
def test_every_ordered_subset_is_equally_likely(draw, n: int, size: int) -> None:
    count = 40_000
    rows = draw(n, size, count, torch.Generator().manual_seed(1)).tolist()
    seen = dict.fromkeys(itertools.permutations(range(n), size), 0)
    for row in rows:
        seen[tuple(row)] += 1
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


@pytest.mark.parametrize("draw", [compiled, plain])
def test_rows_hold_distinct_agents_of_a_large_team(draw) -> None:
    rows = draw(100_000, 8, 2000, torch.Generator().manual_seed(0))
    assert rows.shape == (2000, 8)
    assert int(rows.min()) >= 0
    assert int(rows.max()) < 100_000
    assert all(len(set(row)) == 8 for row in rows.tolist())
    assert stats.kstest(rows.flatten().double() / 100_000, "uniform").pvalue > 1e-3


def test_a_row_does_not_depend_on_the_rows_before_it_being_undone() -> None:
    """The deck is put back after each row: otherwise late rows would favour some agents."""
    rows = compiled(6, 3, 60_000, torch.Generator().manual_seed(3))[-20_000:]
    counts = torch.bincount(rows.flatten(), minlength=6)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4


def test_follows_the_generator() -> None:
    first, second = (compiled(50, 7, 20, torch.Generator().manual_seed(s)) for s in (4, 4))
    assert torch.equal(first, second)
    generator = torch.Generator().manual_seed(4)
    assert not torch.equal(compiled(50, 7, 20, generator), compiled(50, 7, 20, generator))


def test_odd_teams_leave_one_agent_out_of_a_matching() -> None:
    template = gs.designs.parse("matching").draw(7)
    assert (template.size, template.m) == (6, 3)


def test_a_ring_is_regular_and_simple() -> None:
    for n in (5, 6, 9, 30):
        for degree in (2, 4):
            template = gs.designs.parse(f"ring:{degree}").draw(n)
            edges = template.list_edges()
            assert set(torch.bincount(edges.flatten()).tolist()) == {min(degree, n - 1)}
            assert len({frozenset(edge) for edge in edges.tolist()}) == template.m


@pytest.mark.parametrize("text", ["ring:4", "matching", "agents:5", "agents:99", "ring:98"])
def test_edges_that_meet_are_counted(text: str) -> None:
    template = gs.designs.parse(text).draw(30)
    edges = map(set, template.list_edges().tolist())
    assert template.meeting == sum(bool(one & two) for one, two in itertools.combinations(edges, 2))
    assert gs.designs.parse(text).draw(30) is template  # kept, with what was counted
