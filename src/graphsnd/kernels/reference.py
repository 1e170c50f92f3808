"""The plain torch backend: every norm, every device, any dtype; the oracle of the others.

It works through the observations and rows in chunks, so that memory stays bounded, and recomputes each chunk
on the way back instead of storing it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels.pairfunctions import HOMOGENEOUS, PAIR_FUNCTIONS, PairFunction, scale_of
from graphsnd.sums import add_last

CHUNK = 1 << 22  # elements of the largest temporary


def pair_totals(points: Points) -> Tensor:
    """Return the sum of the distances over all pairs i < j, for each observation: ``[observations]``, float64."""
    x, scale, distance = _prepare(points)
    n, f = x.shape[1:]
    if points.norm is Norm.BURES:  # an SVD for each pair: none is computed twice
        return edge_totals(points, torch.triu_indices(n, n, 1, device=x.device).T, None)

    def block(part: Tensor, start: int, stop: int) -> Tensor:
        d = distance(part[:, start:stop, None], part[:, None, start:])
        return add_last(torch.triu(d, diagonal=1).double().flatten(1))

    rows, step = _split_chunks(n, n * f)
    totals = []
    for part in x.split(step):
        sums = _run(block, part, 0, rows)
        for start in range(rows, n, rows):
            sums = sums + _run(block, part, start, start + rows)
        totals.append(sums)
    return torch.cat(totals) * scale


def pair_mean(points: Points) -> Tensor:
    """Return the mean over observations and pairs, in the dtype of the results."""
    totals, n = pair_totals(points), points.values.shape[1]
    return (add_last(totals) / len(totals) / (n * (n - 1) / 2)).to(points.result_dtype)


def pair_matrix(points: Points, weight: Tensor) -> Tensor:
    """Return the weighted sum of the distance matrices over observations: ``[agents, agents]``, float64."""
    x, scale, distance = _prepare(points)
    n, f = x.shape[1:]

    def block(part: Tensor, w: Tensor, start: int, stop: int) -> Tensor:
        d = distance(part[:, start:stop, None], part[:, None, :])
        return torch.einsum("oij,o->ij", d.double(), w)

    rows, step = _split_chunks(n, n * f)
    w = weight.double() * scale
    chunks = list(zip(x.split(step), w.split(step), strict=True))
    matrix = [
        functools.reduce(torch.add, (_run(block, part, v, start, min(start + rows, n)) for part, v in chunks))
        for start in range(0, n, rows)
    ]
    return torch.cat(matrix)


def edge_means(points: Points, edges: Tensor) -> Tensor:
    """Return the mean distance along each edge: ``[edges]``, float64."""
    return edge_means_and_totals(points, edges, None)[0]


def edge_totals(points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False) -> Tensor:
    """Return the sum over edges of coefficient times distance, for each observation: ``[observations]``, float64."""
    return edge_means_and_totals(points, edges, coefficient)[1]


def edge_means_and_totals(
    points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the mean distance along each edge ``[edges]``, and the edge totals ``[observations]``, both float64."""
    x, scale, distance = _prepare(points)
    o, m = x.shape[0], edges.shape[0]
    if m == 0:  # still of the graph that autograd walks
        return x.reshape(-1)[:0].double(), x.reshape(o, -1)[:, :0].sum(dim=1, dtype=torch.float64)
    weight = scale / o

    def block(part: Tensor, e: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        d = distance(*_ends(part, e)).double()
        return torch.einsum("om,o->m", d, weight.expand(len(part))), d @ c

    width, step = _split_chunks(m, x.shape[2])
    coefficient = x.new_ones(m, dtype=torch.float64) if coefficient is None else coefficient.double()
    pieces = list(zip(edges.split(width), coefficient.split(width), strict=True))
    means, totals = x.new_zeros(m, dtype=torch.float64), []
    for part in x.split(step):
        some, sums = zip(*(_run(block, part, e, c) for e, c in pieces), strict=True)
        means = means + torch.cat(some)
        totals.append(functools.reduce(torch.add, sums))
    return means, torch.cat(totals) * scale


def observation_edges(points: Points, edges: Tensor, starts: Tensor | None = None) -> Tensor:
    """Return distances along each observation's own edges ``[observations, k, 2]``: ``[observations, k]``, float64."""
    if starts is not None:  # one observation with any number of edges
        return edge_means(points, edges[0]).unsqueeze(0)
    x, scale, distance = _prepare(points)
    o, _, f = x.shape

    def block(part: Tensor, e: Tensor) -> Tensor:
        return distance(*(part.gather(1, e[..., k, None].expand(-1, -1, f)) for k in (0, 1))).double()

    step = max(1, CHUNK // max(1, edges.shape[1] * f))
    parts = [_run(block, x[at : at + step], edges[at : at + step]) for at in range(0, o, step)]
    return torch.cat(parts) * scale


def _prepare(points: Points) -> tuple[Tensor, Tensor, PairFunction]:
    x, scale = points.values, scale_of(points.values, points.norm)
    return x / scale if points.norm in HOMOGENEOUS else x, scale.double(), PAIR_FUNCTIONS[points.norm]


def _ends(part: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends of all edges. The gradient of ``part[:, index]`` is added up in the order in which threads come."""
    return part.index_select(1, edges[:, 0]), part.index_select(1, edges[:, 1])


def _split_chunks(count: int, size: int) -> tuple[int, int]:
    """Return how many of ``count`` items of ``size`` elements fit a chunk, and how many observations of those."""
    items = max(1, min(count, CHUNK // size))
    return items, max(1, CHUNK // (items * size))


def _run(block: Callable[..., Any], part: Tensor, *args: Tensor | int) -> Any:
    """Run one chunk, without keeping its temporaries when a gradient is needed: they are computed again."""
    if not (torch.is_grad_enabled() and part.requires_grad):
        return block(part, *args)
    from torch.utils.checkpoint import checkpoint

    # Nothing is drawn in a block; restoring the global random state would disturb other threads.
    return checkpoint(block, part, *args, use_reentrant=False, preserve_rng_state=False)
