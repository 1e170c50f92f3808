"""Checks of edges, weights and degrees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_integer, check_tensor, shape_of
from graphsnd.graphs.pairs import from_keys, keys, repeats

EDGE_INDEX_HINT = "For a PyG edge_index use graphs.from_edge_index(edge_index, n)."


def check_indices(name: str, edges: Any, n: int) -> Tensor:
    """Return pairs of agents ``[m, 2]`` as int64, in range and without self-loops."""
    edges = check_tensor(name, edges, 0, "(edges, 2)")
    if edges.dim() != 2 or edges.shape[1] != 2:
        raise InputError(name, "with shape (edges, 2)", shape_of(edges), EDGE_INDEX_HINT)
    if edges.dtype == torch.bool or edges.is_floating_point():
        raise InputError(name, "to have an integer dtype", edges.dtype, f"Convert with {name}.long().")
    indices: Tensor = edges.long()
    outside = ((indices < 0) | (indices >= n)).any(1)
    if bool(outside.any()):
        fix = "Number the agents from 0, or raise n."
        raise InputError(name, f"to hold agents 0 .. {n - 1}", _first_pair(indices, outside), fix)
    loops = indices[:, 0] == indices[:, 1]
    if bool(loops.any()):
        fix = "An agent is at distance 0 of itself; drop it."
        raise InputError(name, "without self-loops", _first_pair(indices, loops), fix)
    return indices


def check_distinct(name: str, edges: Tensor, values: Tensor, fix: str) -> None:
    """Raise if two of ``values`` are equal, the integers that stand for ``edges``."""
    again = repeats(values)
    if bool(again.any()):
        raise InputError(name, "without duplicates", f"{_first_pair(edges, again)} more than once", fix)


def sort_edges(
    edges: Tensor, weights: Any, n: int, owners: Tensor | int = 0, *, fix: str
) -> tuple[Tensor, Tensor | None]:
    """Return the edges sorted, with i < j, and the checked weights in the same order; raise for duplicates.

    Args:
        edges: int64 ``[m, 2]``, in range.
        weights: Value passed as weights, or None.
        n: Number of agents.
        owners: Observation of each edge, ``[m]``, which sorts first.
        fix: Advice for duplicates, at the end of the message.
    """
    own = owners * n**2 + keys(edges[:, 0], edges[:, 1], n)
    check_distinct("edges", edges, own, fix)
    own, order = own.sort()
    return from_keys(own % n**2, n), None if weights is None else check_weights(weights, own)[order]


def check_weights(given: Any, edges: Tensor) -> Tensor:
    """Return the weights as a floating tensor ``[m]``, finite and not negative, one for each of the m ``edges``."""
    given = check_tensor("weights", given, 0, "(edges,)")
    if given.shape != (len(edges),):
        expected = f"with shape (edges,) = ({len(edges)},)"
        raise InputError("weights", expected, shape_of(given), "Give one weight for each edge.")
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


def _first_pair(edges: Tensor, wrong: Tensor) -> str:
    return f"the pair {tuple(edges[wrong.nonzero()[0, 0]].tolist())}"


def check_degree(n: int, degree: Any) -> int:
    """Return the degree, or raise unless some graph on ``n`` agents has it at every agent."""
    degree = check_integer("degree", degree, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    if n * degree % 2:
        fix = f"Use degree {degree + 1}, or one agent more."
        raise InputError("degree", "such that n * degree is even", f"n = {n} and degree = {degree}", fix)
    return degree
