from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from graphsnd.behavior.behavior import as_distance
from graphsnd.teams import StackedTeam
from tests.cases import Case, each
from tests.estimation.teams import policies
from tests.estimation.test_intervals import team


@each
def test_without_a_graph_it_is_snd(case: Case) -> None:
    behavior = case.behavior(observations=20)
    for graph in (None, gs.graphs.complete(4), gs.graphs.bernoulli(4, 1.0), gs.graphs.uniform(4, 6)):
        estimate = gs.measure(behavior, design=graph, distance=case.distance)
        assert estimate.value == pytest.approx(float(gs.snd(behavior, case.distance)), rel=1e-12)
        assert estimate.interval == estimate.asymptotic_interval == (estimate.value, estimate.value)
        assert (estimate.target, estimate.standard_error) == ("SND", 0.0)
        assert estimate.method.startswith("exact")
        assert (estimate.pairs_total, estimate.pairs_used) == (6, 6)
        assert (estimate.agents, estimate.observations, estimate.policy_evaluations) == (4, 20, 80)
        assert estimate.distance == (case.distance or as_distance(behavior)).name


@each
def test_a_fixed_graph_defines_the_measure(case: Case) -> None:
    behavior = case.behavior(observations=20)
    for graph in (
        gs.graphs.cliques([0, 0, 1, 1]),
        gs.Graph(4, torch.tensor([[0, 1], [1, 3]]), torch.tensor([1.0, 3.0])),
        gs.Graph(4, gs.graphs.complete(4).edges, torch.arange(1.0, 7.0)),
    ):
        estimate = gs.measure(behavior, design=graph, distance=case.distance)
        assert estimate.value == pytest.approx(float(gs.graph_snd(behavior, graph, case.distance)), rel=1e-12)
        assert (estimate.target, estimate.standard_error) == ("Graph-SND", 0.0)
        assert estimate.interval == (estimate.value, estimate.value)
        assert (estimate.pairs_used, estimate.design) == (graph.m, graph.family)


def test_an_empty_fixed_graph_is_zero() -> None:
    estimate = gs.measure(team(4), design=gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64)))
    assert (estimate.value, estimate.target, estimate.interval) == (0.0, "Graph-SND", (0.0, 0.0))


def test_policies_are_asked_once_at_each_observation() -> None:
    asked: list[int] = []

    class Counted(StackedTeam):
        def evaluate(self, observations: torch.Tensor) -> gs.Behavior:
            asked.append(len(observations))
            return super().evaluate(observations)

    made, seen = policies(), torch.randn(500, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    counted = Counted(made.network, made.head)
    once = gs.measure(made.evaluate(seen), design="bernoulli:0.3", seed=1)
    estimate = gs.measure(counted, seen, design="bernoulli:0.3", seed=1)
    assert sum(asked) == 500
    assert estimate.interval == pytest.approx(once.interval, rel=1e-9)


def test_an_empty_draw_is_refused() -> None:
    empty = gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64), inclusion=0.1)
    for design in (empty, "bernoulli:1e-9"):
        with pytest.raises(gs.InputError, match=r"`design`.*at least one edge.*empty draw.*another seed"):
            gs.measure(team(4), design=design)


def test_intervals_of_joint_corrected_distances_hold() -> None:
    distance = gs.Sliced(debias=True)
    # They are no metrics, so the diameter is that of a metric that is nowhere smaller, part by part.
    for seed in range(40):
        samples = torch.randn(2, 1, 5, 4, 1, generator=torch.Generator().manual_seed(seed))
        members = gs.Joint([gs.Samples(part) for part in samples], distance=[distance, distance])
        low, high = gs.measure(members, design="uniform:2", seed=seed).interval
        parts = [float(gs.snd(gs.Samples(part), distance)) for part in samples]
        assert low - 1e-6 <= sum(parts) / 2 <= high + 1e-6


@each
def test_a_sampled_graph_gives_the_mean_over_its_edges(case: Case) -> None:
    behavior = case.behavior(observations=50, agents=6)
    for graph in (gs.graphs.uniform(6, 7), gs.graphs.bernoulli(6, 0.4, seed=1), gs.graphs.random_regular(6, 3)):
        estimate = gs.measure(behavior, design=graph, distance=case.distance)
        assert estimate.value == pytest.approx(float(gs.graph_snd(behavior, graph, case.distance)), rel=1e-12)
        low, high = estimate.interval
        assert 0 <= low < estimate.value < high <= gs.bounds.diameter(behavior, case.distance) * (1 + 1e-9)
        assert estimate.standard_error > 0


def test_blocks_of_unequal_length_are_weighted() -> None:
    behavior = team(5, observations=47)
    graph = gs.graphs.uniform(5, 4)
    assert gs.measure(behavior, design=graph).value == pytest.approx(float(gs.graph_snd(behavior, graph)), rel=1e-13)


def test_blocks_of_observations_stand_for_clusters() -> None:
    values = torch.randn(100, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    blocks = torch.arange(100) * 32 // 100  # of 3 or 4
    by_block, plain = (
        gs.measure(gs.Deterministic(values), design="bernoulli:0.5", clusters=each) for each in (blocks, None)
    )
    assert plain.observation_error == pytest.approx(by_block.observation_error, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95, math.nan])
def test_bad_confidence(confidence: float) -> None:
    with pytest.raises(gs.InputError, match=r"`confidence`.*\(0, 1\)"):
        gs.measure(team(4), confidence=confidence)


def test_a_graph_that_does_not_fit_is_named_as_it_was_given() -> None:
    for n in (3, 5):
        with pytest.raises(gs.InputError, match=rf"`design`.*4 agents, got a graph on {n}"):
            gs.measure(team(4), design=gs.graphs.complete(n))
    moving = gs.graphs.knn(torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(0)), 1)
    with pytest.raises(gs.InputError, match=r"`design` for .* observations, got one for 3"):
        gs.measure(team(4), design=moving)


def test_builds_no_autograd_graph() -> None:
    actions = torch.rand(20, 4, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert isinstance(gs.measure(gs.Deterministic(actions), design=gs.graphs.uniform(4, 3)).value, float)
