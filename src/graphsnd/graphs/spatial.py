"""Graphs from where the agents are: nearest neighbours and balls in a space of features.

Both builders rank by one float64 distance, summed feature by feature (:func:`_squared`), on every device. A k-d tree
on the CPU only proposes candidates, so its own rounding decides nothing: CPU and GPU agree on every graph, ties
included. Positions at each observation give a graph for each, from all distances of many observations at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.behavior.behavior import Agents, names_of, stack_agents
from graphsnd.errors import (
    MOST_EDGES,
    InputError,
    as_tensor,
    check_finite,
    check_integer,
    check_number,
    check_tensor,
    shape_of,
)
from graphsnd.graphs import pairs
from graphsnd.graphs.checks import check_edges
from graphsnd.graphs.graph import Graph
from graphsnd.graphs.moving import MovingGraph

# Entries of the largest temporary: 32 MiB of float64 on the CPU; a GPU wants longer rows to be kept busy.
CPU_BLOCK = 2**22
GPU_BLOCK = 2**26
CACHED = 2**17  # of all distances at several observations, which stay in a core's cache
SMALL_TEAM = 256  # agents up to which all distances are found on a CPU before the k-d tree of an observation is
COUNTED = 128  # agents whose neighbours within a radius are counted before those of a swarm are listed
# Tree distances and ours differ by rounding, far less than this; a candidate that close to the limit is compared again.
SLACK = 1e-9
PLAIN_RANGE = 200  # binary orders of magnitude, both ways, in which all squares of differences are precise


def knn(features: Agents, k: int) -> Graph | MovingGraph:
    """Join every agent to its ``k`` nearest others; the undirected union, so degrees may exceed ``k``.

    On the CPU a k-d tree, which is fast in the plane and slows down with the dimensions; a GPU visits all pairs.

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
    names, features = names_of(features), stack_agents("features", features)
    points, device = _check_features(features)[0], as_tensor(features).device
    n = points.shape[-2]
    k = check_integer("k", k, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)

    def one(points: Tensor) -> Tensor:
        nearest = _nearest_dense(points, k, GPU_BLOCK) if points.is_cuda else torch.from_numpy(_nearest_tree(points, k))
        agents = torch.arange(n, device=nearest.device).repeat_interleave(k)
        return pairs.from_keys(torch.unique(pairs.keys(agents, nearest.reshape(-1), n)), n)

    def many(squared: Tensor) -> Tensor:
        squared.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        near = _mark_nearest(squared, k)
        return near | near.mT

    return _build("knn", points, one, many, names, device)


def radius(features: Agents, r: float) -> Graph | MovingGraph:
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
    names, features = names_of(features), stack_agents("features", features)
    points, factor = _check_features(features)
    check_number("r", r, above=0, fix="It is a distance in the units of the features.")
    reach = float(r) * factor[0] * factor[1]

    def one(points: Tensor) -> Tensor:
        return _within_dense(points, reach, GPU_BLOCK) if points.is_cuda else _within_tree(points, reach)

    return _build("radius", points, one, lambda squared: squared.sqrt_() <= reach, names, as_tensor(features).device)


def _build(
    family: str,
    points: Tensor,
    one: Callable[[Tensor], Tensor],
    many: Callable[[Tensor], Tensor],
    names: tuple[str, ...] | None,
    device: torch.device,
) -> Graph | MovingGraph:
    """Return the graph of points ``[n, f]``, or those of ``[observations, n, f]``.

    Args:
        family: Of the graphs.
        points: The features.
        one: From the points of one observation to its edges.
        many: From squared distances ``[some observations, n, n]``, which it may change, to the pairs that are joined.
        names: Of the agents.
        device: For the edges.
    """
    n = points.shape[-2]
    if points.dim() == 2:
        return Graph._trusted(n, one(points).to(device), family=family, names=names)
    block = GPU_BLOCK if points.is_cuda else CACHED
    if n**2 > GPU_BLOCK or (n > SMALL_TEAM and not points.is_cuda):
        return MovingGraph.stack([_build(family, each, one, many, names, device) for each in points])  # type: ignore[misc]
    edges, counts = [], []
    for part in points.split(max(1, block // n**2)):
        joined = many(_squared(part.unsqueeze(2), part.unsqueeze(1))).triu_(1).nonzero()
        edges.append(joined[:, 1:])
        counts.append(joined[:, 0].bincount(minlength=len(part)))
    starts = torch.cat([counts[0].new_zeros(1), *counts]).cumsum(0)
    return MovingGraph._trusted(n, torch.cat(edges).to(device), starts.to(device), family=family, names=names)


def _check_features(features: Any) -> tuple[Tensor, tuple[float, float]]:
    """Return the features as float64, ``[n, f]`` or ``[observations, n, f]``, in units in which they can be squared.

    The unit is a power of two, so that no bit changes; it is returned as two factors, whose product may overflow.
    """
    features = check_tensor("features", features, 0, "(n, f)")
    if features.dim() < 2 or features.shape[-2] < 2 or not features.numel():
        raise InputError("features", "with shape (n, f) or (observations, n, f), at least (2, 1)", shape_of(features))
    if features.dtype == torch.bool:
        raise InputError("features", "to have a real dtype", features.dtype)
    check_finite("features", features)
    points = (features.detach() if features.is_cuda else features.detach().cpu()).double()
    points = points.flatten(0, -3) if points.dim() > 3 else points
    exponent = math.frexp(float((points.amax(-2) / 2 - points.amin(-2) / 2).max()))[1]
    factor = 2.0 ** -(exponent // 2), 2.0 ** -(exponent - exponent // 2)
    _check_gaps(points, math.ldexp(1.0, exponent - 2 * PLAIN_RANGE))
    if abs(exponent) <= PLAIN_RANGE:
        return points, (1.0, 1.0)
    return points * factor[0] * factor[1], factor


def _check_gaps(points: Tensor, least: float) -> None:
    """Raise when two points are so close, beside the others, that the square of their difference would be lost."""
    nonzero = points[points != 0].abs()
    if nonzero.numel() and float(nonzero.min()) < least:
        gaps = points.sort(dim=-2).values.diff(dim=-2)
        if bool(((gaps > 0) & (gaps < least)).any()):
            got = "values that are closer together than 1e-120 of their range"
            raise InputError("features", "of comparable size", got, "Round them, or give them other units.")


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
    else:  # in a third of the time
        furthest = torch.from_numpy(np.partition(squared.numpy(), k - 1, axis=-1)[..., k - 1 : k])
    near = squared <= furthest
    if int(near.count_nonzero()) * squared.shape[-1] == k * squared.numel():
        return near  # no ties
    closer, tied = squared < furthest, squared == furthest
    return closer | (tied & (tied.cumsum(-1) <= k - closer.sum(-1, keepdim=True)))


def _nearest_dense(points: Tensor, k: int, block: int) -> Tensor:
    """Return the k nearest of every point, ``[n, k]``, from all distances in blocks of rows."""
    n, parts = len(points), []
    for rows in torch.arange(n, device=points.device).split(max(1, block // n)):
        squared = _squared(points[rows].unsqueeze(1), points)
        squared.scatter_(1, rows[:, None], torch.inf)
        parts.append(_mark_nearest(squared, k).nonzero()[:, 1].view(-1, k))
    return torch.cat(parts)


def _within_dense(points: Tensor, r: float, block: int) -> Tensor:
    """Return the edges at distance at most r, from all distances in blocks of rows."""
    columns = torch.arange(len(points), device=points.device)
    parts = []
    for rows in columns.split(max(1, block // len(points))):
        near = (_squared(points[rows].unsqueeze(1), points).sqrt_() <= r) & (rows[:, None] < columns)
        parts.append(near.nonzero() + rows[0] * torch.tensor([1, 0], device=points.device))
    return torch.cat(parts)


def _within_tree(points: Tensor, r: float) -> Tensor:
    """Return the edges at distance at most r, from a k-d tree."""
    from scipy.spatial import cKDTree

    # The tree compares squares, and r * r may round below the square of a distance that equals r.
    reach, tree = r * (1 + SLACK), cKDTree(points.numpy(), balanced_tree=False)
    if pairs.pair_count(n := len(points)) > MOST_EDGES:  # scipy would fill the memory before it returns
        some = points[:: n // COUNTED].numpy()
        near = tree.query_ball_point(some, reach, return_length=True, workers=torch.get_num_threads())
        check_edges("r", n * (float(np.mean(near)) - 1) / 2)
    candidates = tree.query_pairs(reach, output_type="ndarray")
    i, j = torch.from_numpy(candidates).long().reshape(-1, 2).unbind(1)
    near = _squared(points[i], points[j]).sqrt_() <= r
    return pairs.from_keys(pairs.keys(i[near], j[near], len(points)).sort().values, len(points))


def _nearest_tree(points: Tensor, k: int) -> NDArray[np.int64]:
    """Return the k nearest of every point, ``[n, k]``, from a k-d tree that is queried wider until no tie is cut."""
    from scipy.spatial import cKDTree

    array = points.numpy()
    kept = _few_copies(array, k + 1)
    tree = cKDTree(array[kept], balanced_tree=False)
    nearest = np.empty((len(array), k), dtype=np.int64)
    open_rows, width = np.arange(len(array)), k + 2
    while len(open_rows):
        width = min(width, len(kept))
        still_open = []
        for start in range(0, len(open_rows), max(1, CPU_BLOCK // width)):
            rows = open_rows[start : start + max(1, CPU_BLOCK // width)]
            reached, near = tree.query(array[rows], k=width, workers=torch.get_num_threads())
            candidates = kept[near]
            squared = _squared(points[rows].unsqueeze(1), points[candidates]).numpy()
            squared[candidates == rows[:, None]] = np.inf
            order = np.lexsort((candidates, squared), axis=-1)[:, :k]
            nearest[rows] = np.take_along_axis(candidates, order, axis=1)
            furthest = np.sqrt(np.take_along_axis(squared, order[:, -1:], axis=1)[:, 0])
            still_open.append(rows[(reached[:, -1] <= furthest * (1 + SLACK)) & (width < len(kept))])
        open_rows, width = np.concatenate(still_open), 2 * width
    return nearest


def _few_copies(array: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the indices of the points, but of equal points only the first ``most``.

    No agent has more than the k lowest of a crowd among its k nearest, and a point in the crowd must skip itself: k + 1
    copies lose nothing. Without this a team that all stands in one place would cost n^2.
    """
    order = np.lexsort(array.T)
    rows = array[order]
    begins = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)])
    positions = np.arange(len(array))
    since = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    return np.sort(order[since < most])
