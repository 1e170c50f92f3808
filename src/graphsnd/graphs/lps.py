"""The Ramanujan graphs of Lubotzky, Phillips and Sarnak."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_integer
from graphsnd.graphs import pairs
from graphsnd.graphs.draws import Device, resolve
from graphsnd.graphs.expanders import check_prime
from graphsnd.graphs.graph import Graph


def lps(p: int, q: int, *, device: Device = None) -> Graph:
    r"""X^{p,q}: degree p + 1, and every eigenvalue but ±(p + 1) is at most :math:`2 \sqrt{p}`.

    The p + 1 ways to write p as a sum of four squares, the first odd and positive and the others even, give as many
    matrices modulo q; the agents are the invertible 2 x 2 matrices modulo q up to a factor, joined when one is the
    other times such a matrix. If p is a square modulo q, those of square determinant are kept, q(q^2-1)/2 of them;
    else all q(q^2-1), and the graph is bipartite.

    Args:
        p: A prime with p % 4 == 1; the degree is p + 1.
        q: Another one, above 2 sqrt(p). The number of agents grows with its cube.
        device: Where the graph is kept.

    Raises:
        InputError: For anything else, naming the nearest primes that will do.

    Example:
        >>> lps(17, 13), lps(5, 13)
        (Graph(lps, n=1092, m=9828), Graph(lps, n=2184, m=6552))
    """
    for name, value in (("p", p), ("q", q)):
        check_integer(name, value, f"to be a prime with {name} % 4 == 1", low=2, fix="The smallest is 5.")
        check_prime(name, value)
    if p == q or q * q <= 4 * p:
        fix = f"A prime above {math.isqrt(4 * p)} other than {p}."
        raise InputError("q", "to differ from p and to be above 2 sqrt(p)", f"p = {p}, q = {q}", fix)
    square = pow(p, (q - 1) // 2, q) == 1
    group = _group(q, square)
    codes = _code(group, q)
    edges = []
    for generator in _generators(p, q):
        neighbours = torch.searchsorted(codes, _code(_projective(_times(group, generator, q), q), q))
        edges.append(pairs.keys(torch.arange(len(codes)), neighbours, len(codes)))
    found = pairs.from_keys(torch.unique(torch.cat(edges)), len(codes))
    return Graph._trusted(len(codes), found.to(resolve(device)), family="lps")


def _group(q: int, square: bool) -> Tensor:
    """The invertible matrices modulo q, first non-zero entry 1, as rows (a, b, c, d) in the order of their codes."""
    b, c, d = (axis.reshape(-1) for axis in torch.meshgrid(*[torch.arange(q)] * 3, indexing="ij"))
    with_a = torch.stack([torch.ones_like(b), b, c, d], dim=1)
    c, d = (axis.reshape(-1) for axis in torch.meshgrid(*[torch.arange(q)] * 2, indexing="ij"))
    without_a = torch.stack([torch.zeros_like(c), torch.ones_like(c), c, d], dim=1)
    rows = torch.cat([without_a, with_a])
    determinant = (rows[:, 0] * rows[:, 3] - rows[:, 1] * rows[:, 2]) % q
    squares = torch.zeros(q, dtype=torch.bool)
    squares[torch.arange(1, q).square() % q] = True
    return rows[squares[determinant] if square else determinant != 0]


def _generators(p: int, q: int) -> list[tuple[int, int, int, int]]:
    """The p + 1 matrices, one for every way to write p as a sum of four squares."""
    root = next(x for x in range(2, q) if (x * x + 1) % q == 0)
    reach = math.isqrt(p)
    odd = range(1, reach + 1, 2)
    even = range(-(reach // 2) * 2, reach + 1, 2)
    ways = [w for w in itertools.product(odd, even, even, even) if sum(x * x for x in w) == p]
    return [((a + root * b) % q, (c + root * d) % q, (-c + root * d) % q, (a - root * b) % q) for a, b, c, d in ways]


def _times(rows: Tensor, matrix: tuple[int, int, int, int], q: int) -> Tensor:
    a, b, c, d = rows.unbind(1)
    e, f, g, h = matrix
    return torch.stack([a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h], dim=1) % q


def _projective(rows: Tensor, q: int) -> Tensor:
    """Scaled so that the first non-zero entry is 1; the first row of an invertible matrix has one."""
    inverses = torch.tensor([0] + [pow(x, -1, q) for x in range(1, q)])
    lead = torch.where(rows[:, 0] != 0, rows[:, 0], rows[:, 1])
    return rows * inverses[lead][:, None] % q


def _code(rows: Tensor, q: int) -> Tensor:
    """One integer for each row, ordered as the rows are."""
    a, b, c, d = rows.unbind(1)
    return ((a * q + b) * q + c) * q + d
