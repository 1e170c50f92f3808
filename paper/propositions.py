"""The paper's propositions about Graph-SND on a fixed graph, checked on small teams and many graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import networkx
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.graphs import Graph
from graphsnd.kernels.dispatch import available
from graphsnd.metric import graph_snd, pairwise, snd
from graphsnd.rl.streams import hashed

OBSERVATIONS = 24
KNN = [(n, k) for n in (16, 64, 256) for k in (1, 3, 8)]


@dataclass(frozen=True)
class Renaming:
    """How much Graph-SND changes when agents are renamed (Proposition 5)."""

    automorphisms: int  # number of automorphisms that were tried
    change: float  # largest change under one of them
    other: float  # largest change under a random renaming that is no automorphism, for comparison


@dataclass(frozen=True)
class Propositions:
    """The measurements for each proposition."""

    nonnegativity_failures: int
    renaming: Renaming
    partition_error: float
    distances_beyond_edges: list[int]  # for each graph
    knn_edges_share: list[float]  # for each graph


def check_propositions(cases: int, seed: int) -> Propositions:
    """Check all propositions.

    Args:
        cases: Number of random teams per proposition.
        seed: Seed of teams and graphs.
    """
    return Propositions(
        nonnegativity_failures(cases, seed),
        renaming_changes(seed),
        partition_error(cases // 4, seed),
        distances_beyond_edges(seed),
        knn_edges_share(seed),
    )


def random_team(n: int, generator: torch.Generator) -> Gaussian:
    """Return a team of independent random agents, in float64."""
    loc = torch.randn(OBSERVATIONS, n, 2, generator=generator, dtype=torch.float64)
    return Gaussian(loc, torch.rand(n, 2, generator=generator, dtype=torch.float64))


def pick_agents(team: Gaussian, agents: Tensor) -> Gaussian:
    """Return a team whose agent i is agent ``agents[i]`` of ``team``; an agent may be picked twice."""
    return Gaussian(team.loc[..., agents, :], team.scale[..., agents, :])


def backends() -> list[str]:
    """Return the kernels that this machine can run on the CPU."""
    return [name for name, missing in available().items() if missing is None and name != "gpu"]


def nonnegativity_failures(cases: int, seed: int) -> int:
    """Count how often Graph-SND has a wrong sign, or is zero where it should not be, or the reverse (Proposition 3).

    Agents of one kind are identical. Some weights are 0, sometimes all. Graph-SND should be 0 exactly if every edge
    with a weight above 0 joins two agents of the same kind. By convention it is also 0 if all weights are 0.

    Example:
        >>> nonnegativity_failures(20, 0)
        0
    """
    generator = hashed(seed, 1)
    failures = 0
    for _ in range(cases):
        n = int(torch.randint(2, 9, (), generator=generator))
        kinds = torch.randint(int(torch.randint(1, n + 1, (), generator=generator)), (n,), generator=generator)
        drawn = graphs.bernoulli(n, 0.4, seed=generator)
        weights = torch.rand(drawn.m, generator=generator) * (torch.rand(drawn.m, generator=generator) < 0.5)
        i, j = drawn.edges[weights > 0].T
        zero = bool((kinds[i] == kinds[j]).all())
        team, graph = pick_agents(random_team(n, generator), kinds), Graph(n, drawn.edges, weights)
        values = [float(graph_snd(team, graph, backend=backend)) for backend in backends()]
        failures += sum(value < 0 or (value == 0) != zero for value in values)
    return failures


def symmetric_graphs() -> dict[str, Graph]:
    """Return graphs with automorphisms, with and without weights."""
    ring, wheel = graphs.circulant(10, 2), networkx.wheel_graph(8)
    first, second = ring.edges.T
    heavy = (first % 2 == 0) & (second == first + 1)
    for i, j in wheel.edges:
        wheel.edges[i, j]["weight"] = 3.0 if 0 in (i, j) else 0.5
    return {
        "ring": ring,
        "circulant": graphs.circulant(12, 4),
        "complete bipartite": graphs.from_networkx(networkx.complete_bipartite_graph(3, 4)),
        "hypercube": graphs.from_networkx(networkx.hypercube_graph(3)),
        "cliques": graphs.cliques([0, 0, 0, 1, 1, 1]),
        "alternating ring": Graph(10, ring.edges, 1.0 + heavy),
        "wheel, spokes heavier": graphs.from_networkx(wheel),
    }


def automorphisms(graph: Graph) -> Iterator[Tensor]:
    """Yield the renamings of the agents that leave edges and weights as they are, one of them the identity.

    Example:
        >>> path = graphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> sorted(renaming.tolist() for renaming in automorphisms(path))
        [[0, 1, 2], [2, 1, 0]]
    """
    plain = graph.to_networkx()
    same = networkx.isomorphism.numerical_edge_match("weight", 1.0)
    for renaming in networkx.isomorphism.GraphMatcher(plain, plain, edge_match=same).isomorphisms_iter():
        yield torch.tensor([renaming[agent] for agent in range(graph.n)])


def renaming_changes(seed: int) -> Renaming:
    """Rename the agents of symmetric graphs by every automorphism, and by a permutation that is no automorphism."""
    generator = hashed(seed, 2)
    tried, change, other = 0, 0.0, 0.0
    for graph in symmetric_graphs().values():
        team = random_team(graph.n, generator)
        before = float(graph_snd(team, graph))
        after = [float(graph_snd(pick_agents(team, renaming), graph)) for renaming in automorphisms(graph)]
        tried, change = tried + len(after), max(change, *(abs(value - before) for value in after))
        mixed = pick_agents(team, torch.randperm(graph.n, generator=generator))
        other = max(other, abs(float(graph_snd(mixed, graph)) - before))
    return Renaming(tried, change, other)


def partition_error(cases: int, seed: int) -> float:
    """Return the largest difference between a union of cliques and the groups' SND, weighted by pairs (section 2)."""
    generator = hashed(seed, 3)
    largest = 0.0
    for _ in range(cases):
        n = int(torch.randint(4, 13, (), generator=generator))
        labels = torch.randint(3, (n,), generator=generator)
        team, groups = random_team(n, generator), [(labels == label).nonzero().squeeze(1) for label in range(3)]
        parts = [(len(g) * (len(g) - 1) / 2, float(snd(pick_agents(team, g)))) for g in groups if len(g) > 1]
        mean = sum(pairs * value for pairs, value in parts) / sum(pairs for pairs, _ in parts)
        largest = max(largest, abs(float(graph_snd(team, graphs.cliques(labels))) - mean))
    return largest


class DistanceCounter(TorchFunctionMode):
    """Count the 2-Wasserstein distances of the plain torch kernel inside a ``with``: roots, and results of cdist."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and count the numbers in its result."""
        result = func(*args, **(kwargs or {}))
        if func in (torch.Tensor.sqrt, torch.cdist):
            self.count += result.numel()
        return result


def distances_beyond_edges(seed: int) -> list[int]:
    """Return how many distances per observation Graph-SND computes beyond one per edge (Proposition 6)."""
    generator = hashed(seed, 4)
    sparse = [graphs.knn(torch.rand(40, 2, generator=generator), 3), graphs.bernoulli(60, 0.1, seed=generator)]
    beyond = []
    for graph in [*symmetric_graphs().values(), *sparse, graphs.complete(20)]:
        team = random_team(graph.n, generator)
        with DistanceCounter() as roots:
            graph_snd(team, graph, backend="reference")
        beyond.append(roots.count // OBSERVATIONS - graph.m)
    return beyond


def knn_edges_share(seed: int) -> list[float]:
    """Return |E| / (nk) of kNN graphs over agents in a square: 1/2 if all neighbours are mutual, 1 if none."""
    generator = hashed(seed, 5)
    return [graphs.knn(torch.rand(n, 2, generator=generator), k).m / (n * k) for n, k in KNN]


def clusters(team: Gaussian, size: int, seed: int) -> tuple[Gaussian, Tensor]:
    """Return a team of two clusters around the two most different agents of ``team``, and the cluster of each agent.

    Every agent acts like the agent at its centre, shifted in a direction of its own by a fiftieth of their distance.
    """
    n = team.agents
    furthest = int(pairwise(team, graph=graphs.complete(n)).argmax())
    i, j = graphs.complete(n).edges[furthest].tolist()
    labels = torch.arange(2 * size) // size
    models = pick_agents(team, torch.tensor([i, j])[labels])
    angles = 2 * torch.pi * torch.rand(2 * size, generator=hashed(seed, 6), dtype=torch.float64)
    own = torch.stack([angles.cos(), angles.sin()], -1) * float(snd(pick_agents(team, torch.tensor([i, j])))) / 50
    return Gaussian(models.loc + own, models.scale), labels
