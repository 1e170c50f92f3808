"""Argument checks that the graph builders share, so that their messages agree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_rank, shape_of
from graphsnd.graphs import pairs

EDGE_INDEX_HINT = "For a PyG edge_index use graphs.from_edge_index(edge_index, n)."


def check_indices(name: str, edges: Any, n: int, *, columns: int) -> Tensor:
    """Return pairs of agents as int64, in range and without self-loops; ``columns`` is the axis of length 2."""
    symbolic = "(edges, 2)" if columns == 1 else "(2, edges)"
    edges = check_rank(name, edges, 0, symbolic)
    if edges.dim() != 2 or edges.shape[columns] != 2:
        transposed = edges.dim() == 2 and edges.shape[1 - columns] == 2
        advice = EDGE_INDEX_HINT if columns == 1 else "For rows of pairs use Graph(n, edges)."
        raise InputError(name, f"with shape {symbolic}", shape_of(edges), advice if transposed else "")
    if edges.dtype == torch.bool or edges.is_floating_point() or edges.is_complex():
        raise InputError(name, "to have an integer dtype", edges.dtype, f"Convert with {name}.long().")
    indices: Tensor = edges.long()
    outside = ((indices < 0) | (indices >= n)).any(columns)
    if bool(outside.any()):
        got = f"the pair {_first(indices, outside, columns)}"
        raise InputError(name, f"to hold agents 0 .. {n - 1}", got, "Number the agents from 0, or raise n.")
    loops = indices.select(columns, 0) == indices.select(columns, 1)
    if bool(loops.any()):
        got = f"the pair {_first(indices, loops, columns)}"
        raise InputError(name, "without self-loops", got, "An agent is at distance 0 of itself; drop it.")
    return indices


def check_distinct(name: str, i: Tensor, j: Tensor, values: Tensor, fix: str) -> None:
    """Raise when two of ``values``, the integers that stand for the pairs (i, j), are equal."""
    again = pairs.repeats(values)
    if bool(again.any()):
        pair = _first(torch.stack([i, j], dim=1), again, 1)
        raise InputError(name, "without duplicates", f"the pair {pair} more than once", fix)


def check_weights(given: Any, edges: Tensor) -> Tensor:
    """Return the weights as a floating tensor ``[m]``, finite and not negative, one for each of the m ``edges``."""
    given = check_rank("weights", given, 0, "(edges,)")
    if given.shape != (len(edges),):
        expected = f"with shape (edges,) = ({len(edges)},)"
        raise InputError("weights", expected, shape_of(given), "Give one weight for each edge.")
    if given.is_complex():
        raise InputError("weights", "to have a real dtype", given.dtype)
    if given.device != edges.device:
        raise InputError("weights", f"on {edges.device}, where the edges are", given.device, "Move one to the other.")
    weights: Tensor = given if given.is_floating_point() else given.to(torch.get_default_dtype())
    # NaN fails the comparison as well, so one test and one read of the device cover all three.
    good = (weights.detach() >= 0) & (weights.detach() < torch.inf)
    if not bool(good.all()):
        at = int((~good).nonzero()[0])
        expected = "to be finite and not negative"
        raise InputError("weights", expected, f"{float(weights[at])} at index {at}", "A weight of 0 ignores a pair.")
    return weights


def _first(edges: Tensor, wrong: Tensor, columns: int) -> tuple[int, int]:
    rows = edges if columns == 1 else edges.T
    i, j = rows[wrong.nonzero()[0, 0]].tolist()
    return i, j
