"""SND, Graph-SND and all distances of a team in shards, differentiable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd import kernels
from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance, Points
from graphsnd.distributed.ranks import Note
from graphsnd.distributed.shards import SHARDS, Call, start
from graphsnd.errors import check_choice
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.graphs import Graph
from graphsnd.metric.diversity import normalised_weights
from graphsnd.metric.pair_distances import check_graph
from graphsnd.sums import total


def snd(
    behavior: Behavior | None,
    distance: Distance | None = None,
    *,
    shard: str = "agents",
    group: Any = None,
    backend: str = "auto",
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
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.

    Example:
        >>> import graphsnd as gs
        >>> gs.distributed.snd(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor(4.)
    """
    call = _start("snd", behavior, distance, shard, group, backend)
    return _mean(call, lambda points: total(kernels.pair_totals(points, backend=backend)), math.comb(call.agents, 2))


def graph_snd(
    behavior: Behavior | None,
    graph: Graph,
    distance: Distance | None = None,
    *,
    shard: str = "agents",
    group: Any = None,
    backend: str = "auto",
) -> Tensor:
    """:func:`graphsnd.graph_snd` of a team in shards, with the same rules as :func:`snd`.

    Args:
        behavior: This rank's shard; None for an empty one.
        graph: Graph on all agents of the team, the same on every rank.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group; all processes when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Scalar tensor, differentiable, the same bits on all ranks.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.
    """
    call = _start("graph_snd", behavior, distance, shard, group, backend, graph)
    check_graph(graph, call.agents)  # all ranks have the same one: all raise
    weights, whole = normalised_weights(graph, call.points.parts[0].device)
    edges = graph.edges.to(call.points.parts[0].device)

    def measure(points: Points) -> Tensor:
        return total(kernels.edge_totals(points, edges, weights, ordered=True, backend=backend))

    return _mean(call, measure, float(whole) or 1.0)  # without weight all sums are 0


def pairwise(
    behavior: Behavior | None,
    distance: Distance | None = None,
    *,
    shard: str = "agents",
    group: Any = None,
    backend: str = "auto",
) -> Tensor:
    """:func:`graphsnd.pairwise` of a team in shards: the whole matrix on every rank, so for teams whose matrix fits.

    Its ``backward`` is a collective call too: every rank makes it, with the same gradient at the matrix.

    Args:
        behavior: This rank's shard; None for an empty one.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group; all processes when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Symmetric ``[n, n]`` matrix in the order of the ranks, differentiable.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments.
    """
    call = _start("pairwise", behavior, distance, shard, group, backend)

    def measure(points: Points) -> Tensor:
        weight = torch.full((points.observations,), 1 / call.observations, dtype=torch.float64)
        return kernels.pair_matrix(points, weight.to(points.parts[0].device), backend=backend)

    matrix = _Matrix.apply(_own(call), call, measure) if call.gradient else call.sum(measure, (call.agents,) * 2)[0]
    return matrix.to(call.points.result_dtype)


def _start(
    name: str,
    behavior: Behavior | None,
    distance: Distance | None,
    shard: str,
    group: Any,
    backend: str,
    graph: Graph | None = None,
) -> Call:
    @checked
    def describe(
        behavior: Behavior | None, distance: Distance | None, shard: str, backend: str
    ) -> tuple[Note, Behavior | None, Distance | None]:
        check_choice("shard", shard, SHARDS)
        note = {"call": name, "backend": backend}
        if name == "graph_snd":
            check_graph(graph, getattr(graph, "n", 0))  # type: ignore[arg-type]  # that it is one
            note["graph"] = fingerprint(graph)
        return note, behavior, distance

    return start(lambda: describe(behavior, distance, shard, backend), shard, group)[0]


def _mean(call: Call, measure: Callable[[Points], Tensor], count: float) -> Tensor:
    """Return a sum over observations and pairs as a mean, with a gradient where a rank asks for one."""
    sums, slopes = call.sum(measure, (), torch.ones(()) if call.gradient else None)
    if slopes is not None:
        sums = _Sum.apply(_own(call), sums, slopes)
    return (sums / (call.observations * count)).to(call.points.result_dtype)


def _own(call: Call) -> Tensor:
    """Return this rank's points, to differentiate at: on all ranks, so that all may call backward."""
    values = call.points.values
    return values if values.requires_grad else values.detach().requires_grad_()


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
    """All distances, measured again on the way back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, call: Call, measure: Callable[[Points], Tensor]) -> Tensor:
        ctx.call, ctx.measure = call, measure
        return call.sum(measure, (call.agents,) * 2)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.call.sum(ctx.measure, grad.shape, grad)[1], None, None
