from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import InputError
from graphsnd.behavior import Norm
from graphsnd.control import Estimator, FreshGraph, Full, Nearest, PerObservation, parse_estimator
from graphsnd.control import plan as plan_module
from graphsnd.control.plan import Plan
from tests.control import plain


@pytest.fixture
def values(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(30, 6, 2, generator=generator)


def test_full_is_snd(values: torch.Tensor) -> None:
    found = Full().measure(values)
    assert float(found.value) == pytest.approx(plain.raw(values.numpy(), combinations(range(6), 2)), rel=1e-6)
    assert float(found.value) == pytest.approx(float(gs.snd(gs.Deterministic(values))), rel=1e-6)
    assert (int(found.pairs), bool(found.empty)) == (15, False)


@pytest.mark.parametrize("text", ["bernoulli:0.4", "uniform:4", "regular:3", "matching", "circulant:2", "agents:3"])
def test_sampled_estimates_are_unbiased(text: str, values: torch.Tensor) -> None:
    estimator, generator = parse_estimator(text), torch.Generator().manual_seed(3)
    found = np.asarray([float(estimator.measure(values, generator).value) for _ in range(600)])
    exact = float(Full().measure(values).value)
    assert abs(found.mean() - exact) < 4 * found.std() / np.sqrt(len(found))
    assert found.std() > 0


@pytest.mark.parametrize("text", ["full", "bernoulli:0.4", "regular:3", "matching", "agents:3"])
def test_stacked_runs_are_measured_as_alone(text: str, values: torch.Tensor) -> None:
    estimator = parse_estimator(text)
    stacked = torch.stack([values, 3 * values.flip(1)])
    together = estimator.measure(stacked, [torch.Generator().manual_seed(s) for s in (1, 2)])
    alone = [estimator.measure(v, torch.Generator().manual_seed(s)) for v, s in zip(stacked, (1, 2), strict=True)]
    assert together.value.tolist() == pytest.approx([float(one.value) for one in alone], rel=1e-12)
    assert together.pairs.tolist() == [int(one.pairs) for one in alone]


def test_an_empty_draw_measures_everything(values: torch.Tensor) -> None:
    none = FreshGraph(lambda n, g: gs.Graph(n, torch.zeros(0, 2, dtype=torch.int64)))
    found = none.measure(values, torch.Generator())
    assert (bool(found.empty), int(found.pairs)) == (True, 15)
    assert float(found.value) == float(Full().measure(values).value)


def test_subsets_ask_only_the_agents_they_need(values: torch.Tensor) -> None:
    plan = PerObservation(gs.AgentSubset(2)).plan(30, 6, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    assert plan.agents is not None
    assert plan.agents.shape == (30, 2)
    hidden = torch.full_like(values, torch.nan)
    rows = torch.arange(30).unsqueeze(1)
    hidden[rows, plan.agents] = values[rows, plan.agents]
    found = PerObservation(gs.AgentSubset(2)).measure(hidden, torch.Generator().manual_seed(0))
    apart = values[rows, plan.agents].double()
    assert float(found.value) == pytest.approx(float((apart[:, 0] - apart[:, 1]).norm(dim=1).mean()), rel=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_nearest_is_graph_snd_of_each_frames_graph(directed: bool, values: torch.Tensor) -> None:
    places = torch.randn(30, 6, 2, generator=torch.Generator().manual_seed(8))
    found = Nearest(2, directed=directed).measure(values, positions=places)
    means = []
    for point, where in zip(values.numpy(), places, strict=True):
        apart = torch.cdist(where.double(), where.double()).fill_diagonal_(torch.inf)
        arrows = [(i, int(j)) for i in range(6) for j in apart[i].argsort()[:2]]
        pairs = arrows if directed else list(nx.Graph(arrows).edges)
        means.append(plain.raw(point[None], pairs))
    assert float(found.value) == pytest.approx(np.mean(means), rel=1e-6)


def test_nearest_in_one_place_takes_the_lowest_indices() -> None:
    values = torch.tensor([0.0, 1.0, 10.0, 100.0]).view(1, 4, 1)
    found = Nearest(1, directed=True).measure(values, positions=torch.zeros(1, 4, 2))
    assert float(found.value) == pytest.approx((1 + 1 + 10 + 100) / 4)


def test_estimates_are_differentiable(values: torch.Tensor) -> None:
    points = values[:4].double().requires_grad_()
    for text in ("full", "bernoulli:0.5", "matching", "agents:3"):
        estimator = parse_estimator(text)

        def value(points: torch.Tensor, estimator: Estimator = estimator) -> torch.Tensor:
            return estimator.measure(points, torch.Generator().manual_seed(2)).value

        assert torch.autograd.gradcheck(value, (points,))


def test_what_is_missing_is_said(values: torch.Tensor) -> None:
    with pytest.raises(InputError, match="generator"):
        FreshGraph.bernoulli(0.5).measure(values)
    with pytest.raises(InputError, match="positions"):
        Nearest(2).measure(values)
    with pytest.raises(InputError, match="below the 6 agents"):
        Nearest(6).measure(values, positions=values)
    with pytest.raises(InputError, match="values"):
        Full().measure(values[0])
    with pytest.raises(InputError, match="one for each run"):
        Full().measure(torch.stack([values, values]), [torch.Generator()])


@pytest.mark.parametrize(
    "text", ["", "half", "full:3", "matching:2", "bernoulli", "bernoulli:x", "bernoulli:2", "knn:0"]
)
def test_texts_that_are_no_estimators(text: str) -> None:
    with pytest.raises(InputError):
        parse_estimator(text)


def test_graphs_of_all_runs_together_and_one_by_one() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(3, 20, 6, 2, generator=generator, requires_grad=True)
    plans = [Plan(gs.graphs.bernoulli(6, p, seed=1).edges) for p in (0.2, 0.5)] + [Plan(None, empty=True)]
    assert len({plan.pairs(6) for plan in plans}) == 3
    together = plan_module._together(plans, values, Norm.EUCLIDEAN)
    alone = torch.stack(
        [plan_module._one(plan, part, Norm.EUCLIDEAN) for plan, part in zip(plans, values, strict=True)]
    )
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)
    slopes = [torch.autograd.grad(each.sum(), values)[0] for each in (together, alone)]
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-7)
