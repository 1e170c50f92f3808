"""Accumulators: the numbers that one pass gives, for every split and every order."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.estimation.accumulator import SndAccumulator
from tests.cases import Case, each

AGENTS, OBSERVATIONS = 8, 41
GRAPHS = {
    "all": None,
    "bernoulli": gs.graphs.bernoulli(AGENTS, 0.4, seed=1),
    "uniform": gs.graphs.uniform(AGENTS, 9),
    "regular": gs.graphs.random_regular(AGENTS, 3),
    "cliques": gs.graphs.cliques([0, 0, 0, 1, 1, 1, 2, 2]),
    "weighted": gs.Graph(AGENTS, torch.tensor([[0, 1], [1, 3], [2, 7]]), torch.tensor([1.0, 3.0, 0.1])),
    "empty": gs.Graph(AGENTS, torch.zeros(0, 2, dtype=torch.int64)),
}


def collect(case: Case, graph: gs.Graph | None, splits: list[torch.Tensor], clusters: torch.Tensor) -> SndAccumulator:
    parameters = case.parameters(torch.float32, observations=OBSERVATIONS, agents=AGENTS)
    total = SndAccumulator(AGENTS, graph=graph, distance=case.distance, clusters=True)
    for index in splits:
        part = SndAccumulator(AGENTS, graph=graph, distance=case.distance, clusters=True)
        for half in index.split(max(1, len(index) // 2)):
            part.update(case.build(*(p[half] for p in parameters)), clusters[half])
        total = SndAccumulator.merge(total, part)
    return total


@each
def test_every_split_and_order_gives_the_same_numbers(case: Case, generator: torch.Generator) -> None:
    clusters = torch.randint(5, (OBSERVATIONS,), generator=generator)
    for graph in (None, GRAPHS["uniform"], GRAPHS["weighted"]):
        whole = collect(case, graph, [torch.arange(OBSERVATIONS)], clusters)
        for size in (1, 6, 30):
            order = torch.randperm(OBSERVATIONS, generator=generator)
            other = collect(case, graph, list(order.split(size)), clusters)
            torch.testing.assert_close(other.state()["sums"], whole.state()["sums"], rtol=2e-6, atol=1e-12)
            one, two = other.compute(), whole.compute()
            assert (one.value, one.interval) == (
                pytest.approx(two.value, rel=2e-6),
                pytest.approx(two.interval, rel=2e-6),
            )
            assert one.observation_error == pytest.approx(two.observation_error, rel=1e-4)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_one_pass(name: str, generator: torch.Generator) -> None:
    graph = GRAPHS[name]
    x = torch.randn(OBSERVATIONS, AGENTS, 3, generator=generator, dtype=torch.float64)
    clusters = torch.randint(6, (OBSERVATIONS,), generator=generator)
    expected = gs.measure(gs.Deterministic(x), design=graph, clusters=clusters).to_dict()
    accumulator = SndAccumulator(AGENTS, graph=graph, clusters=True)
    for part, ids in zip(x.split(7), clusters.split(7), strict=True):
        accumulator.update(gs.Deterministic(part), ids)
    found = accumulator.compute().to_dict()
    assert found.keys() == expected.keys()
    for key, value in found.items():
        if key in ("why", "zero", "seconds") or (key == "text" and expected["zero"]):  # of a single call only
            continue
        if isinstance(value, float | tuple):
            np.testing.assert_allclose(value, expected[key], rtol=1e-5, err_msg=key)
        else:
            assert value == expected[key], key


def test_errors_without_clusters_are_unknown() -> None:
    accumulator = SndAccumulator(3)
    accumulator.update(gs.Deterministic(torch.rand(50, 3, 2)))
    found = accumulator.compute()
    assert found.observation_error is None
    assert found.population_interval is None


def test_merging_changes_neither() -> None:
    one, two = SndAccumulator(3), SndAccumulator(3)
    one.update(gs.Deterministic(torch.rand(5, 3, 2)))
    two.update(gs.Deterministic(torch.rand(4, 3, 2)))
    before = one.compute(), two.compute()
    both = SndAccumulator.merge(one, two)
    assert (one.compute(), two.compute()) == before
    assert both.compute().observations == 9
    assert SndAccumulator.merge(both, SndAccumulator(3)).compute() == both.compute()


@pytest.mark.parametrize("name", ["all", "uniform", "cliques"])
def test_state_goes_round(name: str) -> None:
    accumulator = SndAccumulator(AGENTS, graph=GRAPHS[name], clusters=True)
    accumulator.update(gs.Deterministic(torch.rand(5, AGENTS, 2)), torch.arange(5) % 2)
    plain = {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in accumulator.state().items()}
    text = json.loads(json.dumps(plain))
    kinds = {"sums": torch.float64, "own": torch.float64}
    state = {k: torch.tensor(v, dtype=kinds.get(k, torch.int64)) if isinstance(v, list) else v for k, v in text.items()}
    back = SndAccumulator.from_state(state, graph=GRAPHS[name], distance=gs.Wasserstein())
    assert back.compute() == accumulator.compute()
    back.update(gs.Deterministic(torch.rand(5, AGENTS, 2)), torch.arange(5))
    assert back.observations == 10


def _collected(graph: gs.Graph | None = None, **options: Any) -> SndAccumulator:
    accumulator = SndAccumulator(4, graph=graph, **options)
    accumulator.update(TEAM)
    return accumulator


def test_a_state_knows_what_it_was_collected_for() -> None:
    probabilities = gs.Categorical(logits=torch.randn(3, 4, 5))
    accumulator = SndAccumulator(4, distance=gs.Hellinger())
    accumulator.update(probabilities)
    state = accumulator.state()
    assert SndAccumulator.from_state(state).compute() == accumulator.compute()  # the distance comes with the state
    with pytest.raises(gs.InputError, match="`distance` that the state was collected for"):
        SndAccumulator.from_state(state, distance=gs.TotalVariation())
    edges = torch.tensor([[0, 1], [2, 3]])
    light, heavy = (gs.Graph(4, edges, torch.tensor([1.0, weight])) for weight in (2.0, 3.0))
    with pytest.raises(gs.InputError, match="`graph` that the state was collected for"):
        SndAccumulator.from_state(_collected(light).state(), graph=heavy)
    drawn, fixed = gs.Graph(4, edges, inclusion=0.5), gs.Graph(4, edges)
    with pytest.raises(gs.InputError, match="collected for"):
        SndAccumulator.from_state(_collected(drawn).state(), graph=fixed)
    for one, two in ((light, heavy), (drawn, fixed), (fixed, light)):
        with pytest.raises(gs.InputError, match="on the same graph"):
            SndAccumulator.merge(_collected(one), _collected(two))
    other = SndAccumulator(4)
    other.update(gs.Gaussian(torch.randn(3, 4, 2), 1.0))
    with pytest.raises(gs.InputError, match="`two` of behaviours that are Deterministic"):
        SndAccumulator.merge(_collected(), other)


def test_clusters_of_a_state_are_counted() -> None:
    accumulator = SndAccumulator(4, clusters=True)
    accumulator.update(TEAM, torch.tensor([3, 5]))
    state = accumulator.state()
    assert SndAccumulator.from_state(state).compute() == accumulator.compute()
    with pytest.raises(gs.InputError, match="clusters of 2 observations"):
        SndAccumulator.from_state({**state, "sizes": torch.tensor([1, 7])})


def test_a_batch_that_was_refused_leaves_nothing_behind() -> None:
    accumulator = SndAccumulator(3)
    with pytest.raises(gs.InputError, match="3 agents"):
        accumulator.update(TEAM)
    accumulator.update(gs.Categorical(torch.eye(3).unsqueeze(0)))
    assert (accumulator.compute().value, accumulator.compute().distance) == (1.0, "total-variation")


TEAM = gs.Deterministic(torch.rand(2, 4, 2))
