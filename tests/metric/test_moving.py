"""Graph-SND of a graph for each observation, against loops in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.graphs import MovingGraph
from tests import oracles
from tests.cases import Case, each


def random_graphs(n: int, observations: int, *, weighted: bool, seed: int = 0) -> MovingGraph:
    """Graphs of 0 to all edges, the second without any, some weights 0."""
    generator = torch.Generator().manual_seed(seed)
    A = torch.rand(observations, n, n, generator=generator)
    A = A * (torch.rand(observations, n, n, generator=generator) < torch.rand(observations, 1, 1, generator=generator))
    A[1] = 0
    A = (A if weighted else (A > 0).float()).triu(1)
    moving = gs.graphs.from_adjacency(A + A.mT)
    assert isinstance(moving, MovingGraph)
    return moving


def matrices(behavior: gs.Behavior, distance: gs.Distance | None) -> np.ndarray:
    """The distance matrix of each observation, ``[observations, n, n]``."""
    points = gs.behavior.behavior.embed(behavior, distance)
    return np.stack([
        gs.kernels.pair_matrix(points.slice(o, o + 1), backend="reference").numpy() for o in range(points.observations)
    ])  # fmt: skip


def loop(matrix: np.ndarray, moving: MovingGraph) -> float:
    values = []
    for o in range(len(moving)):
        edges = moving[o].edges.tolist()
        own = [1.0] * len(edges) if moving[o].weights is None else moving[o].weights.double().tolist()
        values.append(oracles.graph_snd(matrix[o], edges, own))
    return math.fsum(values) / len(values)


@each
@pytest.mark.parametrize("weighted", [False, True])
def test_graph_snd_is_a_loop(case: Case, weighted: bool) -> None:
    behavior, moving = case.behavior(observations=9, agents=6), random_graphs(6, 9, weighted=weighted)
    matrix = matrices(behavior, case.distance)
    assert float(gs.graph_snd(behavior, moving, case.distance)) == pytest.approx(loop(matrix, moving), rel=1e-10)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_large_teams_on_all_backends(backend: str) -> None:
    generator = torch.Generator().manual_seed(3)
    team = gs.Deterministic(torch.randn(40, 30, 3, generator=generator))
    moving = gs.graphs.knn(torch.rand(40, 30, 2, generator=generator), 4)
    value = gs.graph_snd(team, moving, backend=backend)
    assert float(value) == pytest.approx(loop(matrices(team, None), moving), rel=1e-6)
    torch.set_num_threads(2)
    try:
        assert torch.equal(gs.graph_snd(team, moving, backend=backend), value)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_gradients(backend: str) -> None:
    moving = random_graphs(5, 6, weighted=True)
    values = torch.randn(6, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4)).requires_grad_()

    def value(values: torch.Tensor) -> torch.Tensor:
        return gs.graph_snd(gs.Deterministic(values), moving, backend=backend)

    def mine(values: torch.Tensor) -> torch.Tensor:
        return gs.contributions(gs.Deterministic(values), graph=moving, backend=backend)

    assert torch.autograd.gradcheck(value, (values,))
    assert torch.autograd.gradcheck(mine, (values,))
    # Two agents in one place: the gradient there is 0, not NaN.
    same = torch.zeros(6, 5, 2, requires_grad=True)
    value(same).backward()
    assert same.grad is not None
    assert not same.grad.any()


def test_the_same_graph_at_all_observations_is_that_graph() -> None:
    team = gs.Deterministic(torch.randn(8, 6, 2, generator=torch.Generator().manual_seed(5)))
    for graph in (gs.graphs.bernoulli(6, 0.5, seed=1), gs.Graph(6, torch.tensor([[0, 1]]), torch.tensor([0.3]))):
        fixed = gs.Graph(6, graph.edges, graph.weights)
        moving = MovingGraph.stack([fixed] * 8)
        torch.testing.assert_close(gs.graph_snd(team, moving), gs.graph_snd(team, fixed))
        mine = gs.contributions(team, graph=moving)
        torch.testing.assert_close(mine, gs.contributions(team, graph=fixed))
    torch.testing.assert_close(gs.contributions(team, graph=gs.graphs.complete(6)), gs.contributions(team))


def test_contributions_are_loops() -> None:
    team, moving = gs.Deterministic(torch.randn(9, 6, 2, dtype=torch.float64)), random_graphs(6, 9, weighted=True)
    matrix, W = matrices(team, None), np.zeros((9, 6, 6))
    for o in range(9):
        i, j = moving[o].edges.T.numpy()
        W[o, i, j] = W[o, j, i] = moving[o].weights.double().numpy()
    sums, strengths = (W * matrix).sum(2), W.sum(2)
    expected = np.divide(sums, strengths, out=np.zeros_like(sums), where=strengths > 0).mean(0)
    np.testing.assert_allclose(gs.contributions(team, graph=moving), expected, rtol=1e-12)


def test_without_any_edge_it_is_zero() -> None:
    team = gs.Deterministic(torch.randn(3, 4, 2, requires_grad=True))
    moving = gs.graphs.radius(torch.arange(4.0)[:, None].expand(3, 4, 1), 0.5)
    value = gs.graph_snd(team, moving)
    value.backward()
    assert value.item() == 0
    assert not gs.contributions(team, graph=moving).any()
    assert not gs.contributions(team, graph=moving[0]).any()


def test_weights_of_any_size() -> None:
    team = gs.Deterministic(torch.tensor([[[0.0], [1.0], [4.0]]] * 3, dtype=torch.float64))
    edges, starts = torch.tensor([[0, 1], [1, 2]] * 2), torch.tensor([0, 2, 2, 4])
    moving = MovingGraph(3, edges, starts, torch.tensor([1e-300, 3e-300, 3e300, 1e300], dtype=torch.float64))
    assert float(gs.graph_snd(team, moving)) == pytest.approx((2.5 + 0 + 1.5) / 3)


def test_what_does_not_fit_is_refused() -> None:
    team = gs.Deterministic(torch.randn(4, 5, 2)).with_names(list("abcde"))
    with pytest.raises(gs.InputError, match="for 4 observations, got one for 3"):
        gs.graph_snd(team, gs.graphs.knn(torch.rand(3, 5, 2), 1))
    with pytest.raises(gs.InputError, match="5 agents, got a graph on 6"):
        gs.contributions(team, graph=gs.graphs.knn(torch.rand(4, 6, 2), 1))
    with pytest.raises(gs.InputError, match="'a' at 0, got 'e'"):
        gs.graph_snd(team, gs.graphs.knn({name: torch.rand(4, 2) for name in "edcba"}, 1))
    for other in (lambda b, g: gs.pairwise(b, graph=g), gs.horvitz_thompson):
        with pytest.raises(gs.InputError, match="MovingGraph"):
            other(team, gs.graphs.knn(torch.rand(4, 5, 2), 1))


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gpu_agrees(weighted: bool) -> None:
    team, moving = torch.randn(300, 20, 3), random_graphs(20, 300, weighted=weighted)
    x, y = team.clone().requires_grad_(), team.cuda().requires_grad_()
    one, other = (gs.graph_snd(gs.Deterministic(v), moving) for v in (x, y))
    one.backward()
    other.backward()
    torch.testing.assert_close(one, other.cpu())
    torch.testing.assert_close(x.grad, y.grad.cpu(), rtol=1e-4, atol=1e-7)
    mine = [gs.contributions(gs.Deterministic(v), graph=moving).detach().cpu() for v in (x, y)]
    torch.testing.assert_close(*mine)
    alone = gs.graphs.radius(torch.arange(20.0).cuda()[:, None].expand(300, 20, 1), 0.5)
    assert gs.graph_snd(gs.Deterministic(team.cuda()), alone).item() == 0
