"""What users hand to the figures, as NumPy arrays: distances between agents, their tree, and their map in the plane."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphsnd.analysis.grouping import scale_distances
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, check_names
from graphsnd.behavior.distances import DISTANCES
from graphsnd.errors import InputError, check_choice, check_finite, describe, plain_tensor
from graphsnd.estimation import Estimate
from graphsnd.metric import pairwise

Array = Any  # an NDArray, a tensor on any device, also one that needs gradients, or nested lists
Floats = NDArray[np.float64]
ORDERS = ("tree", "names", "contribution")


@dataclass(frozen=True, eq=False)
class Distances:
    """A distance matrix, and what its pictures write beside it."""

    matrix: Floats  # [n, n], NaN for pairs that were not measured
    names: tuple[str, ...]  # [n]
    unit: str = "distance"

    @cached_property
    def complete(self) -> bool:
        """Whether all pairs were measured."""
        return not np.isnan(self.matrix).any()

    @cached_property
    def partners(self) -> NDArray[np.int64]:
        """Number of others to which each agent was measured, ``[n]``."""
        counts: NDArray[np.int64] = (~np.isnan(self.matrix)).sum(1) - 1
        return counts

    @cached_property
    def contributions(self) -> Floats:
        """Mean measured distance of each agent to the others, ``[n]``; 0 without any."""
        mean: Floats = np.nansum(self.matrix, 1) / np.maximum(self.partners, 1)
        return mean

    @cached_property
    def links(self) -> Floats:
        """SciPy's linkage ``[n - 1, 4]`` of agents that act alike, similar leaves side by side."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        # Optimal leaf ordering costs n^3; beyond a thousand agents the plain order has to do.
        condensed = squareform(self.matrix, checks=False)
        made: Floats = linkage(condensed, "average", optimal_ordering=len(self.names) <= 1000)
        return made

    def arrange(self, order: str | Array) -> NDArray[np.int64]:
        """Return the agents in an order: ``tree``, ``names`` (as given), ``contribution``, or one of the user's."""
        from scipy.cluster.hierarchy import leaves_list

        n = len(self.matrix)
        if not isinstance(order, str):
            given = to_array(order, "order")
            if sorted(given.tolist()) != [*range(n)]:
                raise InputError("order", f"one of {', '.join(ORDERS)}, or the agents 0 .. {n - 1} in an order", order)
            return given.astype(np.int64)
        check_choice("order", order, ORDERS)
        if order == "tree" and self.complete:
            return np.asarray(leaves_list(self.links), dtype=np.int64)
        return np.argsort(-self.contributions, kind="stable") if order == "contribution" else np.arange(n)


def read_distances(
    source: Behavior | Estimate | Array, distance: Distance | str | None = None, names: Sequence[str] | None = None
) -> Distances:
    """Return what a user gave, a behaviour, an estimate or a matrix, as distances with names.

    Args:
        source: What the agents would do, a measurement that kept its pairs, or the ``[n, n]`` distances between the
            agents, which may need gradients.
        distance: A distance or its name, for a behaviour; the family's default when None.
        names: Names of the agents in order; the source's, or numbers, when None.

    Raises:
        InputError: For what is not square, not finite, or has fewer than two agents, and for an estimate without pairs.
    """
    unit, partial = "distance", isinstance(source, Estimate)
    if isinstance(source, Behavior):
        names = source.names if names is None else names
        unit = describe_unit(as_distance(source, distance).name)
        source = pairwise(source, distance)
    elif isinstance(source, Estimate):
        names, unit = names or source.names or None, describe_unit(source.distance)
        kept = source.matrix()
        if kept is None:
            fix = "It has more than 2^16 pairs, or draws others at each observation. Hand over the behaviour."
            raise InputError("source", "to be an estimate with its pair distances", "one without", fix)
        source = kept
    matrix = to_array(source, "source")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        expected = "to be a behaviour, or a matrix [agents, agents] of at least two agents"
        raise InputError("source", expected, list(matrix.shape))
    if not partial:
        check_finite("source", torch.from_numpy(matrix))
    if names is not None:
        check_names(names, len(matrix))
    return Distances(matrix, tuple(builtins.map(str, range(len(matrix)) if names is None else names)), unit)


def describe_unit(name: str) -> str:
    """Return the unit of a distance, for axis labels.

    Example:
        >>> describe_unit("wasserstein"), describe_unit("total-variation")
        ('action units', 'total variation, at most 1')
    """
    if name not in DISTANCES:  # a mean of several, or the user's own
        return name
    maximum = DISTANCES[name].maximum
    return "action units" if maximum is None else f"{name.replace('-', ' ')}, at most {maximum:.3g}"


def behaviour_map(matrix: Array) -> Floats:
    """Return agents in the plane ``[n, 2]``, close where they act alike (classical multidimensional scaling)."""
    points = scale_distances(to_array(matrix))[:, :2]
    top = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # fewer axes for agents on a line
    # eigh leaves the signs open: fix them, so that the same team always gives the same picture.
    picture: Floats = top * np.where(top[np.abs(top).argmax(0), range(top.shape[1])] < 0, -1.0, 1.0)
    return picture


def to_array(values: Array, name: str = "values") -> Floats:
    """Return the values as float64 on the CPU, without gradients; ``name`` is what an error calls them."""
    tensor = plain_tensor(values)
    try:
        plain = values if tensor is None else tensor.detach().to("cpu", torch.float64)  # NumPy has no bfloat16
        return np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(name, "to be an array of numbers", describe(values)) from None


def to_groups(groups: Array, agents: int) -> NDArray[np.int64]:
    """Return the group of each agent ``[n]``, or raise."""
    given = to_array(groups, "groups")
    if given.shape != (agents,) or not np.isfinite(given).all() or (given != given.round()).any() or given.min() < 0:
        raise InputError("groups", f"to be {agents} integers, at least 0, one for each agent", describe(groups))
    return given.astype(np.int64)
