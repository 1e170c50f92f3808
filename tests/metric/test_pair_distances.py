from __future__ import annotations

import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from graphsnd.graphs import MovingGraph
from graphsnd.kernels import reference
from graphsnd.kernels.threads import limit_threads
from graphsnd.metric import pair_distances
from tests import oracles
from tests.cases import AGENTS, CASES, DETERMINISTIC, OBSERVATIONS, Case, each

seeds = st.integers(0, 2**31)


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
    monkeypatch.setattr(reference, "across", lambda _, x, y: count(x.unsqueeze(-2), y.unsqueeze(-3)))
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


def test_oracle_is_the_paper_equation() -> None:
    # d(0, 1) over two observations: (3 + 5) / 2.
    x = np.array([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]]])
    matrix = oracles.distances(2, 2, lambda o, i, j: oracles.euclidean(x[o, i], x[o, j]))
    assert matrix.tolist() == [[0.0, 4.0], [4.0, 0.0]]
    torch.testing.assert_close(gs.pairwise(gs.Deterministic(torch.from_numpy(x))), torch.from_numpy(matrix))


@pytest.mark.parametrize(
    "operation", [gs.pairwise, gs.contributions, gs.roles, lambda team: gs.decompose(team, [0] * team.agents)]
)
def test_a_matrix_that_does_not_fit_is_refused(operation, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(pair_distances, "MOST_ROWS", 20)
    team = gs.Deterministic(torch.randn(3, 21, 2))
    with pytest.raises(gs.InputError, match="at most 20 agents for a matrix of all pairs, got 21"):
        operation(team)
    assert gs.contributions(team, graph=gs.graphs.random_regular(21, 4)).shape == (21,)


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
    with limit_threads(2):
        assert torch.equal(gs.graph_snd(team, moving, backend=backend), value)


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
