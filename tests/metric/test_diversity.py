"""SND, Graph-SND and every number beside them against loops in double precision, and the laws that they obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from tests import oracles
from tests.cases import CASES, DETERMINISTIC, QUADRATURE, Case, each

seeds = st.integers(0, 2**31)


@each
def test_gradcheck(case: Case) -> None:
    graph = gs.Graph(3, torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.5, 2.0]))
    parameters = [p.requires_grad_() for p in case.parameters(observations=2, agents=3)]
    assert torch.autograd.gradcheck(lambda *p: gs.snd(case.build(*p), case.distance), parameters, atol=1e-6)
    weighted = lambda *p: gs.graph_snd(case.build(*p), graph, case.distance)  # noqa: E731
    assert torch.autograd.gradcheck(weighted, parameters, atol=1e-6)


def test_horvitz_thompson_equals_graph_snd_where_the_number_of_edges_is_fixed() -> None:
    behavior = DETERMINISTIC.behavior(agents=6)
    for graph in (gs.graphs.uniform(6, 4, seed=2), gs.graphs.random_regular(6, 2, seed=2)):
        torch.testing.assert_close(gs.horvitz_thompson(behavior, graph), gs.graph_snd(behavior, graph))


def test_horvitz_thompson_gradcheck() -> None:
    (actions,) = DETERMINISTIC.parameters(observations=2)
    graph = gs.graphs.uniform(4, 3, seed=0)
    found = lambda a: gs.horvitz_thompson(gs.Deterministic(a), graph)  # noqa: E731
    assert torch.autograd.gradcheck(found, (actions.requires_grad_(),))


def test_horvitz_thompson_refuses_fixed_and_weighted_graphs() -> None:
    behavior = DETERMINISTIC.behavior()
    for graph in (gs.graphs.complete(4), gs.graphs.cliques([0, 0, 1, 1])):
        with pytest.raises(gs.InputError, match=rf"`graph`.*inclusion probability.*{graph.family}.*graphsnd.graph_snd"):
            gs.horvitz_thompson(behavior, graph)
    drawn = gs.graphs.uniform(4, 3)
    weighted = gs.Graph(4, drawn.edges, torch.ones(3), inclusion=0.5)
    with pytest.raises(gs.InputError, match=r"`graph`.*without weights.*design"):
        gs.horvitz_thompson(behavior, weighted)


EMPTY = torch.zeros(0, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    "graph",
    [
        gs.Graph(4, EMPTY),
        gs.Graph(4, EMPTY, torch.zeros(0)),
        gs.Graph(4, torch.tensor([[0, 1], [2, 3]]), torch.zeros(2)),
    ],
    ids=["empty", "empty-weighted", "zero-weights"],
)
@each
def test_no_weight_is_zero_and_has_a_zero_gradient(case: Case, graph: gs.Graph) -> None:
    parameters = [p.requires_grad_() for p in case.parameters()]
    value = gs.graph_snd(case.build(*parameters), graph, case.distance)
    assert value == 0
    value.backward()
    assert all(p.grad is not None and torch.equal(p.grad, torch.zeros_like(p)) for p in parameters)


def test_horvitz_thompson_of_an_empty_draw_is_zero() -> None:
    value = gs.horvitz_thompson(DETERMINISTIC.behavior(), gs.Graph(4, EMPTY, inclusion=0.1))
    assert value == 0


def test_negligible_weight_next_to_a_huge_one() -> None:
    behavior = DETERMINISTIC.behavior()
    weights = torch.tensor([1e-300, 1e300], dtype=torch.float64)
    graph = gs.Graph(4, torch.tensor([[0, 1], [2, 3]]), weights)
    torch.testing.assert_close(gs.graph_snd(behavior, graph), gs.pairwise(behavior)[2, 3])


def test_gradient_reaches_the_weights() -> None:
    behavior = DETERMINISTIC.behavior()
    edges = torch.tensor([[0, 1], [1, 2], [2, 3]])
    weights = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    found = lambda w: gs.graph_snd(behavior, gs.Graph(4, edges, w))  # noqa: E731
    assert torch.autograd.gradcheck(found, (weights,))


DESIGNS = ("complete", "matching", "agents:2", "uniform:1", "ring:2", "regular:2")  # the last two for 3 agents


@st.composite
def graphs(draw: st.DrawFn, n: int) -> gs.Graph:
    """Draw a graph of some family, perhaps with weights of any size."""
    pairs = [(i, j) for i in range(n) for j in range(i)]
    kind, seed = draw(st.sampled_from(("complete", "uniform", "bernoulli", "own", "weighted"))), draw(seeds)
    if kind == "complete":
        return gs.graphs.complete(n)
    if kind == "uniform":
        return gs.graphs.uniform(n, draw(st.integers(1, len(pairs))), seed=seed)
    if kind == "bernoulli":
        return gs.graphs.bernoulli(n, draw(st.floats(0.3, 1.0)), seed=seed)
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    scale = 10.0 ** draw(st.sampled_from((0, -300, 300)))
    weights = torch.rand(len(edges), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    return gs.Graph(n, torch.tensor(edges), weights if kind == "weighted" else None)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of teams with more agents than observations
@given(st.sampled_from(CASES), st.sampled_from((torch.float64, torch.float32)), st.data())
def test_every_number_is_that_of_a_loop(case: Case, dtype: torch.dtype, data: st.DataObject) -> None:
    n, observations = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 4))
    parameters = case.parameters(dtype, observations=observations, agents=n, seed=data.draw(seeds))
    behavior, matrix, distance = case.build(*parameters), case.oracle(*parameters), case.distance
    single = 3e-5 if dtype == torch.float32 else 0.0
    tolerance = max(single, 2e-6 if case in QUADRATURE else 1e-10) * max(matrix.max(), 1e-300)

    def equal(found: object, expected: object) -> None:
        found = found.detach().double().numpy() if isinstance(found, torch.Tensor) else found
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)  # type: ignore[arg-type]

    snd = oracles.snd(matrix)
    equal(gs.pairwise(behavior, distance), matrix)
    equal(gs.snd(behavior, distance), snd)
    equal(gs.contributions(behavior, distance), matrix.sum(1) / (n - 1))
    graph = data.draw(graphs(n))
    edges, weights = graph.edges.tolist(), None if graph.weights is None else graph.weights.tolist()
    on_graph = oracles.graph_snd(matrix, edges, weights)
    equal(gs.graph_snd(behavior, graph, distance), on_graph)
    equal(gs.pairwise(behavior, distance, graph=graph), [matrix[i, j] for i, j in edges])
    if graph.inclusion is not None:
        total = math.fsum(matrix[i, j] for i, j in edges) / graph.inclusion / math.comb(n, 2)
        equal(gs.horvitz_thompson(behavior, graph, distance), total)
    if graph.m:
        equal(gs.measure(behavior, design=graph, distance=distance).value, on_graph)
        accumulator = gs.SndAccumulator(n, graph=graph, distance=distance)
        accumulator.update(behavior)
        equal(accumulator.compute().value, on_graph)
    assert gs.bounds.diameter(behavior, distance) >= matrix.max() * (1 - 1e-6)
    design = data.draw(st.sampled_from(DESIGNS if n > 2 else DESIGNS[:-2]))
    estimate = gs.measure(behavior, design=design, distance=distance)
    low, high = estimate.interval
    assert low >= 0
    assert low - tolerance <= estimate.value <= high + tolerance
    if estimate.exact:
        equal(estimate.value, snd)
