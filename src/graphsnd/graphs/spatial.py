"""Graphs from where the agents are: nearest neighbours and balls in a space of features.

Both builders rank by one float64 distance, summed feature by feature (:func:`_squared`), on every device. A k-d tree
on the CPU only proposes candidates, so its own rounding decides nothing: CPU and GPU agree on every graph, ties
included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.behavior.behavior import Agents, names_of, stack_agents
from graphsnd.errors import InputError, as_tensor, check_finite, check_integer, check_positive, check_rank, shape_of
from graphsnd.graphs import pairs
from graphsnd.graphs.graph import Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Entries of the largest temporary: 32 MiB of float64 on the CPU; a GPU wants longer rows to be kept busy.
CPU_BLOCK = 2**22
GPU_BLOCK = 2**26
# Tree distances and ours differ by rounding, far less than this; a candidate that close to the limit is compared again.
SLACK = 1e-9
PLAIN_RANGE = 200  # binary orders of magnitude, both ways, in which all squares of differences are precise


def knn(features: Agents, k: int) -> Graph:
    """Join every agent to its ``k`` nearest others; the undirected union, so degrees may exceed ``k``.

    On the CPU a k-d tree takes about a second for 100 000 agents in the plane and half a minute in 8 dimensions; past
    that a GPU, which visits all pairs, is the better place.

    Args:
        features: ``[n, f]``, finite, or a dict of one row per agent, whose keys name the graph's agents; Euclidean
            distance between the rows.
        k: Neighbours of each agent before the union, 1 .. n-1. Ties go to the lower index, so there are exactly k.

    Raises:
        InputError: For k outside 1 .. n-1, or features that are not finite or not ``[n, f]``.

    Example:
        >>> knn(torch.tensor([[0.0], [1.0], [1.5], [9.0]]), 1).edges.tolist()
        [[0, 1], [1, 2], [2, 3]]
    """
    names, features = names_of(features), stack_agents("features", features)
    points = _check_features(features)[0]
    n = len(points)
    k = check_integer("k", k, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    nearest = _nearest_dense(points, k, GPU_BLOCK) if points.is_cuda else torch.from_numpy(_nearest_tree(points, k))
    agents = torch.arange(n, device=nearest.device).repeat_interleave(k)
    edges = pairs.from_keys(torch.unique(pairs.keys(agents, nearest.reshape(-1), n)), n)
    return Graph._trusted(n, edges.to(as_tensor(features).device), family="knn", names=names)


def radius(features: Agents, r: float) -> Graph:
    """Join every two agents at Euclidean distance at most ``r``; it may be empty.

    Args:
        features: ``[n, f]``, finite, or a dict of one row per agent, whose keys name the graph's agents.
        r: The largest distance of a pair that is joined, finite and above 0.

    Raises:
        InputError: For r that is not above 0, or features that are not finite or not ``[n, f]``.

    Example:
        >>> radius(torch.tensor([[0.0], [1.0], [2.5]]), 1.0).edges.tolist()
        [[0, 1]]
    """
    names, features = names_of(features), stack_agents("features", features)
    points, factor = _check_features(features)
    check_positive("r", r, "It is a distance in the units of the features.")
    reach = float(r) * factor[0] * factor[1]
    edges = _within_dense(points, reach, GPU_BLOCK) if points.is_cuda else _within_tree(points, reach)
    return Graph._trusted(len(points), edges.to(as_tensor(features).device), family="radius", names=names)


def _check_features(features: Any) -> tuple[Tensor, tuple[float, float]]:
    """Return the features as float64, on their GPU or on the CPU, in units in which they can be squared.

    The unit is a power of two, so that no bit changes; it is returned as two factors, whose product may overflow.
    """
    features = check_rank("features", features, 0, "(n, f)")
    if features.dim() != 2 or features.shape[0] < 2 or features.shape[1] < 1:
        raise InputError("features", "with shape (n, f), at least (2, 1)", shape_of(features))
    if features.is_complex() or features.dtype == torch.bool:
        raise InputError("features", "to have a real dtype", features.dtype)
    check_finite("features", features)
    points = (features.detach() if features.is_cuda else features.detach().cpu()).double()
    exponent = math.frexp(float((points.amax(0) / 2 - points.amin(0) / 2).max()))[1]
    factor = 2.0 ** -(exponent // 2), 2.0 ** -(exponent - exponent // 2)
    _check_gaps(points, math.ldexp(1.0, exponent - 2 * PLAIN_RANGE))
    if abs(exponent) <= PLAIN_RANGE:
        return points, (1.0, 1.0)
    return points * factor[0] * factor[1], factor


def _check_gaps(points: Tensor, least: float) -> None:
    """Raise when two points are so close, beside the others, that the square of their difference would be lost."""
    nonzero = points[points != 0].abs()
    if nonzero.numel() and float(nonzero.min()) < least:
        gaps = points.sort(dim=0).values.diff(dim=0)
        if bool(((gaps > 0) & (gaps < least)).any()):
            got = "values that are closer together than 1e-120 of their range"
            raise InputError("features", "of comparable size", got, "Round them, or give them other units.")


def _squared(points: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Return the squared distances of points ``i`` and ``j``, which broadcast.

    One multiplication and one addition for each feature, rounded apart: no fused operation and no reduction whose order
    a device may choose. The matmul form would lose small distances to cancellation.
    """
    total = torch.zeros((), dtype=torch.float64, device=points.device)
    for column in points.unbind(1):
        difference = column[i] - column[j]
        total = difference.square_().add_(total)
    return total


def _nearest_dense(points: Tensor, k: int, block: int) -> Tensor:
    """Return the k nearest of every point, ``[n, k]``, from all distances in blocks of rows."""
    n = len(points)
    columns = torch.arange(n, device=points.device)
    parts = []
    for rows in torch.split(columns, max(1, block // n)):
        squared = _squared(points, rows[:, None], columns)
        squared.scatter_(1, rows[:, None], torch.inf)
        # topk leaves open which of several equal values it returns, so it only says how far the k-th one is.
        furthest = squared.topk(k, dim=1, largest=False).values[:, -1:]
        closer, tied = squared < furthest, squared == furthest
        chosen = closer | (tied & (tied.cumsum(1) <= k - closer.sum(1, keepdim=True)))
        parts.append(chosen.nonzero()[:, 1].view(-1, k))
    return torch.cat(parts)


def _within_dense(points: Tensor, r: float, block: int) -> Tensor:
    """Return the edges at distance at most r, from all distances in blocks of rows."""
    n = len(points)
    columns = torch.arange(n, device=points.device)
    parts = []
    for rows in torch.split(columns, max(1, block // n)):
        near = (_squared(points, rows[:, None], columns).sqrt_() <= r) & (rows[:, None] < columns)
        parts.append(near.nonzero() + rows[0] * torch.tensor([1, 0], device=points.device))
    return torch.cat(parts)


def _within_tree(points: Tensor, r: float) -> Tensor:
    """Return the edges at distance at most r, from a k-d tree."""
    from scipy.spatial import cKDTree

    # The tree compares squares, and r * r may round below the square of a distance that equals r.
    candidates = cKDTree(points.numpy(), balanced_tree=False).query_pairs(r * (1 + SLACK), output_type="ndarray")
    i, j = torch.from_numpy(candidates).long().reshape(-1, 2).unbind(1)
    near = _squared(points, i, j).sqrt_() <= r
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
            squared = _squared(points, torch.from_numpy(rows)[:, None], torch.from_numpy(candidates)).numpy()
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
