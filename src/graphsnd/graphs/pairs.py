"""The unordered pairs of n agents: numbered, checked and drawn.

They are numbered 0 .. n(n-1)/2 - 1 in lexicographic order. A random design samples numbers, not pairs; sorted numbers
unrank to sorted edges, so nothing has to be sorted twice. These functions trust their input: they run on whatever
device it is on and never synchronise it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.errors import MOST_AGENTS, MOST_EDGES, InputError, check_device, check_integer, check_tensor, shape_of

LISTED = 512  # agents whose pairs are kept in a table, 2 MB at most
THINNEST, LARGEST = 1 / 64, 1 << 14  # chance of a pair, and agents, for which a GPU marks all pairs
Device = torch.device | str | None
EDGE_INDEX_HINT = "For a PyG edge_index use graphs.from_edge_index(edge_index, n)."


def rank(edges: Tensor, n: int) -> Tensor:
    """Return the lexicographic number of each pair ``i < j``.

    Args:
        edges: int64 ``[..., 2]``, each row a pair with i < j.
        n: The number of agents.

    Returns:
        int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.

    Example:
        >>> rank(torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2]]), 4)
        tensor([0, 1, 2, 3])
    """
    i, j = edges.unbind(-1)
    return i * (2 * n - i - 1) // 2 + (j - i - 1)


def unrank(index: Tensor, n: int) -> Tensor:
    """Return the pair with a given lexicographic number, the inverse of :func:`rank`.

    Args:
        index: int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.
        n: The number of agents; exact up to about a billion.

    Returns:
        int64 ``[..., 2]``, each row a pair with i < j.

    Example:
        >>> unrank(torch.tensor([0, 3, 5]), 4).tolist()
        [[0, 1], [1, 2], [2, 3]]
    """
    if index.device.type == "cpu" and n <= LISTED:
        return torch.from_numpy(_listed(n).take(index.numpy(), axis=0))
    return _unrank(index, n)


@lru_cache(maxsize=16)
def _listed(n: int) -> NDArray[np.int64]:
    """Return all pairs of a small team: reading them costs a tenth of computing them."""
    listed: NDArray[np.int64] = _unrank(torch.arange(math.comb(n, 2), device="cpu"), n).numpy()
    return listed


def _unrank(index: Tensor, n: int) -> Tensor:
    from_end = math.comb(n, 2) - 1 - index
    # Counted from the last pair, row k = n - 2 - i begins at the triangular number k(k+1)/2, which a square root finds.
    k = ((torch.sqrt(8.0 * from_end.double() + 1.0) - 1.0) / 2.0).long()
    if n > 2**25:
        # Past 2**53 the argument of the root is rounded, and the floor may land one row off on either side.
        k = torch.where(k * (k + 1) >> 1 > from_end, k - 1, k)
        k = torch.where((k + 1) * (k + 2) >> 1 <= from_end, k + 1, k)
    return torch.stack([n - 2 - k, n - 1 - from_end + (k * (k + 1) >> 1)], -1)


def others(ranks: Tensor, n: int) -> Tensor:
    """Return the ranks of the pairs that ``ranks`` leaves out, in order; n(n-1)/2 bytes of memory.

    Example:
        >>> others(torch.tensor([0, 2, 4]), 4)
        tensor([1, 3, 5])
    """
    absent = torch.ones(math.comb(n, 2), dtype=torch.bool, device=ranks.device)
    absent[ranks] = False
    return absent.nonzero().squeeze(1)


def keys(i: Tensor, j: Tensor, n: int) -> Tensor:
    """Return one integer per unordered pair, ordered as the pairs are; cheaper than :func:`rank`, defined for i = j."""
    return torch.minimum(i, j) * n + torch.maximum(i, j)


def from_keys(values: Tensor, n: int) -> Tensor:
    """Return the pairs ``[..., 2]`` behind :func:`keys`."""
    return torch.stack([values // n, values % n], dim=-1)


def repeats(values: Tensor) -> Tensor:
    """Mark every entry of a 1-D tensor that equals an earlier one.

    Example:
        >>> repeats(torch.tensor([4, 7, 4, 4])).tolist()
        [False, False, True, True]
    """
    ordered, order = values.sort(stable=True)
    repeated = torch.zeros_like(values, dtype=torch.bool)
    repeated[order[1:]] = ordered[1:] == ordered[:-1]
    return repeated


def resolve(device: Device) -> torch.device:
    """Return the device that is meant; None is torch's default, as in torch's own factories."""
    return torch.get_default_device() if device is None else check_device(device)


def source(seed: object, device: Device, *, host: bool = False) -> tuple[torch.Generator, torch.device]:
    """Return the generator to draw from and the device the graph ends up on."""
    if isinstance(seed, torch.Generator):
        return seed, seed.device if device is None else check_device(device)
    expected = "to be an int in 0 .. 2**63 - 1 or a torch.Generator"
    number = check_integer("seed", seed, expected, low=0, high=2**63 - 1, fix="Randomness is an argument.")
    target = resolve(device)
    drawn_on = target if target.type == "cuda" and not host else torch.device("cpu")
    return torch.Generator(drawn_on).manual_seed(number), target


def integer_seed(seed: int | torch.Generator) -> int:
    """Return an int as it is, or one drawn from a generator."""
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**62, (), generator=seed, device=seed.device))
    return seed


def integers(size: int, high: int, generator: torch.Generator) -> Tensor:
    """Return uniform draws from 0 .. high-1, int64 ``[size]``.

    ``torch.randint(high)`` reduces 32 random bits modulo ``high`` for some ranges and versions, which for a billion
    pairs favours some of them by a quarter. Reducing 63 bits leaves a bias of high / 2**63.
    """
    bits = torch.randint(2**63 - 1, (size,), generator=generator, device=generator.device)
    return bits.remainder_(high)


def geometric_skips(count: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the successes of ``count`` Bernoulli(p) trials, as sorted positions."""
    rate = -math.log1p(-p)
    slack = 4 * math.sqrt(count * p) + 16
    size, last = int(count * p + slack), -1
    parts = []
    while True:
        u = torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64)
        # torch splits an array between threads and may round the ends of each part differently, and a single gap
        # rounded the other way shifts every edge after it. NumPy takes one thread, so the graph cannot depend on their
        # number; for small graphs it is also faster. Anything past the last trial is past it all the same: the bound
        # keeps the gap of a tiny p inside int64.
        trials: Any
        if u.device.type == "cpu":
            trials = np.minimum(np.log1p(-u.numpy()) / -rate, count).astype(np.int64)
        else:
            trials = (torch.log1p(-u) / -rate).clamp_(max=count).long()
        trials += 1
        trials = trials.cumsum(0) + last
        inside = int((trials < count).sum())
        parts.append(torch.as_tensor(trials[:inside]))
        if inside < size:
            return torch.cat(parts) if len(parts) > 1 else parts[0]
        last, size = int(trials[-1]), int(slack)


def marked_pairs(n: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the pairs that came up when each was drawn, in order; n * n bytes of memory.

    On a GPU: four launches and one wait for the number of pairs, where a launch costs more than a million draws.
    """
    chosen = torch.empty(n, n, dtype=torch.bool, device=generator.device).bernoulli_(p, generator=generator)
    return chosen.triu_(1).nonzero().contiguous()


def distinct(size: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the first ``size`` distinct values of uniform draws from 0 .. count-1, sorted; size <= count/2.

    Which values come first is exchangeable, so the set is exactly uniform: nothing is thinned after the fact.
    """
    slack = int(4 * math.sqrt(size)) + 16
    # On average this many draws show `size` different values; the slack makes one round the rule.
    stream = integers(math.ceil(-count * math.log1p(-size / count)) + slack, count, generator)
    while True:
        values = stream[~repeats(stream)]
        if len(values) >= size:
            return values[:size].sort().values
        stream = torch.cat([stream, integers(slack, count, generator)])


def check_indices(name: str, edges: Any, n: int, *, columns: int) -> Tensor:
    """Return pairs of agents as int64 ``[m, 2]``, in range and without self-loops; ``columns`` is the axis of the 2."""
    symbolic = "(edges, 2)" if columns == 1 else "(2, edges)"
    edges = check_tensor(name, edges, 0, symbolic)
    if edges.dim() != 2 or edges.shape[columns] != 2:
        transposed = edges.dim() == 2 and edges.shape[1 - columns] == 2
        advice = EDGE_INDEX_HINT if columns == 1 else "For rows of pairs use Graph(n, edges)."
        raise InputError(name, f"with shape {symbolic}", shape_of(edges), advice if transposed else "")
    if edges.dtype == torch.bool or edges.is_floating_point():
        raise InputError(name, "to have an integer dtype", edges.dtype, f"Convert with {name}.long().")
    indices: Tensor = (edges if columns == 1 else edges.T).long()
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
    """Raise when two of ``values``, the integers that stand for the ``edges``, are equal."""
    again = repeats(values)
    if bool(again.any()):
        raise InputError(name, "without duplicates", f"{_first_pair(edges, again)} more than once", fix)


def sort_edges(
    edges: Tensor, weights: Any, n: int, owners: Tensor | int = 0, *, fix: str
) -> tuple[Tensor, Tensor | None]:
    """Return the edges in their one form, i < j and sorted, and the checked weights with them, or raise for duplicates.

    Args:
        edges: int64 ``[m, 2]``, in range.
        weights: What was given as weights, or None.
        n: Number of agents.
        owners: Observation of each edge, ``[m]``, which sorts first.
        fix: What to do about duplicates.
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


def check_labels(labels: Any) -> None:
    """Raise for more labels than there can be agents, before they are listed."""
    if hasattr(labels, "__len__") and getattr(labels, "ndim", None) != 0 and len(labels) > MOST_AGENTS:
        raise InputError("labels", f"to be at most {MOST_AGENTS}", len(labels))


def check_edges(name: str, count: float) -> None:
    """Raise before memory is taken for more pairs than fit; ``name`` is the argument that asks for them."""
    if count > MOST_EDGES:
        fix = "Sample fewer pairs; SND over all of them needs no graph."
        raise InputError(name, f"that makes at most {MOST_EDGES} edges", f"{count:.3g}", fix)


def check_degree(n: int, degree: Any) -> int:
    """Return the degree, or raise unless some graph on ``n`` agents has it at every agent."""
    degree = check_integer("degree", degree, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    if n * degree % 2:
        fix = f"Use degree {degree + 1}, or one agent more."
        raise InputError("degree", "such that n * degree is even", f"n = {n} and degree = {degree}", fix)
    return degree
