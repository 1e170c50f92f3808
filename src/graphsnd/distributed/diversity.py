"""SND, Graph-SND and all distances of a team in shards, differentiable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.points import Points
from graphsnd.distributed.ranks import Note
from graphsnd.distributed.shards import Shards, make_shards
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import check_graph, normalised_weights
from graphsnd.sums import total

Measure = Callable[[Points], Tensor]  # of all agents on some observations: a sum over them, differentiable


def snd(
    behavior: Behavior | None, distance: Distance | None = None, *, shard: str = "agents", group: Any = None
) -> Tensor:
    """:func:`graphsnd.snd` of a team whose shards are held by the ranks of a process group.

    A collective call: every rank of the group makes it, and all get the same value. Each rank may call ``backward`` on
    its own copy, which needs no other rank: the gradient at its own shard is that of the one value, as if one process
    held the whole team. With shards of observations and a copy of the policies on every rank, the gradient at the
    parameters is therefore the *sum* over ranks (``DistributedDataParallel`` averages: multiply by their number).

    Args:
        behavior: This rank's shard: what its own agents would do on observations that all ranks share (their number
            may differ, and be 1), or what all agents would do on its own observations. None for an empty shard.
        distance: Distance object; the family's default when None.
        shard: What is spread over the ranks: ``agents``, which are then numbered in the order of the ranks, or
            ``observations``.
        group: A process group (nccl or gloo); all processes when None; without torch.distributed there is one rank.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.distributed.snd(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor(4.)
    """
    shards = make_shards(lambda: {"call": "snd"}, behavior, distance, shard, group)
    return _mean(shards, lambda points: total(kernels.pair_totals(points)), math.comb(shards.agents, 2))


def graph_snd(
    behavior: Behavior | None, graph: Graph, distance: Distance | None = None, *, shard: str = "agents",
    group: Any = None,
) -> Tensor:  # fmt: skip
    """:func:`graphsnd.graph_snd` of a team in shards, with the same rules as :func:`snd`.

    Args:
        behavior: This rank's shard; None for an empty one.
        graph: Graph on all agents of the team, the same on every rank.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group; all processes when None.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))  # of this rank
        >>> gs.distributed.graph_snd(team, gs.Graph(3, torch.tensor([[0, 1], [0, 2]])))
        tensor(4.5000)
    """

    def describe() -> Note:
        check_graph(graph, getattr(graph, "n", 0))  # that it is one
        return {"call": "graph_snd", "graph": fingerprint(graph)}

    shards = make_shards(describe, behavior, distance, shard, group)
    check_graph(graph, shards.agents)
    edges = graph.edges.to(shards.like.values.device)
    weights, whole = normalised_weights(graph, edges.device)
    # Without weight all sums are 0.
    return _mean(
        shards, lambda points: total(kernels.edge_totals(points, edges, weights, ordered=True)), float(whole) or 1.0
    )


def pairwise(
    behavior: Behavior | None, distance: Distance | None = None, *, shard: str = "agents", group: Any = None
) -> Tensor:
    """:func:`graphsnd.pairwise` of a team in shards: the whole matrix on every rank, so for teams whose matrix fits.

    Its ``backward`` is a collective call too: every rank makes it, with the same gradient at the matrix.

    Args:
        behavior: This rank's shard; None for an empty one.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group; all processes when None.

    Returns:
        Symmetric ``[n, n]`` matrix in the order of the ranks, differentiable.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.distributed.pairwise(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))[0]
        tensor([0., 3., 6.])
    """
    shards = make_shards(lambda: {"call": "pairwise"}, behavior, distance, shard, group)

    def measure(points: Points) -> Tensor:
        weight = torch.full((points.observations,), 1 / shards.observations, dtype=torch.float64)
        return kernels.pair_matrix(points, weight.to(points.values.device))

    shape = (shards.agents, shards.agents)
    matrix = (
        _Matrix.apply(shards.given(), shards, measure, shape) if shards.gradient else _sum(shards, measure, shape)[0]
    )
    return matrix.to(shards.like.result_dtype)


def _mean(shards: Shards, measure: Measure, count: float) -> Tensor:
    """Return a sum over observations and pairs as a mean, with a gradient where a rank asks for one."""
    sums, slopes = _sum(shards, measure, (), torch.ones(()) if shards.gradient else None)
    if slopes is not None:
        sums = _Sum.apply(shards.given(), sums, slopes)
    return (sums / (shards.observations * count)).to(shards.like.result_dtype)


def _sum(
    shards: Shards, measure: Measure, shape: Sequence[int], grad: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return a sum over the observations of all ranks, float64; and the gradient at this rank's points.

    Args:
        shards: The team's shards.
        measure: What is summed, of the given shape.
        shape: Shape of the sum.
        grad: At the sum, the same on all ranks; None for no gradient.
    """
    sums = torch.zeros(tuple(shape), dtype=torch.float64, device=shards.like.values.device)
    slopes = None if grad is None else torch.empty_like(shards.given())
    for parts, points in shards.blocks():
        values = points.values.detach().requires_grad_() if grad is not None else None
        if points.observations:
            with torch.set_grad_enabled(grad is not None):
                part = measure(points if values is None else replace(points, values=values))
            sums += part.detach()
        if slopes is not None and grad is not None and values is not None:
            there = torch.autograd.grad(part, values, grad.to(part))[0] if len(values) else values.detach()
            if shards.shard == "observations":
                slopes = there
            else:
                for (a, b), back in zip(parts, shards.return_gradients(there, parts), strict=True):
                    slopes[a:b] = back
    return shards.ranks.add(sums), slopes


class _Sum(torch.autograd.Function):
    """A sum whose gradient was computed with it, since backward must not wait for other ranks."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: Tensor, slopes: Tensor) -> Tensor:
        ctx.save_for_backward(slopes)
        return sums.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return slopes * grad, None, None


class _Matrix(torch.autograd.Function):
    """All distances, measured again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, shards: Shards, measure: Measure, shape: Sequence[int]) -> Tensor:
        ctx.shards, ctx.measure = shards, measure
        return _sum(shards, measure, shape)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _sum(ctx.shards, ctx.measure, grad.shape, grad)[1], None, None, None
