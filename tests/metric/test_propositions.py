"""The propositions of section 5, one test or more for each."""

from __future__ import annotations

import itertools
import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher

import graphsnd as gs
from tests.cases import CASES, DETERMINISTIC, Case, each


@each
def test_recovery_on_the_complete_graph(case: Case) -> None:
    for n in (2, 3, 7):
        behavior = case.behavior(agents=n)
        exact = gs.snd(behavior, case.distance)
        found = gs.graph_snd(behavior, gs.graphs.complete(n), case.distance)
        torch.testing.assert_close(found, exact, rtol=1e-13, atol=0)
        drawn = gs.graphs.bernoulli(n, 1.0)
        torch.testing.assert_close(gs.horvitz_thompson(behavior, drawn, case.distance), exact, rtol=1e-13, atol=0)


def roles(labels: list[int]) -> gs.Behavior:
    """One action for each role: agents of the same role coincide."""
    actions = torch.tensor([[0.0, 0.0], [1.0, 0.5], [-2.0, 1.0]], dtype=torch.float64)[labels]
    return gs.Deterministic(actions.expand(4, -1, -1))


@given(st.data())
def test_zero_exactly_when_every_weighted_edge_joins_equals(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 6))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    edges = data.draw(st.lists(st.sampled_from(list(itertools.combinations(range(n), 2))), unique=True, min_size=1))
    weights = data.draw(st.lists(st.sampled_from([0.0, 1e-9, 1.0]), min_size=len(edges), max_size=len(edges)))
    graph = gs.Graph(n, torch.tensor(edges), torch.tensor(weights, dtype=torch.float64))
    value = float(gs.graph_snd(roles(labels), graph))
    joins_others = any(w > 0 and labels[i] != labels[j] for w, (i, j) in zip(weights, edges, strict=True))
    assert value >= 0
    assert (value > 0) == joins_others


def test_two_hidden_clusters() -> None:
    """The remark on semantics: a team of two kinds that never meet is diverse, and locally not at all."""
    labels = [0, 1, 0, 1, 0, 1]
    behavior = roles(labels)
    assert gs.graph_snd(behavior, gs.graphs.cliques(labels)) == 0
    assert gs.snd(behavior) > 0
    bridge = gs.Graph(6, torch.cat([gs.graphs.cliques(labels).edges, torch.tensor([[0, 1]])]))
    assert gs.graph_snd(behavior, bridge) > 0


def assert_invariant(case: Case, graph: gs.Graph, permutations: list[list[int]], seed: int = 0) -> None:
    parameters = case.parameters(agents=graph.n, seed=seed)
    value = gs.graph_snd(case.build(*parameters), graph, case.distance)
    for permutation in permutations:
        moved = case.build(*(p[:, permutation] for p in parameters))
        torch.testing.assert_close(gs.graph_snd(moved, graph, case.distance), value, rtol=1e-12, atol=0)


@each
def test_rotations_and_reflections_of_a_cycle(case: Case) -> None:
    n = 7
    graph = gs.graphs.from_networkx(networkx.cycle_graph(n))
    rotations = [[(i + k) % n for i in range(n)] for k in range(n)]
    assert_invariant(case, graph, rotations + [r[::-1] for r in rotations])


@pytest.mark.parametrize(
    "name", ["petersen_graph", "cubical_graph", "diamond_graph", "house_graph", "krackhardt_kite_graph"]
)
def test_all_automorphisms_of_named_graphs(name: str) -> None:
    nx_graph = getattr(networkx, name)()
    found = [[m[i] for i in range(len(m))] for m in GraphMatcher(nx_graph, nx_graph).isomorphisms_iter()]
    assert len(found) > 1
    assert_invariant(DETERMINISTIC, gs.graphs.from_networkx(nx_graph), found[:150])


def test_automorphisms_of_a_weighted_graph() -> None:
    nx_graph = networkx.Graph()
    nx_graph.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 2.0), (2, 3, 0.5), (3, 0, 0.5)])
    match = GraphMatcher(nx_graph, nx_graph, edge_match=lambda a, b: a["weight"] == b["weight"])
    found = [[m[i] for i in range(4)] for m in match.isomorphisms_iter()]
    assert found
    assert len(found) < math.factorial(4)
    assert_invariant(DETERMINISTIC, gs.graphs.from_networkx(nx_graph), found)


def test_other_permutations_do_change_the_value() -> None:
    (actions,) = DETERMINISTIC.parameters(agents=7)
    graph = gs.graphs.from_networkx(networkx.cycle_graph(7))
    swapped = actions[:, [1, 0, 2, 3, 4, 5, 6]]
    assert gs.graph_snd(gs.Deterministic(swapped), graph) != gs.graph_snd(gs.Deterministic(actions), graph)


DRAWS = 2000
N = 8


def bias_in_standard_errors(draw) -> float:  # type: ignore[no-untyped-def]
    """Of the Horvitz-Thompson estimator over many draws."""
    behavior = gs.Deterministic(torch.from_numpy(np.random.default_rng(1).normal(size=(1, N, 4))))
    generator = torch.Generator().manual_seed(0)
    estimates = np.array([float(gs.horvitz_thompson(behavior, draw(generator))) for _ in range(DRAWS)])
    error = estimates.std(ddof=1) / math.sqrt(DRAWS)
    assert error > 0
    return abs(estimates.mean() - float(gs.snd(behavior))) / error


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.75])
def test_unbiased_for_bernoulli_graphs(p: float) -> None:
    # At p = 0.1 one draw in twenty is empty and counts as 0, which is part of being unbiased.
    assert bias_in_standard_errors(lambda g: gs.graphs.bernoulli(N, p, seed=g)) < 3.5


@pytest.mark.parametrize("m", [1, 5, 20])
def test_unbiased_for_uniform_graphs(m: int) -> None:
    assert bias_in_standard_errors(lambda g: gs.graphs.uniform(N, m, seed=g)) < 3.5


@pytest.mark.parametrize("degree", [1, 3, 6])
def test_unbiased_for_random_regular_graphs(degree: int) -> None:
    assert bias_in_standard_errors(lambda g: gs.graphs.random_regular(N, degree, seed=g)) < 3.5


def test_a_wrong_inclusion_probability_would_be_noticed() -> None:
    def wrong(generator: torch.Generator) -> gs.Graph:
        graph = gs.graphs.bernoulli(N, 0.5, seed=generator)
        return gs.Graph(N, graph.edges, inclusion=0.53)

    assert bias_in_standard_errors(wrong) > 3.5


def test_the_cases_are_not_degenerate() -> None:
    for case in CASES:
        assert float(gs.snd(case.behavior(), case.distance)) > 0.05
