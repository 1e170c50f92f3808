from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.designs import GraphDesign, Nearest, Radius, parse

POSITIONS = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bernoulli:0.4", gs.graphs.bernoulli(12, 0.4, seed=5)),
        ("uniform:20", gs.graphs.uniform(12, 20, seed=5)),
        ("regular:3", gs.graphs.random_regular(12, 3, seed=5)),
        ("knn:2", gs.graphs.knn(POSITIONS, 2)),
        ("radius:0.9", gs.graphs.radius(POSITIONS, 0.9)),
    ],
)
def test_every_design_draws_the_graph_of_the_library(text: str, expected: gs.Graph) -> None:
    design = parse(text)
    assert isinstance(design, GraphDesign)
    graph = design.draw(12, torch.Generator().manual_seed(5), POSITIONS)
    assert torch.equal(graph.edges, expected.edges)
    assert graph.inclusion == expected.inclusion
    assert design.unbiased == (graph.inclusion is not None)


@pytest.mark.parametrize("text", ["uniform:67", "regular:12", "knn:12"])
def test_values_out_of_range_are_the_builders_errors(text: str) -> None:
    design = parse(text)
    assert isinstance(design, GraphDesign)
    with pytest.raises(gs.InputError):
        design.draw(12, torch.Generator(), POSITIONS)


@pytest.mark.parametrize("text", ["knn:3", "radius:1"])
def test_spatial_designs_need_positions(text: str) -> None:
    design = parse(text)
    assert isinstance(design, GraphDesign)
    assert design.needs_positions
    with pytest.raises(gs.InputError, match=rf"`positions`.*{text}, got none"):
        design.draw(12, None)
    with pytest.raises(gs.InputError, match=r"`positions` with shape \(12, d\)"):
        design.draw(12, None, POSITIONS[:7])
    for wrong in (POSITIONS, POSITIONS.expand(3, 2, -1, -1), POSITIONS.expand(5, -1, -1)):
        with pytest.raises(gs.InputError, match=r"`positions` with shape \(6, 12, d\)"):
            design.select(6, 12, None, device=torch.device("cpu"), positions=wrong)


def test_random_designs_need_a_generator() -> None:
    with pytest.raises(gs.InputError, match="`generator`"):
        gs.designs.Uniform(3).draw(12, None)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-600, 2.0**-100, 2.0**100, 2.0**600, 2.0**1000])
def test_neighbours_do_not_depend_on_the_units(unit: float) -> None:
    positions = torch.randn(3, 6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for make in (lambda unit: Nearest(2), Radius):
        one, two = (
            make(u).select(3, 6, None, device=torch.device("cpu"), positions=positions * u) for u in (1.0, unit)
        )
        assert torch.equal(one.edges.edges, two.edges.edges)
        assert torch.equal(one.edges.starts, two.edges.starts)
