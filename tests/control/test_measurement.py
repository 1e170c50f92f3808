from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import InputError
from graphsnd.behavior.points import Norm, Points
from graphsnd.control import measurement
from graphsnd.control.measurement import Selection, measure_points, measure_selected, select_pairs
from graphsnd.designs.design import Agents, Bernoulli, Complete, Nearest, Radius, Uniform, as_design, parse
from tests.control import plain


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def values(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(30, 6, 2, generator=generator)


def test_complete_is_snd(values: torch.Tensor) -> None:
    measured = measure_points(Complete(), values)
    assert float(measured.value) == pytest.approx(plain.raw(values.numpy(), combinations(range(6), 2)), rel=1e-6)
    assert float(measured.value) == pytest.approx(float(gs.snd(gs.Deterministic(values))), rel=1e-6)
    assert not bool(measured.empty)


@pytest.mark.parametrize("text", ["bernoulli:0.4", "uniform:4", "regular:3", "matching", "ring:2", "agents:3"])
def test_sampled_estimates_are_unbiased(text: str, values: torch.Tensor) -> None:
    design, generator = parse(text), torch.Generator().manual_seed(3)
    measured = np.asarray([float(measure_points(design, values, generator).value) for _ in range(600)])
    exact = float(measure_points(Complete(), values).value)
    assert abs(measured.mean() - exact) < 4 * measured.std() / np.sqrt(len(measured))
    assert measured.std() > 0


@pytest.mark.parametrize(
    "text", ["complete", "bernoulli:0.4", "regular:3", "matching", "agents:3", "knn:2", "radius:0.2"]
)
def test_stacked_runs_are_measured_as_alone(text: str, values: torch.Tensor) -> None:
    stacked, places = torch.stack([values, 3 * values.flip(1)]), torch.rand(2, 30, 6, 2, generator=seeded(8))
    alone = [
        measure_points(text, v, seeded(s), positions=p) for s, (v, p) in enumerate(zip(stacked, places, strict=True))
    ]
    chosen = [
        select_pairs(parse(text), 30, 6, seeded(s), device=values.device, positions=p) for s, p in enumerate(places)
    ]
    rows = torch.arange(30).unsqueeze(1)
    shown = [v if c.agents is None else v[rows, c.agents] for v, c in zip(stacked, chosen, strict=True)]
    together = measure_selected(chosen, torch.stack(shown))
    assert together.value.tolist() == pytest.approx([float(one.value) for one in alone], rel=1e-12)


def test_an_empty_draw_measures_everything(values: torch.Tensor) -> None:
    never = Bernoulli(1e-12)
    measured = measure_points(never, values, torch.Generator().manual_seed(0))
    assert bool(measured.empty)
    assert float(measured.value) == float(measure_points(Complete(), values).value)


def test_subsets_ask_only_the_agents_they_need(values: torch.Tensor) -> None:
    selection = select_pairs(Agents(2), 30, 6, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    assert selection.agents is not None
    assert selection.agents.shape == (30, 2)
    hidden = torch.full_like(values, torch.nan)
    rows = torch.arange(30).unsqueeze(1)
    hidden[rows, selection.agents] = values[rows, selection.agents]
    measured = measure_points(Agents(2), hidden, torch.Generator().manual_seed(0))
    apart = values[rows, selection.agents].double()
    assert float(measured.value) == pytest.approx(float((apart[:, 0] - apart[:, 1]).norm(dim=1).mean()), rel=1e-6)


def test_nearest_is_graph_snd_of_each_frames_graph(values: torch.Tensor) -> None:
    places = torch.randn(30, 6, 2, generator=torch.Generator().manual_seed(8))
    measured = measure_points(Nearest(2), values, positions=places)
    means = []
    for point, where in zip(values.numpy(), places, strict=True):
        apart = torch.cdist(where.double(), where.double()).fill_diagonal_(torch.inf)
        arrows = [(i, int(j)) for i in range(6) for j in apart[i].argsort()[:2]]
        pairs = list(nx.Graph(arrows).edges)
        means.append(plain.raw(point[None], pairs))
    assert float(measured.value) == pytest.approx(np.mean(means), rel=1e-6)


def test_nearest_in_one_place_takes_the_lowest_indices() -> None:
    values = torch.tensor([0.0, 1.0, 10.0, 100.0]).view(1, 4, 1)
    measured = measure_points(Nearest(1), values, positions=torch.zeros(1, 4, 2))
    assert float(measured.value) == pytest.approx((1 + 10 + 100) / 3)


def test_estimates_are_differentiable(values: torch.Tensor) -> None:
    points = values[:4].double().requires_grad_()
    places = torch.rand(4, 6, 2, generator=torch.Generator().manual_seed(2))
    for text in ("complete", "bernoulli:0.5", "matching", "agents:3", "knn:2", "radius:0.3"):

        def value(points: torch.Tensor, text: str = text) -> torch.Tensor:
            return measure_points(parse(text), points, torch.Generator().manual_seed(2), positions=places).value

        assert torch.autograd.gradcheck(value, (points,))


def test_what_is_missing_is_said(values: torch.Tensor) -> None:
    with pytest.raises(InputError, match="generator"):
        measure_points(Uniform(5), values)
    with pytest.raises(InputError, match="positions"):
        measure_points(Nearest(2), values)
    with pytest.raises(InputError, match=r"`k` to be an integer in 1 .. n-1 = 5"):
        measure_points(Nearest(6), values, positions=values)
    with pytest.raises(InputError, match="values"):
        measure_points(Complete(), values[0])


def test_radius_is_graph_snd_of_each_observations_graph(values: torch.Tensor) -> None:
    places = torch.rand(30, 6, 2, generator=torch.Generator().manual_seed(8))
    measured = measure_points(Radius(0.1), values, positions=places)
    graphs = [gs.graphs.radius(place, 0.1) for place in places]
    means = [float(gs.graph_snd(gs.Deterministic(v[None]), g)) for v, g in zip(values, graphs, strict=True)]
    assert min(means) == 0 < max(means)  # an observation at which no two agents are in range has no diversity
    assert float(measured.value) == pytest.approx(np.mean(means), rel=1e-6)


def test_weighted_and_moving_graphs_are_their_graph_snd(values: torch.Tensor) -> None:
    edges, weights = torch.tensor([[0, 1], [2, 5], [3, 4]]), torch.tensor([0.5, 2.0, 0.0])
    graph, moving = gs.Graph(6, edges, weights), gs.graphs.radius(values[..., :2], 0.5)
    team = gs.Deterministic(values)
    assert float(measure_points(graph, values).value) == pytest.approx(float(gs.graph_snd(team, graph)), rel=1e-6)
    assert float(measure_points(moving, values).value) == pytest.approx(float(gs.graph_snd(team, moving)), rel=1e-6)
    for target, design in ((0.3, graph), (0.3, as_design(graph))):
        dico = gs.control.DiCo(target, design=design)
        scale, _, _ = dico.step(values, dico.initial())
        assert float(gs.graph_snd(gs.Deterministic(values * float(scale)), graph)) == pytest.approx(target, rel=1e-5)
        assert str(dico.design) == "custom"
    with pytest.raises(InputError, match="`design` for 3 observations"):
        measure_points(moving, values[:3])
    with pytest.raises(InputError, match=r"`positions`"):
        measure_points("knn:2", torch.rand(20, 6, 3), positions=torch.rand(6, 2))
    with pytest.raises(InputError, match="`positions` to be finite"):
        measure_points("knn:2", torch.rand(20, 6, 3), positions=torch.full((20, 6, 2), torch.nan))
    with pytest.raises(InputError, match="`design` on 6 agents, got a graph on 5"):
        measure_points(gs.graphs.complete(5), values)


def test_graphs_of_all_runs_together_and_one_by_one() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(3, 20, 6, 2, generator=generator, requires_grad=True)
    selections = [Selection(gs.graphs.bernoulli(6, p, seed=1)) for p in (0.2, 0.5)] + [Selection(None, empty=True)]
    edges = [gs.graphs.complete(6).edges if each.edges is None else each.edges.edges for each in selections]
    together = measurement._measure_together(edges, Points(values.flatten(0, 1), Norm.EUCLIDEAN))
    alone = measure_selected(selections, values).value
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)
    slopes = [torch.autograd.grad(each.sum(), values)[0] for each in (together, alone)]
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-7)
