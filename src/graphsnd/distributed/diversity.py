"""SND and Graph-SND of a team in shards, differentiable, and sums over observations that ranks collect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.points import Points
from graphsnd.distributed.shards import Ranks, Shards, make_shards
from graphsnd.errors import InputError, as_tensor, check_clusters
from graphsnd.estimation import SndAccumulator
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import check_graph, normalised_weights
from graphsnd.sums import total


def snd(
    behavior: Behavior | None, distance: Distance | str | None = None, *, shard: str = "agents", group: Any = None
) -> Tensor:
    """:func:`graphsnd.snd` of a team whose shards are held by the ranks of a process group.

    A collective call: every rank of the group makes it, and all get the same value. Each rank may call ``backward`` on
    its own copy, which needs no other rank: the gradient at its own shard is that of the one value, as if one process
    held the whole team. With shards of observations and a copy of the policies on every rank, the gradient at the
    parameters is therefore the *sum* over ranks (``DistributedDataParallel`` averages: multiply by their number).

    Args:
        behavior: This rank's shard: what its own agents would do on observations that all ranks share (their number
            may differ, and be 1), or what all agents would do on its own observations. None for an empty shard.
        distance: A distance or its name; the family's default when None.
        shard: Axis that is spread over the ranks: ``agents``, which are then numbered in the order of the ranks, or
            ``observations``.
        group: A process group (nccl or gloo); all processes when None; without torch.distributed there is one rank.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: For wrong arguments; on all ranks, where their arguments differ.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.distributed.snd(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor(4.)
    """
    shards = make_shards("snd", behavior, distance, shard, group)
    return _mean(shards, lambda points: total(kernels.pair_totals(points)), math.comb(shards.agents, 2))


def graph_snd(
    behavior: Behavior | None, graph: Graph, distance: Distance | str | None = None, *, shard: str = "agents",
    group: Any = None,
) -> Tensor:  # fmt: skip
    """:func:`graphsnd.graph_snd` of a team in shards, with the same rules as :func:`snd`.

    Args:
        behavior: This rank's shard; None for an empty one.
        graph: Graph on all agents of the team, the same on every rank.
        distance: A distance or its name; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group; all processes when None.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: For wrong arguments; on all ranks, where their arguments differ.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))  # of this rank
        >>> gs.distributed.graph_snd(team, gs.Graph(3, torch.tensor([[0, 1], [0, 2]])))
        tensor(4.5000)
    """
    check_graph(graph, getattr(graph, "n", 0))  # that it is one
    shards = make_shards("graph_snd", behavior, distance, shard, group, graph=fingerprint(graph))
    check_graph(graph, shards.agents)
    weights, weight_sum = normalised_weights(graph, shards.like.values.device)
    # Without weight all sums are 0.
    return _mean(
        shards,
        lambda points: total(kernels.edge_totals(points, graph.edges, weights, ordered=True)),
        float(weight_sum) or 1.0,
    )


def accumulate(
    accumulator: SndAccumulator,
    behavior: Behavior | None,
    clusters: Tensor | Sequence[int] | None = None,
    *,
    group: Any = None,
) -> None:
    """Add a batch of observations whose agents are spread over ranks; :func:`merge` has the result.

    A collective call. Each rank's accumulator takes the rank's share of the observations. With observations spread
    over the ranks, each calls :meth:`~graphsnd.SndAccumulator.update` on its own.

    Args:
        accumulator: This rank's accumulator, for the agents of the whole team; it is changed.
        behavior: Behaviour of this rank's agents on observations that all ranks share; None for no agents.
        clusters: Cluster of each observation, integers, the same on every rank, where the accumulator was made with
            ``clusters=True``.
        group: A process group; all processes when None.

    Raises:
        InputError: For wrong arguments; on all ranks, where their arguments differ. Nothing was added then.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))  # of this rank
        >>> gs.distributed.accumulate(accumulator, team)
        >>> gs.distributed.merge(accumulator).compute().value
        4.0
    """
    accumulator._check_batch(behavior, clusters)
    alike = {"team": accumulator.agents, "graph": fingerprint(accumulator.graph), "family": accumulator.family}
    alike["clusters"] = None if clusters is None else hash(tuple(as_tensor(clusters).flatten().tolist()))
    shards = make_shards("accumulate", behavior, accumulator.distance, "agents", group, **alike)
    if shards.agents != accumulator.agents:
        raise InputError("behavior", f"of {accumulator.agents} agents over all ranks", shards.agents)
    layout = max((share.batch_shape for share in shards.shares), key=len)  # of the rank that says most of it
    groups = check_clusters(clusters, layout)
    accumulator.distance, accumulator.family = shards.common["distance"], shards.common["family"]
    for parts, points in shards.blocks():
        if points.observations:
            accumulator._add(points, None if groups is None else groups[slice(*parts[shards.ranks.rank])])


def merge(accumulator: SndAccumulator, *, group: Any = None) -> SndAccumulator:
    """Return what the accumulators of all ranks have collected, the same on every rank; none is changed.

    A collective call. The result is that of one accumulator, to rounding, with the same bits on all ranks.

    Args:
        accumulator: This rank's accumulator.
        group: A process group; all processes when None.

    Raises:
        InputError: On all ranks, where they measure different things.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> print(gs.distributed.merge(accumulator).compute())
        SND 4 ± unknown (2-Wasserstein of actions, all 3 pairs, 1 observation)
    """
    return reduce(SndAccumulator.merge, Ranks.of(group).share(copy(accumulator)))


def _mean(shards: Shards, measure: Callable[[Points], Tensor], count: float) -> Tensor:
    """Return a sum over observations and pairs as a mean, with a gradient where a rank asks for one.

    Args:
        shards: The team's shards.
        measure: Returns the sum, of all agents on some observations.
        count: Number of pairs.
    """
    sums = torch.zeros((), dtype=torch.float64, device=shards.like.values.device)
    slopes = torch.empty_like(shards.given()) if shards.gradient else None
    for parts, points in shards.blocks():
        if slopes is None:
            sums += measure(points) if points.observations else 0
            continue
        # The gradient is computed with the sum, since backward must not wait for other ranks.
        own = values = points.values.detach()
        if points.observations:
            with torch.enable_grad():
                part = measure(points.replace(values.requires_grad_()))
            sums, own = sums + part.detach(), torch.autograd.grad(part, values)[0]
        if shards.shard == "observations":
            slopes = own
        else:
            for (a, b), back in zip(parts, shards.return_gradients(own, parts), strict=True):
                slopes[a:b] = back
    sums = shards.ranks.add(sums)
    if slopes is not None:
        sums = _Sum.apply(shards.given(), sums, slopes)
    return (sums / (shards.observations * count)).to(shards.like.result_dtype)


class _Sum(torch.autograd.Function):
    """A sum whose gradient is known."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: Tensor, slopes: Tensor) -> Tensor:
        ctx.save_for_backward(slopes)
        return sums.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return slopes * grad, None, None
