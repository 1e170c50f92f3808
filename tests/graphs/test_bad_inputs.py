"""What the builders of graphs refuse, by the name of the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx
import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.graphs import (
    Graph,
    MovingGraph,
    bernoulli,
    circulant,
    cliques,
    complete,
    from_adjacency,
    from_edge_index,
    from_networkx,
    knn,
    radius,
    random_regular,
    relabelled,
    uniform,
)

NAN, INF = float("nan"), float("inf")
ONE = torch.tensor([[0, 1]])


def edges(*pairs: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(pairs)


def moving(starts: list[Any], given: torch.Tensor | None = None) -> MovingGraph:
    return MovingGraph(3, edges((2, 0), (0, 1), (1, 0)) if given is None else given, torch.tensor(starts))


def weighted(value: object) -> networkx.Graph:
    return networkx.Graph([(0, 1, {"weight": value}), (1, 2)])


# One argument, the callable that is given it, and values that it refuses.
VALUES: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("n", lambda n: Graph(n, ONE), [1, 2.0, True]),
    ("n", complete, [1, 0, -3, 2.5]),
    ("n", lambda n: bernoulli(n, 0.5), [1, 0, -3, 2.5]),
    ("n", lambda n: uniform(n, 1), [1, 0, -3, 2.5]),
    ("n", lambda n: random_regular(n, 1), [1, 0, -3, 2.5]),
    ("n", lambda n: from_edge_index(ONE.T, n), [1, 0]),
    ("edges", lambda given: Graph(3, given), [
        [[0, 1]], torch.zeros(2, 40).long(), torch.zeros(4).long(), torch.zeros(4, 3).long(), torch.zeros(1, 2),
        torch.ones(1, 2, dtype=torch.bool), edges((0, 1), (1, 3)), edges((0, -1)), edges((0, 1), (2, 2)),
        edges((0, 1), (0, 1)), edges((0, 1), (1, 0)),
    ]),
    ("weights", lambda given: Graph(3, ONE, given), [
        [1.0], torch.ones(2), torch.ones(1, 1), torch.tensor([-1.0]), torch.tensor([NAN]), torch.tensor([INF]),
        torch.ones(1, dtype=torch.complex64), torch.ones(1, device="meta"),
    ]),
    ("inclusion", lambda given: Graph(3, ONE, None, given), [0.0, 1.5, NAN, "often"]),
    ("starts", moving, [[0, 2], [1, 3], [0, 3, 2, 3], [3], [[0, 3]], [0, 1.5, 3]]),
    ("edges", lambda given: moving([0, len(given)], given), [edges((0, 1), (1, 0)), edges((1, 1))]),
    ("weights", lambda given: MovingGraph(3, ONE, torch.tensor([0, 1]), given), [torch.tensor([-1.0]), torch.ones(2)]),
    ("observation", lambda at: moving([0, 2, 3])[at], [2, -1, 0.5]),
    ("graphs", MovingGraph.stack, [[], [complete(3), complete(4)]]),
    *(("device", to, ["meta", "cuda:99", "gpu", b"cpu", 1.5])
      for to in (complete(3).to, *(lambda d, draw=draw: draw(6, 2, device=d) for draw in (uniform, random_regular)))),
    ("A", from_adjacency, [
        [[0, 1], [1, 0]], torch.eye(3).to_sparse(), torch.zeros(2, 3), torch.zeros(1, 1),
        *(torch.tensor([[0.0, a], [b, c]]) for a, b, c in ((1, 2, 0), (1, 1, 4), (NAN, NAN, 0), (-1, -1, 0))),
        torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0]]]),
    ]),
    ("edge_index", lambda listed: from_edge_index(torch.tensor(listed), 3), [
        [[0, 0], [1, 1]], [[0, 2], [1, 2]], [[0], [3]], [[0, 1], [0, 2], [1, 2]], [[0.0], [1.0]],
    ]),
    ("weights", lambda given: from_edge_index(edges((0, 1), (1, 0)), 3, torch.tensor(given)), [
        [1.0, 2.0], [1.0], [-1.0, -1.0],
    ]),
    ("G", from_networkx, [
        networkx.DiGraph([(0, 1)]), networkx.MultiGraph([(0, 1)]), [(0, 1)],
    ]),
    ("n", from_networkx, [networkx.empty_graph(1)]),
    ("edges", from_networkx, [networkx.Graph([(0, 1), (1, 1)])]),
    ("weights", lambda value: from_networkx(weighted(value)), ["heavy", NAN, -1, INF]),
    ("names", lambda names: Graph(3, ONE, names=names), [("a", "b"), ["a", "b", "b"], "abc", 5]),
    ("names", complete(3).with_names, [("a", "b"), ["a", "b", "b"]]),
    ("names", lambda names: from_networkx(networkx.path_graph(4), names), [
        [0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4], [0, 1, 2, 2.0], [0, 1, 2, [3]], ["0", "1", "2", "3"], 4,
    ]),
    ("labels", cliques, [torch.zeros(2, 2), torch.tensor([0]), [7], [[0], [1]], 5, torch.tensor([0.0, NAN])]),
    ("degree", lambda degree: circulant(9, degree), [None, 3, 9]),
    ("shifts", lambda shifts: circulant(10, shifts=shifts), [[6], [1, 1], []]),
    ("degree", lambda degree: circulant(10, degree, shifts=[1]), [2]),
    ("p", lambda p: bernoulli(5, p), [0.0, -0.1, 1.1, NAN, "many", None]),
    ("m", lambda m: uniform(5, m), [0, -1, 11, 2.0, True]),
    ("degree", lambda degree: random_regular(6, degree), [0, -2, 6, 2.0]),
    ("degree", lambda degree: random_regular(5, degree), [1, 3]),  # an odd number of stubs is never rounded
    ("graph", relabelled, [Graph(3, torch.empty(0, 2).long()), Graph(3, ONE, torch.ones(1))]),
    *(("seed", lambda seed, draw=draw: draw(6, 2, seed=seed), [None, 1.5, "0", -1, True, 2**63])
      for draw in (uniform, random_regular)),
    ("k", lambda k: knn(torch.zeros(4, 2), k), [0, -1, 4, 1.0, True]),
    ("r", lambda r: radius(torch.zeros(4, 2), r), [0.0, -1.0, NAN, INF, "1", None, True]),
    *(("features", lambda given, build=build: build(given, 1), [
        [[0.0, 0.0]], torch.zeros(4), torch.zeros(1, 2), torch.zeros(4, 0), torch.zeros(4, 2, dtype=torch.complex64),
        torch.tensor([[0.0], [NAN]]), torch.tensor([[INF], [0.0]]), torch.zeros(3, 1, 2), torch.zeros(0, 4, 2),
        torch.tensor([[[0.0], [INF]]]),
    ]) for build in (knn, radius)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in VALUES for v in vs])
def test_bad_inputs_are_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(InputError) as error:
        call(value)
    assert error.value.name == name
