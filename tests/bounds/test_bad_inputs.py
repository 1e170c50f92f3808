"""What bounds refuse, by the name of the argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import networkx
import pytest
import torch

import graphsnd as gs
from graphsnd import bounds, graphs
from graphsnd.bounds.relabelling import (
    paper_random_regular_bound,
    relabelling_bound,
    relabelling_factor,
    relabelling_variance,
)

NAN, INF = math.nan, math.inf
PATH, EMPTY = networkx.path_graph(4), gs.Graph(3, torch.empty(0, 2, dtype=torch.int64))

# One argument, the callable that is given it, and values that it refuses.
VALUES: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("d_max", lambda d_max: bounds.hoeffding(d_max, 5, 0.1), [-1.0, INF, NAN]),
    ("m", lambda m: bounds.hoeffding(1.0, m, 0.1), [0]),
    ("delta", lambda delta: bounds.hoeffding(1.0, 5, delta), [0.0, 1.0, NAN]),
    ("pairs", lambda pairs: bounds.serfling(1.0, 5, pairs, 0.1), [4]),
    ("std", lambda std: bounds.empirical_bernstein(std, 1.0, 5, 10, 0.1), [-0.1, NAN]),
    ("pairs", lambda pairs: bounds.empirical_bernstein(0.1, 1.0, 5, pairs, 0.1), [4]),
    ("p", lambda p: bounds.bernoulli(1.0, p, 5, 0.1), [0.0, 1.5]),
    ("n", lambda n: bounds.bernoulli(1.0, 0.5, n, 0.1), [1]),
    ("eps", lambda eps: bounds.edges_for(eps, 1.0, 0.1), [0.0, NAN]),
    ("graph", lambda graph: bounds.spectral_bound(graph, torch.zeros(4, 4)), [graphs.from_networkx(PATH)]),
    ("graph", bounds.spectral_ratio, [EMPTY]),
    ("graph", bounds.spectrum, [PATH]),
    ("distances", lambda values: bounds.spectral_bound(graphs.complete(3), values), [
        torch.zeros(5, 5), torch.zeros(3, 4), torch.zeros(2, 3, 3), torch.eye(3), torch.full((3, 3), NAN),
        torch.ones(3, 3).triu(1),
    ]),
    ("graph", bounds.forwarding_index, [
        EMPTY, graphs.cliques([0, 0, 0, 0, 1, 1, 2]), gs.Graph(2, torch.empty(0, 2, dtype=torch.int64)),
    ]),
    ("graph", bounds.distortion, [graphs.cliques([0, 0, 1, 1])]),
    ("graph_snd", bounds.distortion(graphs.complete(3)).interval, [-1.0, NAN, INF, "2"]),
    ("method", lambda method: bounds.forwarding_index(graphs.complete(3), method), ["simplex"]),
    ("graph", lambda graph: bounds.forwarding_index(graph, "lp"), [graphs.random_regular(400, 8)]),  # takes minutes
    ("tolerance", lambda tolerance: bounds.forwarding_index(graphs.complete(3), tolerance=tolerance), [-1.0]),
    ("seconds", lambda seconds: bounds.forwarding_index(graphs.complete(3), seconds=seconds), [-1.0]),
    ("degrees", lambda degrees: relabelling_factor(4, degrees), [
        [1, 1], range(10**9), [1.0, 1.0, 0.0, 0.0], [0, 0, 0, 0],
    ]),
    ("n", lambda n: relabelling_factor(n, [0]), [1]),
    ("distances", lambda distances: relabelling_variance(distances, [1, 1, 0]), [
        torch.zeros(3, 4), torch.full((3, 3), NAN),
    ]),
    ("n", lambda n: relabelling_bound(1.0, n, 0.1), [1]),
    ("degree", lambda degree: bounds.random_regular_bound(1.0, 5, degree, 0.1), [0, 3, 5]),
    ("degree", lambda degree: paper_random_regular_bound(1.0, 10, degree, 0.1), [2]),
    ("d_max", lambda d_max: bounds.random_regular_bound(d_max, 5, 2, 0.1), [-1.0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in VALUES for v in vs])
def test_bad_inputs_are_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(gs.InputError) as error:
        call(value)
    assert error.value.name == name
