r"""The paper's ablation of graph families at equal numbers of edges.

Sizes 50, 100, 200, 500; degrees ceil(log2 n), ceil(2 log2 n), ceil(4 log2 n), as the text has them (code that takes
multiples of ceil(log2 n) gets 24 for 23); five seeds; random regular, Bernoulli, uniform and k-nearest-neighbour
graphs, and beside them two more regular families. Distances are those of equation (1): all policies on the same
observations.

Edge counts are matched: uniform and trimmed k-nearest-neighbour graphs have exactly the nd/2 of the regular ones,
Bernoulli graphs on average. Seeds are plain integers, so ``graphs.random_regular(n, d, seed=s)`` is the graph of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import torch
from torch import Tensor

from graphsnd import bounds, graphs
from graphsnd.behavior import Behavior, Deterministic, Gaussian
from graphsnd.errors import InputError
from graphsnd.graphs import Graph
from graphsnd.metric import pairwise
from graphsnd.reproduce.ratios import Distances, Row, compare
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

SIZES, SEEDS = (50, 100, 200, 500), (0, 1, 2, 3, 4)
POLICY_SEED, OBSERVATION_SEED, OBSERVATIONS = 42, 43, 4096
FEATURES, HIDDEN, ACTIONS = 18, 64, 2
HEAD_GAIN = 0.01  # of a fresh PPO actor
BEST_OF = 8  # graphs from which the one with the best eigenvalues is kept

Step = Callable[[str], None]


class Family(Enum):
    """The families that are compared."""

    REGULAR = "random regular"
    BERNOULLI = "bernoulli"
    UNIFORM = "uniform"
    KNN = "knn, trimmed"
    CIRCULANT = "relabelled circulant"
    BEST = f"best of {BEST_OF} regular"


def ablation(
    behaviors: Mapping[int, Behavior] | Callable[[int], Behavior] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    seeds: Sequence[int] = SEEDS,
    families: Sequence[Family] = tuple(Family),
    forwarding: bool = True,
    seconds: float | None = 10.0,
    step: Step = lambda name: None,
) -> list[Row]:
    """Compare Graph-SND with SND for every size, degree, family and seed.

    Without forwarding indices the full protocol takes less than a minute on a core, with them about half an hour: half
    a second a graph at n = 50, one at n = 100, and with the default limit up to 20 at n = 500.

    Args:
        behaviors: A team for every size, or a function that makes one; :func:`initial_team` when None.
        sizes: Numbers of agents.
        seeds: Of the graphs.
        families: Of graphs.
        forwarding: Whether to compute forwarding indices, which takes most of the time.
        seconds: Time limit of each search: for the flow, and again for the paths. The bounds are certified whenever it
            stops. None for no limit, about a minute a graph at n = 500.
        step: Called with a name as every size and degree begins.

    Returns:
        Rows in that order. The k-nearest-neighbour graph is not drawn and has one row for each size and degree.

    Raises:
        InputError: For a size without a team or a team of another size.

    Example:
        >>> rows = ablation(sizes=(12,), seeds=(0,), forwarding=False)
        >>> [(row.degree, row.edges) for row in rows if row.family == "uniform"]
        [(4, 24), (8, 48)]
    """
    rows: list[Row] = []
    for n in sizes:
        behavior = _team(behaviors, n)
        with torch.no_grad():
            distances = Distances.of(pairwise(behavior).double().cpu())
            positions = mean_actions(behavior).cpu()
        for asked, degree in degrees(n):
            step(f"n = {n}, degree {degree}")
            for family in families:
                for seed in (None,) if family is Family.KNN else tuple(seeds):
                    row = compare(
                        distances,
                        build(family, n, degree, seed or 0, positions),
                        family=family.value,
                        degree=degree,
                        asked_degree=asked,
                        seed=seed,
                        forwarding=forwarding,
                        seconds=seconds,
                    )
                    rows.append(row)
    return rows


def degrees(n: int) -> list[tuple[int, int]]:
    """The protocol's degrees, and those that are used: one more where n times the degree is odd.

    Degrees at which the graph would be complete or impossible are left out, which takes fewer than 23 agents.

    Example:
        >>> degrees(50), degrees(13)
        ([(6, 6), (12, 12), (23, 23)], [(4, 4), (8, 8)])
    """
    asked = [math.ceil(factor * math.log2(n)) for factor in (1, 2, 4)]
    used = [(d, d + n * d % 2) for d in asked]
    return [(d, use) for d, use in used if use < n - 1]


def build(family: Family, n: int, degree: int, seed: int, positions: Tensor) -> Graph:
    """A graph of a family with n * degree / 2 edges.

    Args:
        family: Which.
        n: Number of agents.
        degree: Mean degree, n * degree even.
        seed: Of the draw.
        positions: ``[n, f]``, in which neighbours are near: the mean actions.
    """
    edges = n * degree // 2
    if family is Family.REGULAR:
        return graphs.random_regular(n, degree, seed=seed)
    if family is Family.BERNOULLI:
        return graphs.bernoulli(n, edges / math.comb(n, 2), seed=seed)
    if family is Family.UNIFORM:
        return graphs.uniform(n, edges, seed=seed)
    if family is Family.KNN:
        # The undirected union has nd/2 edges at least, since every agent has d of its own.
        return graphs.trim(graphs.knn(positions, degree), edges, positions=positions)
    if family is Family.CIRCULANT:
        return graphs.circulant(n, degree, seed=seed, relabel=True)
    return bounds.best_of(BEST_OF, n, degree, seed=seed)


def initial_team(n: int, *, observations: int = OBSERVATIONS) -> Behavior:
    """Freshly initialised policies 18-64-64-2 on observations uniform in [-1, 1]^18.

    Orthogonal weights, tanh, means squashed to [-1, 1], a standard deviation of exp(-0.5) for everybody.

    Args:
        n: Number of agents.
        observations: Shared by all of them.

    Example:
        >>> initial_team(5, observations=16)
        Gaussian(agents=5, observations=16)
    """
    generator = torch.Generator().manual_seed(POLICY_SEED)
    sizes = (FEATURES, HIDDEN, HIDDEN, ACTIONS)
    network = StackedMLP.create((n,), sizes, generator=generator, head_gain=HEAD_GAIN)
    inputs = torch.rand(observations, FEATURES, generator=torch.Generator().manual_seed(OBSERVATION_SEED)) * 2 - 1
    with torch.no_grad():
        return StackedTeam(network, GaussianHead(ACTIONS, batch=(n,))).evaluate(inputs)


def mean_actions(behavior: Behavior) -> Tensor:
    """What every agent does on average over the observations, ``[n, actions]``."""
    if isinstance(behavior, Gaussian):
        actions = behavior.loc
    elif isinstance(behavior, Deterministic):
        actions = behavior.actions
    else:
        raise InputError("behaviors", "with mean actions: Gaussian or Deterministic", repr(behavior))
    return actions.detach().flatten(0, -3).double().mean(dim=0)


def _team(behaviors: Mapping[int, Behavior] | Callable[[int], Behavior] | None, n: int) -> Behavior:
    if behaviors is None:
        return initial_team(n)
    if isinstance(behaviors, Mapping):
        if n not in behaviors:
            raise InputError("behaviors", f"with a team of {n} agents", f"teams of {sorted(behaviors)}")
        behavior = behaviors[n]
    else:
        behavior = behaviors(n)
    if behavior.agents != n:
        raise InputError("behaviors", f"with {n} agents for size {n}", repr(behavior))
    return behavior
