"""Graphs from where the agents are: nearest neighbours and balls in a space of features.

All pairs of agents are compared, in blocks, by one float64 distance that is summed feature by feature
(:func:`_squared`), on every device: CPU and GPU agree on every graph, ties included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.behavior.behavior import PerAgent, names_of, stack_agents
from graphsnd.errors import InputError, check_finite, check_integer, check_number, check_tensor, shape_of
from graphsnd.graphs import pairs
from graphsnd.graphs.graph import Graph, MovingGraph, check_edges

# Distances at a time: on a CPU what stays in a core's cache; a GPU wants more to be kept busy.
CPU_BLOCK, GPU_BLOCK = 2**17, 2**26


def knn(features: PerAgent, k: int) -> Graph | MovingGraph:
    """Join every agent to its ``k`` nearest others; the undirected union, so degrees may exceed ``k``.

    All pairs are compared, so the time grows with the square of the agents; the memory follows the edges.

    Args:
        features: ``[n, f]``, finite, or a dict of one row per agent, whose keys name the graph's agents; Euclidean
            distance between the rows. With ``[..., n, f]`` each observation has its own graph.
        k: Neighbours of each agent before the union, 1 .. n-1. Ties go to the lower index, so there are exactly k.

    Returns:
        A graph; of ``[..., n, f]`` a :class:`~graphsnd.graphs.MovingGraph`, leading dimensions pooled.

    Raises:
        InputError: For k outside 1 .. n-1, or features that are not finite or not ``[..., n, f]``.

    Example:
        >>> knn(torch.tensor([[0.0], [1.0], [1.5], [9.0]]), 1).edges.tolist()
        [[0, 1], [1, 2], [2, 3]]
        >>> knn(torch.tensor([[[0.0], [1.0], [5.0]], [[0.0], [5.0], [6.0]]]), 1)
        MovingGraph(knn, n=3, observations=2, m=4)
    """
    names, given = names_of(features), _check_features(features)
    points, n = _scale(given)[0], given.shape[-2]
    k = check_integer("k", k, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    check_edges("k", len(points) * n * k / 2)

    def mark(squared: Tensor, row: int) -> Tensor:
        squared.diagonal(row, -2, -1).fill_(torch.inf)
        return _mark_nearest(squared, k)

    return _build("knn", points, mark, given, names)


def radius(features: PerAgent, r: float) -> Graph | MovingGraph:
    """Join every two agents at Euclidean distance at most ``r``; it may be empty.

    Args:
        features: ``[n, f]``, finite, or a dict of one row per agent, whose keys name the graph's agents. With
            ``[..., n, f]`` each observation has its own graph.
        r: The largest distance of a pair that is joined, finite and above 0.

    Returns:
        A graph; of ``[..., n, f]`` a :class:`~graphsnd.graphs.MovingGraph`, leading dimensions pooled.

    Raises:
        InputError: For r that is not above 0, or features that are not finite or not ``[..., n, f]``.

    Example:
        >>> radius(torch.tensor([[0.0], [1.0], [2.5]]), 1.0).edges.tolist()
        [[0, 1]]
    """
    names, given = names_of(features), _check_features(features)
    points, unit = _scale(given)
    reach = check_number("r", r, above=0, fix="It is a distance in the units of the features.") * unit

    def mark(squared: Tensor, row: int) -> Tensor:
        return (squared.sqrt_() <= reach).triu_(row + 1)

    return _build("radius", points, mark, given, names)


def _check_features(features: Any) -> Tensor:
    """Return the features as a finite tensor ``[..., n, f]``."""
    given = check_tensor("features", stack_agents("features", features), 0, "(n, f)")
    if given.dim() < 2 or given.shape[-2] < 2 or not given.numel():
        raise InputError("features", "with shape (n, f) or (observations, n, f), at least (2, 1)", shape_of(given))
    check_finite("features", given)
    return given


def _scale(features: Tensor) -> tuple[Tensor, float]:
    """Return float64 points ``[observations, n, f]`` in units in which they can be squared, and the factor.

    The factor is a power of two, so that no bit changes.
    """
    points = (features.detach() if features.is_cuda else features.detach().cpu()).double()
    points = points.reshape(-1, *points.shape[-2:])
    exponent = math.frexp(float((points.amax(1) / 2 - points.amin(1) / 2).max()))[1]
    factor = 2.0 ** -max(exponent, -1000)
    return points * factor, factor


def _build(
    family: str, points: Tensor, mark: Callable[[Tensor, int], Tensor], given: Tensor, names: tuple[str, ...] | None
) -> Graph | MovingGraph:
    """Return the graph of the given features, or of each observation where they are more than ``[n, f]``.

    Args:
        family: Kind of graph.
        points: ``[observations, n, f]``, float64.
        mark: Function from squared distances ``[some observations, rows, n]``, which it may change, and the first of
            the rows, to the pairs that are joined, in one direction or in both.
        given: The features as they came.
        names: Names of the agents.
    """
    observations, n, _ = points.shape
    block = GPU_BLOCK if points.is_cuda else CPU_BLOCK
    parts = []
    for first, some in enumerate(points.split(step := max(1, block // n**2))):
        found = []
        for row in range(0, n, max(1, block // n)):
            rows = some[:, row : row + max(1, block // n), None]
            owner, i, j = mark(_squared(rows, some.unsqueeze(1)), row).nonzero().unbind(1)
            found.append(owner * n**2 + pairs.keys(i + row, j, n))
        both = torch.cat(found)  # NumPy sorts integers in a third of torch's time
        keys = torch.unique(both) if both.is_cuda else torch.from_numpy(np.unique(both.numpy()))
        parts.append(first * step * n**2 + keys)
    keys = torch.cat(parts).to(given.device)
    edges = pairs.from_keys(keys % n**2, n)
    if given.dim() == 2:
        return Graph._trusted(n, edges, family=family, names=names)
    starts = torch.searchsorted(keys, torch.arange(observations + 1, device=keys.device) * n**2)
    return MovingGraph._trusted(n, edges, starts, family=family, names=names)


def _squared(left: Tensor, right: Tensor) -> Tensor:
    """Return the squared distances of points ``[..., f]``, which broadcast.

    One multiplication and one addition for each feature, rounded apart: no fused operation and no reduction whose order
    a device may choose. The matmul form would lose small distances to cancellation.
    """
    total = torch.zeros((), dtype=torch.float64, device=left.device)
    for a, b in zip(left.unbind(-1), right.unbind(-1), strict=True):
        total = (a - b).square_().add_(total)
    return total


def _mark_nearest(squared: Tensor, k: int) -> Tensor:
    """Mark the k smallest of each row of ``[..., n]``, of equal ones the first."""
    # topk leaves open which of several equal values it returns, so it only says how far the k-th one is.
    if squared.is_cuda:
        furthest = squared.topk(k, dim=-1, largest=False).values[..., -1:]
    else:  # in a fifth of the time
        furthest = torch.from_numpy(np.partition(squared.numpy(), k - 1, axis=-1)[..., k - 1 : k])
    near = squared <= furthest
    if int(near.count_nonzero()) * squared.shape[-1] == k * squared.numel():
        return near  # no ties
    closer, tied = squared < furthest, squared == furthest
    return closer | (tied & (tied.cumsum(-1) <= k - closer.sum(-1, keepdim=True)))
