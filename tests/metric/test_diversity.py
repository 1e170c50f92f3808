from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from tests import oracles
from tests.cases import CASES, DETERMINISTIC, GAUSSIAN, Case, each

seeds = st.integers(0, 2**31)


@each
def test_snd_is_the_mean_over_pairs(case: Case) -> None:
    parameters = case.parameters(agents=5)
    expected = oracles.snd(case.oracle(*parameters))
    assert float(gs.snd(case.build(*parameters), case.distance)) == pytest.approx(expected, rel=1e-6)


@each
def test_graph_snd_is_definition_1(case: Case) -> None:
    parameters = case.parameters(agents=5)
    graph = gs.Graph(5, torch.tensor([[0, 1], [1, 2], [2, 4]]), torch.tensor([0.5, 2.0, 3.0]))
    expected = oracles.graph_snd(case.oracle(*parameters), graph.edges.tolist(), graph.weights.tolist())
    assert float(gs.graph_snd(case.build(*parameters), graph, case.distance)) == pytest.approx(expected, rel=1e-6)


@each
def test_gradcheck(case: Case) -> None:
    graph = gs.Graph(3, torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.5, 2.0]))
    parameters = [p.requires_grad_() for p in case.parameters(observations=2, agents=3)]
    assert torch.autograd.gradcheck(lambda *p: gs.snd(case.build(*p), case.distance), parameters, atol=1e-6)
    weighted = lambda *p: gs.graph_snd(case.build(*p), graph, case.distance)  # noqa: E731
    assert torch.autograd.gradcheck(weighted, parameters, atol=1e-6)


@st.composite
def weighted_graphs(draw: st.DrawFn, largest: int = 7) -> gs.Graph:
    n = draw(st.integers(2, largest))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    kept = draw(st.lists(st.sampled_from(pairs), unique=True))
    weights = draw(st.lists(st.floats(0, 1e6), min_size=len(kept), max_size=len(kept)))
    edges = torch.tensor(kept, dtype=torch.int64).reshape(-1, 2)
    return gs.Graph(n, edges, torch.tensor(weights, dtype=torch.float64))


@given(weighted_graphs(), seeds)
def test_any_weighted_graph(graph: gs.Graph, seed: int) -> None:
    behavior = DETERMINISTIC.behavior(agents=graph.n, seed=seed)
    matrix = gs.pairwise(behavior).numpy()
    expected = oracles.graph_snd(matrix, graph.edges.tolist(), graph.weights.tolist())
    found = float(gs.graph_snd(behavior, graph))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert 0 <= found <= matrix.max() * (1 + 1e-12)


@given(weighted_graphs(), st.floats(1e-6, 1e6), seeds)
def test_common_factor_of_the_weights_cancels(graph: gs.Graph, factor: float, seed: int) -> None:
    behavior = DETERMINISTIC.behavior(agents=graph.n, seed=seed)
    scaled = gs.Graph(graph.n, graph.edges, graph.weights * factor)
    found, expected = gs.graph_snd(behavior, scaled), gs.graph_snd(behavior, graph)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-300)


@given(seeds, st.integers(2, 6), st.integers(2, 4), st.sampled_from(CASES))
def test_duplicating_observations_changes_nothing(seed: int, agents: int, times: int, case: Case) -> None:
    parameters = case.parameters(agents=agents, seed=seed)
    again = [torch.cat([p] * times) for p in parameters]
    graph = gs.graphs.bernoulli(agents, 0.7, seed=seed)
    for measure in (gs.snd, lambda b, d: gs.graph_snd(b, graph, d)):
        one = measure(case.build(*parameters), case.distance)
        torch.testing.assert_close(measure(case.build(*again), case.distance), one, rtol=1e-12, atol=0)


@given(seeds, st.integers(2, 6), st.sampled_from(CASES))
def test_renaming_agents_changes_nothing(seed: int, agents: int, case: Case) -> None:
    order = torch.from_numpy(np.random.default_rng(seed).permutation(agents))
    parameters = case.parameters(agents=agents, seed=seed)
    renamed = gs.snd(case.build(*(p[:, order] for p in parameters)), case.distance)
    torch.testing.assert_close(renamed, gs.snd(case.build(*parameters), case.distance), rtol=1e-12, atol=0)


@given(seeds, st.floats(1e-6, 1e6))
def test_homogeneity(seed: int, factor: float) -> None:
    for case in (GAUSSIAN, DETERMINISTIC):
        parameters = case.parameters(seed=seed)
        scaled = gs.snd(case.build(*(factor * p for p in parameters)))
        torch.testing.assert_close(scaled, factor * gs.snd(case.build(*parameters)), rtol=1e-10, atol=0)


@given(seeds, st.integers(2, 6))
def test_snd_lies_between_the_extreme_distances(seed: int, agents: int) -> None:
    behavior = DETERMINISTIC.behavior(agents=agents, seed=seed)
    matrix = gs.pairwise(behavior)
    off = matrix[~torch.eye(agents, dtype=torch.bool)]
    assert off.min() * (1 - 1e-12) <= gs.snd(behavior) <= off.max() * (1 + 1e-12)


def test_horvitz_thompson_of_one_draw() -> None:
    behavior = DETERMINISTIC.behavior(agents=6)
    matrix = gs.pairwise(behavior)
    for graph in (
        gs.graphs.bernoulli(6, 0.4, seed=1),
        gs.graphs.uniform(6, 4, seed=1),
        gs.graphs.random_regular(6, 3, seed=1),
    ):
        seen = matrix[graph.edges[:, 0], graph.edges[:, 1]].sum()
        expected = seen / graph.inclusion / 15
        torch.testing.assert_close(gs.horvitz_thompson(behavior, graph), expected)


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


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_extreme_weights(size: float) -> None:
    behavior = DETERMINISTIC.behavior()
    d = gs.pairwise(behavior)
    weights = size * torch.tensor([1.0, 3.0], dtype=torch.float64)
    graph = gs.Graph(4, torch.tensor([[0, 1], [2, 3]]), weights)
    torch.testing.assert_close(gs.graph_snd(behavior, graph), (d[0, 1] + 3 * d[2, 3]) / 4)


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
