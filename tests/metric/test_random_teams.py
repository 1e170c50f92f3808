"""All that is said about random teams on random graphs against loops in double precision, for every family."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from tests import oracles
from tests.cases import CASES, QUADRATURE, Case

SEEDS = st.integers(0, 2**31 - 1)
DESIGNS = ("complete", "matching", "agents:2", "uniform:1", "ring:2", "regular:2")  # the last two for 3 agents


@st.composite
def graphs(draw: st.DrawFn, n: int) -> gs.Graph:
    """Draw a graph of some family, perhaps with weights of any size."""
    pairs = [(i, j) for i in range(n) for j in range(i)]
    kind, seed = draw(st.sampled_from(("complete", "uniform", "bernoulli", "own", "weighted"))), draw(SEEDS)
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
    parameters = case.parameters(dtype, observations=observations, agents=n, seed=data.draw(SEEDS))
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
