from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from graphsnd.kernels import reference
from graphsnd.metric import pair_distances
from tests import oracles
from tests.cases import AGENTS, CASES, DETERMINISTIC, OBSERVATIONS, Case, each

seeds = st.integers(0, 2**31)


@each
def test_symmetric_with_a_zero_diagonal(case: Case) -> None:
    matrix = gs.pairwise(case.behavior(observations=5, agents=6), case.distance)
    assert matrix.shape == (6, 6)
    torch.testing.assert_close(matrix, matrix.T, rtol=1e-14, atol=0)
    assert not matrix.diagonal().any()
    assert (matrix + torch.eye(6) > 0).all()


@each
def test_triangle_inequality(case: Case) -> None:
    for seed in range(5):
        d = gs.pairwise(case.behavior(agents=7, observations=2, seed=seed), case.distance)
        detour = d[:, :, None] + d[None, :, :]  # i -> k -> j
        assert (d[:, None, :] <= detour * (1 + 1e-12)).all()


@given(seeds, st.integers(2, 6), st.sampled_from(CASES))
def test_permuting_agents_permutes_the_matrix(seed: int, agents: int, case: Case) -> None:
    order = torch.from_numpy(np.random.default_rng(seed).permutation(agents))
    parameters = case.parameters(agents=agents, seed=seed)
    matrix = gs.pairwise(case.build(*parameters), case.distance)
    permuted = gs.pairwise(case.build(*(p[:, order] for p in parameters)), case.distance)
    torch.testing.assert_close(permuted, matrix[order][:, order], rtol=1e-12, atol=0)


@each
def test_layout_and_order_of_observations_do_not_matter(case: Case) -> None:
    parameters = case.parameters(observations=6)
    matrix = gs.pairwise(case.build(*parameters), case.distance)
    grid = gs.pairwise(case.build(*(p.reshape(2, 3, *p.shape[1:]) for p in parameters)), case.distance)
    torch.testing.assert_close(grid, matrix, rtol=1e-13, atol=0)
    reverse = gs.pairwise(case.build(*(p.flip(0) for p in parameters)), case.distance)
    torch.testing.assert_close(reverse, matrix, rtol=1e-13, atol=0)


@each
def test_edge_distances_are_entries_of_the_matrix(case: Case) -> None:
    behavior = case.behavior(agents=6)
    graph = gs.graphs.uniform(6, 7, seed=3)
    matrix = gs.pairwise(behavior, case.distance)
    found = gs.pairwise(behavior, case.distance, graph=graph)
    torch.testing.assert_close(found, matrix[graph.edges[:, 0], graph.edges[:, 1]], rtol=1e-13, atol=0)


@each
def test_edge_distances_gradcheck(case: Case) -> None:
    graph = gs.Graph(4, torch.tensor([[0, 1], [0, 3], [2, 3]]))
    parameters = [p.requires_grad_() for p in case.parameters(observations=2)]
    found = lambda *p: gs.pairwise(case.build(*p), case.distance, graph=graph)  # noqa: E731
    assert torch.autograd.gradcheck(found, parameters, atol=1e-6)


def test_agent_outside_the_graph_has_no_gradient() -> None:
    (actions,) = DETERMINISTIC.parameters()
    actions.requires_grad_()
    gs.pairwise(gs.Deterministic(actions), graph=gs.Graph(AGENTS, torch.tensor([[0, 2]]))).sum().backward()
    assert actions.grad is not None
    assert not actions.grad[:, [1, 3]].any()
    assert actions.grad[:, [0, 2]].abs().min() > 0


@pytest.mark.parametrize("edges", [1, 5, 45])
def test_cost_is_one_evaluation_for_each_edge_and_observation(monkeypatch: pytest.MonkeyPatch, edges: int) -> None:
    """Proposition 4, by counting and not by timing."""
    behavior = DETERMINISTIC.behavior(agents=10)
    norm = gs.behavior.points.Norm.EUCLIDEAN
    counted, plain = [], reference.PAIR_FUNCTIONS[norm]

    def count(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        distances = plain(x, y)
        counted.append(distances.numel())
        return distances

    monkeypatch.setitem(reference.PAIR_FUNCTIONS, norm, count)
    for found in (gs.graph_snd, gs.horvitz_thompson, lambda b, g, **options: gs.pairwise(b, graph=g, **options)):
        counted.clear()
        found(behavior, gs.graphs.uniform(10, edges, seed=0), backend="reference")
        assert sum(counted) == edges * OBSERVATIONS
    counted.clear()
    gs.snd(behavior, backend="reference")
    assert 45 * OBSERVATIONS <= sum(counted) <= 100 * OBSERVATIONS


@pytest.mark.parametrize(
    "operation", [lambda b, g, **options: gs.pairwise(b, graph=g, **options), gs.graph_snd, gs.horvitz_thompson]
)
def test_bad_graphs(operation) -> None:  # type: ignore[no-untyped-def]
    behavior = DETERMINISTIC.behavior()
    for graph in (gs.graphs.bernoulli(5, 1.0), gs.graphs.uniform(5, 4), gs.graphs.uniform(3, 3)):
        with pytest.raises(gs.InputError, match=rf"`graph`.*4 agents, got a graph on {graph.n}.*n = 4"):
            operation(behavior, graph)
    for thing in (torch.tensor([[0, 1]]), networkx.path_graph(4), "complete"):
        with pytest.raises(gs.InputError, match=r"`graph`.*graphsnd.Graph.*from_networkx"):
            operation(behavior, thing)


def test_results_come_back_in_the_precision_of_the_input() -> None:
    for dtype, expected in [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ]:
        behavior = DETERMINISTIC.behavior(dtype)
        assert gs.pairwise(behavior).dtype == expected
        assert gs.snd(behavior).dtype == expected
        assert gs.pairwise(behavior, graph=gs.graphs.complete(AGENTS)).dtype == expected


@given(seeds, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_wasserstein_scales_and_ignores_translation(seed: int, factor: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(size=(3, 4, 2)), rng.uniform(0.1, 1, size=(3, 4, 2))
    matrix = gs.pairwise(gs.Gaussian(torch.from_numpy(loc), torch.from_numpy(scale)))
    moved = gs.pairwise(gs.Gaussian(torch.from_numpy(factor * loc + shift), torch.from_numpy(factor * scale)))
    torch.testing.assert_close(moved, factor * matrix, rtol=1e-8, atol=0)


def test_oracle_is_the_paper_equation() -> None:
    # d(0, 1) over two observations: (3 + 5) / 2.
    x = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]]])
    matrix = oracles.distances(2, 2, lambda o, i, j: oracles.euclidean(x[o, i], x[o, j]))
    assert matrix.tolist() == [[0.0, 4.0], [4.0, 0.0]]
    torch.testing.assert_close(gs.pairwise(gs.Deterministic(torch.from_numpy(x))), torch.from_numpy(matrix))


@each
def test_mean_over_agents_is_snd(case: Case) -> None:
    behavior = case.behavior(agents=5)
    found = gs.contributions(behavior, case.distance)
    assert found.shape == (5,)
    torch.testing.assert_close(found.mean(), gs.snd(behavior, case.distance), rtol=1e-12, atol=0)


def test_an_outlier_stands_out() -> None:
    actions = torch.tensor([[[0.0], [0.0], [0.0], [9.0]]])
    assert gs.contributions(gs.Deterministic(actions)).tolist() == [3.0, 3.0, 3.0, 9.0]


def test_differentiable() -> None:
    actions = torch.tensor([[[0.0], [1.0], [3.0]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: gs.contributions(gs.Deterministic(a)), (actions,))


@pytest.mark.parametrize(
    "operation", [gs.pairwise, gs.contributions, gs.roles, lambda team: gs.decompose(team, [0] * team.agents)]
)
def test_a_matrix_that_does_not_fit_is_refused(operation, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(pair_distances, "MOST_ROWS", 20)
    team = gs.Deterministic(torch.randn(3, 21, 2))
    with pytest.raises(gs.InputError, match="at most 20 agents for a matrix of all pairs, got 21"):
        operation(team)
    assert gs.contributions(team, graph=gs.graphs.random_regular(21, 4)).shape == (21,)
