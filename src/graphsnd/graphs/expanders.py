"""Regular graphs with few edges that spread well, and whose eigenvalues are known.

All are fixed graphs unless said otherwise: the numbering follows the construction, so agents that differ in the order
of their numbers make a fixed graph a poor sample of the pairs. Number the agents at random with
:func:`graphsnd.graphs.relabelled`, or ask :func:`circulant` to, and the mean over the edges is unbiased for SND.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_agents, check_integer
from graphsnd.graphs import pairs
from graphsnd.graphs.draws import Device, integers, resolve, source
from graphsnd.graphs.graph import Graph
from graphsnd.graphs.relabelled import relabelled


def circulant(
    n: int,
    degree: int | None = None,
    *,
    shifts: Sequence[int] | None = None,
    seed: int | torch.Generator = 0,
    relabel: bool = False,
    device: Device = None,
) -> Graph:
    r"""Join agent i to i + s and i - s modulo n for every shift s: a ring with chords.

    .. math:: \lambda_j = \sum_{s} 2 \cos(2 \pi j s / n) \quad (\text{half of that for } s = n/2), \qquad
        j = 0, \dots, n-1

    The cheapest regular graph to build, but no expander at constant degree: a ball of radius r holds at most about
    r^(degree/2) agents.

    Args:
        n: The number of agents.
        degree: Draw distinct shifts at random for this degree, again if the ring fell apart (degree 2 or more). An odd
            degree uses the shift n/2 and needs an even n.
        shifts: Or these shifts, distinct, in 1 .. n/2.
        seed: Of the shifts and the numbering; an int, or a generator to advance.
        relabel: Number the agents at random, which makes it a sampling design.
        device: Where the graph is kept.

    Raises:
        InputError: Unless exactly one of degree and shifts is given, for shifts out of range or repeated, and for
            degrees that no circulant graph on n agents has.

    Example:
        >>> circulant(8, shifts=[1, 4]).degrees()
        tensor([3, 3, 3, 3, 3, 3, 3, 3])
    """
    n = check_agents(n)
    if (degree is None) == (shifts is None):
        raise InputError("degree", "or `shifts`, exactly one of them", f"degree={degree}, shifts={shifts}")
    generator, target = source(seed, device, host=True)
    steps = _check_shifts(n, shifts) if shifts is not None else _random_shifts(n, degree, generator)
    agents = torch.arange(n)
    graph = _joined(n, (agents[:, None] + torch.tensor(steps)) % n, "circulant", target)
    return relabelled(graph, seed=generator, device=target) if relabel else graph


def hypercube(k: int, *, device: Device = None) -> Graph:
    """Join the 2^k words of k bits that differ in one bit: degree k, bipartite, eigenvalues k - 2i.

    Args:
        k: The number of bits, 1 .. 24.
        device: Where the graph is kept.

    Raises:
        InputError: For k outside 1 .. 24.

    Example:
        >>> hypercube(2).edges.tolist()
        [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    k = check_integer("k", k, "to be an integer in 1 .. 24", low=1, high=24, fix="The graph has 2**k agents.")
    words = torch.arange(2**k)[:, None] ^ (1 << torch.arange(k))
    return _joined(2**k, words, "hypercube", resolve(device))


def paley(q: int, *, device: Device = None) -> Graph:
    r"""Join two residues modulo a prime q when their difference is a square: degree (q-1)/2.

    .. math:: \lambda_i = \frac{-1 \pm \sqrt{q}}{2} \quad (i \ge 2)

    Args:
        q: A prime that leaves 1 when divided by 4, so that -1 is a square and the relation symmetric.
        device: Where the graph is kept.

    Raises:
        InputError: For any other q, naming the nearest ones that will do.

    Example:
        >>> paley(5).edges.tolist()
        [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    """
    q = check_integer("q", q, "to be a prime with q % 4 == 1", low=2, fix="The smallest is 5.")
    check_prime("q", q)
    squares = torch.arange(1, (q + 1) // 2).square() % q
    squares = squares[squares <= q // 2]  # the others are their negatives
    return _joined(q, (torch.arange(q)[:, None] + squares) % q, "paley", resolve(device))


def margulis(side: int, *, device: Device = None) -> Graph:
    r"""The Margulis-Gabber-Galil graph on the torus of side x side points, made simple.

    (x, y) is joined to (x ± 2y, y), (x ± (2y+1), y), (x, y ± 2x) and (x, y ± (2x+1)). As a multigraph it has degree 8
    and lambda_2 at most 5 sqrt 2 = 7.07 for every side. Here loops and repeated edges are dropped, so some agents have
    fewer neighbours than 8 and the graph is not quite regular.

    Args:
        side: Points along an axis, at least 2; the graph has side^2 agents.
        device: Where the graph is kept.

    Raises:
        InputError: For a side below 2.

    Example:
        >>> margulis(5).n, int(margulis(5).degrees().max())
        (25, 8)
    """
    side = check_integer("side", side, "to be an integer, at least 2", low=2)
    x, y = torch.arange(side).repeat_interleave(side), torch.arange(side).repeat(side)
    # The opposite steps come out as the same edges, seen from the other end.
    steps = [(x + 2 * y, y), (x + 2 * y + 1, y), (x, y + 2 * x), (x, y + 2 * x + 1)]
    targets = torch.stack([(a % side) * side + b % side for a, b in steps], dim=1)
    return _joined(side**2, targets, "margulis", resolve(device))


def _joined(n: int, targets: Tensor, family: str, device: torch.device) -> Graph:
    """Agent i joined to every agent of row i of ``targets``; loops and repetitions dropped."""
    agents = torch.arange(n, device=targets.device)[:, None].expand_as(targets)
    apart = agents != targets
    found = torch.unique(pairs.keys(agents[apart], targets[apart], n))
    return Graph._trusted(n, pairs.from_keys(found, n).to(device), family=family)


def check_prime(name: str, value: int) -> None:
    """Raise unless ``value`` is a prime that leaves 1 when divided by 4."""
    if not _good_prime(value):
        lower = next((str(x) for x in range(value - 1, 4, -1) if _good_prime(x)), None)
        upper = next(x for x in range(max(value, 4) + 1, 4 * value + 8) if _good_prime(x))
        fix = f"Use {upper}." if lower is None else f"Use {lower} or {upper}."
        raise InputError(name, f"to be a prime with {name} % 4 == 1", value, fix)


def _good_prime(x: int) -> bool:
    return x % 4 == 1 and x > 1 and all(x % divisor for divisor in range(3, math.isqrt(x) + 1, 2))


def _check_shifts(n: int, shifts: Sequence[int]) -> list[int]:
    expected = f"to be distinct integers in 1 .. n/2 = {n // 2}"
    steps = [check_integer("shifts", s, expected, low=1, high=n // 2, fix="s and n - s are the same.") for s in shifts]
    if len(set(steps)) != len(steps) or not steps:
        raise InputError("shifts", expected, list(shifts))
    return steps


def _random_shifts(n: int, degree: object, generator: torch.Generator) -> list[int]:
    degree = check_integer("degree", degree, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    if n * degree % 2:
        raise InputError(
            "degree", "to be even when n is odd", f"n = {n} and degree = {degree}", f"Use {degree - 1} or {degree + 1}."
        )
    half = [n // 2] if degree % 2 else []
    while True:
        order = integers((n - 1) // 2, 2**63 - 1, generator).argsort(stable=True)
        steps = sorted([*(order[: degree // 2] + 1).tolist(), *half])
        if degree == 1 or math.gcd(n, *steps) == 1:
            return steps
