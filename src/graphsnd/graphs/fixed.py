"""Graphs that are not drawn: all pairs, teams within a team, and rings with chords."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from graphsnd.behavior.behavior import names_of
from graphsnd.errors import InputError, check_agents, check_finite, check_integer, shape_of
from graphsnd.graphs import pairs
from graphsnd.graphs.edges import check_degree
from graphsnd.graphs.graph import Graph, check_edges
from graphsnd.graphs.random import Device, integers, resolve, source


def complete(n: int, *, device: Device = None) -> Graph:
    """Return the graph of all n(n-1)/2 pairs: Graph-SND on it is SND itself.

    Args:
        n: The number of agents, at least 2.
        device: Device of the edges; torch's default device when None.

    Raises:
        InputError: For n < 2.

    Example:
        >>> complete(3).edges.tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    n = check_agents(n)
    check_edges("n", n * (n - 1) / 2)
    edges = torch.triu_indices(n, n, 1, device=resolve(device)).T.contiguous()
    return Graph._trusted(n, edges, family="complete")


def cliques(labels: Tensor | Sequence[Hashable] | Mapping[str, Hashable]) -> Graph:
    """Return a union of cliques: two agents are joined when their labels are equal.

    Args:
        labels: ``[n]``, a tensor or a sequence of anything hashable, such as the name of each agent's squad; or a dict
            of them by the agents' names, which are then the graph's.

    Raises:
        InputError: For labels that are not one-dimensional, fewer than two, or NaN.

    Example:
        >>> cliques(["red", "blue", "red", "blue"]).edges.tolist()
        [[0, 2], [1, 3]]
    """
    names = names_of(labels)
    group = _groups(list(labels.values()) if isinstance(labels, Mapping) else labels)
    n, device = len(group), group.device
    # Sorted stably by group, the later members of agent i's group follow it directly and in ascending order. Walking
    # the agents in their own order then emits sorted edges without ever sorting them.
    order = group.argsort(stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(n, device=device)
    ends = torch.zeros(n + 1, dtype=torch.int64, device=device).index_add_(0, group, torch.ones_like(group)).cumsum(0)
    later = ends[group] - place - 1
    check_edges("labels", int(later.sum()))
    first = torch.arange(n, device=device).repeat_interleave(later)
    step = torch.arange(len(first), device=device) - (later.cumsum(0) - later)[first]
    edges = torch.stack([first, order[place[first] + 1 + step]], dim=1)
    return Graph._trusted(n, edges, family="cliques", names=names)


def circulant(
    n: int,
    degree: int | None = None,
    *,
    shifts: Sequence[int] | None = None,
    seed: int | torch.Generator = 0,
    device: Device = None,
) -> Graph:
    r"""Return a ring with chords: agent i is joined to i + s and i - s modulo n for every shift s.

    .. math:: \lambda_j = \sum_{s} 2 \cos(2 \pi j s / n) \quad (\text{half of that for } s = n/2), \qquad
        j = 0, \dots, n-1

    The eigenvalues are known and it is the cheapest regular graph to build, but it is no expander at constant degree: a
    ball of radius r holds at most about r^(degree/2) agents. Agents next to each other in the numbering are joined
    more often than others, so number them at random (:func:`relabelled`) where the mean over the edges shall estimate
    SND.

    Args:
        n: The number of agents.
        degree: Draw distinct shifts at random for this degree, again until the graph is connected (degree 2 or more).
            An odd degree uses the shift n/2 and needs an even n.
        shifts: Shifts instead of a degree, distinct, in 1 .. n/2.
        seed: An int, or a generator to advance, for the shifts.
        device: Device of the graph; torch's default device when None.

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
    if shifts is None:
        degree = check_degree(n, degree)
        check_edges("degree", n * degree / 2)
        steps = _draw_shifts(n, degree, generator)
    else:
        steps = _check_shifts(n, shifts)
        check_edges("shifts", n * len(steps))
    agents = torch.arange(n)[:, None]
    # The shift n/2 leads from both of its ends to the same edge; unique keeps one.
    keys = torch.unique(pairs.keys(agents, (agents + torch.tensor(steps)) % n, n))
    return Graph._trusted(n, pairs.from_keys(keys, n).to(target), family="circulant")


def _groups(labels: Tensor | Sequence[Hashable]) -> Tensor:
    """Return the labels as int64 0 .. groups-1."""
    if not isinstance(labels, Tensor):
        code: dict[Hashable, int] = {}
        try:
            labels = torch.tensor([code.setdefault(name, len(code)) for name in labels], dtype=torch.int64)
        except TypeError:
            fix = "Give one label for each agent."
            raise InputError("labels", "to be a tensor (n,) or a flat sequence", repr(labels), fix) from None
    if labels.dim() != 1 or len(labels) < 2:
        raise InputError("labels", "with shape (n,), at least 2 agents", shape_of(labels))
    check_finite("labels", labels)
    groups: Tensor = torch.unique(labels, return_inverse=True)[1]
    return groups


def _check_shifts(n: int, shifts: Sequence[int]) -> list[int]:
    expected = f"to be distinct integers in 1 .. n/2 = {n // 2}"
    steps = [check_integer("shifts", s, expected, low=1, high=n // 2, fix="s and n - s are the same.") for s in shifts]
    if len(set(steps)) != len(steps) or not steps:
        raise InputError("shifts", expected, list(shifts))
    return steps


def _draw_shifts(n: int, degree: int, generator: torch.Generator) -> list[int]:
    half = [n // 2] if degree % 2 else []
    while True:
        order = integers((n - 1) // 2, 2**63 - 1, generator).argsort(stable=True)
        steps = sorted([*(order[: degree // 2] + 1).tolist(), *half])
        if degree == 1 or math.gcd(n, *steps) == 1:
            return steps
