"""Randomly numbered graphs: same shape, every numbering equally likely."""

import itertools
from collections import Counter

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.graphs import Graph, Sampling
from graphsnd.graphs.relabelled import relabelled


def test_shape_is_kept() -> None:
    graph = gs.graphs.bernoulli(15, 0.3, seed=0)
    new = relabelled(graph, seed=1)
    assert networkx.is_isomorphic(graph.to_networkx(), new.to_networkx())
    assert not torch.equal(graph.edges, new.edges)
    assert torch.equal(new.edges, Graph(15, new.edges).edges)
    assert new.inclusion == pytest.approx(graph.m / 105)
    assert new.sampling is Sampling.RELABELLED
    assert torch.equal(new.edges, relabelled(graph, seed=1).edges)


def test_numberings_are_equally_likely() -> None:
    path = gs.graphs.from_networkx(networkx.path_graph(4))
    generator = torch.Generator().manual_seed(0)
    seen = Counter(str(relabelled(path, seed=generator).edges.tolist()) for _ in range(2400))
    assert len(seen) == len(list(itertools.permutations(range(4)))) // 2
    assert max(abs(count - 200) for count in seen.values()) < 5 * np.sqrt(200)


@pytest.mark.parametrize("graph", [
    Graph(3, torch.empty(0, 2, dtype=torch.int64)),
    Graph(3, torch.tensor([[0, 1]]), torch.ones(1)),
])  # fmt: skip
def test_bad_input_is_named(graph: Graph) -> None:
    with pytest.raises(gs.InputError, match="`graph`"):
        relabelled(graph)


@pytest.mark.gpu
def test_device_changes_where_and_not_what() -> None:
    from graphsnd.graphs.expanders import circulant, hypercube, margulis, paley
    from graphsnd.graphs.lps import lps
    from graphsnd.graphs.trim import trim

    for build in (
        lambda device: circulant(30, 5, seed=1, relabel=True, device=device),
        lambda device: hypercube(4, device=device),
        lambda device: paley(13, device=device),
        lambda device: margulis(5, device=device),
        lambda device: lps(5, 13, device=device),
        lambda device: relabelled(hypercube(4, device=device), seed=2),
        lambda device: trim(hypercube(3, device=device), 5, lengths=torch.arange(12.0, 0, -1, device=device)),
    ):
        there, here = build("cuda"), build("cpu")
        assert there.device.type == "cuda"
        assert torch.equal(there.edges.cpu(), here.edges)
