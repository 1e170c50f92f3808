"""Factorised one-dimensional families, compared through their quantile functions."""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
import torch

from graphsnd.behavior.behavior import Behavior, PerAgent, read_agents
from graphsnd.behavior.distances import Distance
from graphsnd.behavior.points import Norm, Points, flatten

NODES = 64
TOLERANCE = 0.01  # error of a distance, relative, above which there is a warning
NEGLIGIBLE = 1e-4  # distances between agents, relative to the size of their actions, whose error does not matter
ELEMENTS = 2**16  # quantile functions whose errors are estimated at once


class Quantiles(Behavior):
    r"""Policies with independent action dimensions, all on the same observations, given by their quantile functions.

    In one dimension :math:`W_2^2 = \int_0^1 (F^{-1}(u) - G^{-1}(u))^2 du`. With the integral taken by a
    quadrature rule, this is Euclidean on the quantiles weighted by the square roots of the weights.

    Args:
        values: Quantiles at :func:`nodes_and_weights`'s nodes, shape ``[..., agents, actions, nodes]``, or a
            dict of one array per agent.
        validate: Check that values are finite, and warn where the nodes are too few: see :func:`estimate_error` (two
            host reads on a GPU). Shapes are always checked.

    Example:
        >>> nodes, _ = nodes_and_weights(64)
        >>> Quantiles(nodes.expand(64, 3, 2, 64))
        Quantiles(agents=3, observations=64)
    """

    def __init__(self, values: PerAgent, *, validate: bool = True) -> None:
        self.values = read_agents("values", values, "(..., agents, actions, nodes)", trailing=2, finite=validate)
        super().__init__(self.values.shape[:-1], values)
        if validate and not torch.compiler.is_compiling():
            _check_nodes(self.values.detach())

    def embed(self, distance: Distance) -> Points:
        """Return weighted quantiles, under the Euclidean norm."""
        _, weights = nodes_and_weights(self.values.shape[-1])
        roots = weights.sqrt().to(self.values.device, torch.promote_types(self.values.dtype, torch.float32))
        return Points(flatten((self.values * roots).flatten(-2)), Norm.EUCLIDEAN)


@lru_cache
def nodes_and_weights(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Quadrature nodes and weights on (0, 1), float64, shape ``[count]`` each.

    Gauss-Legendre after the substitution u = t^3 (10 - 15 t + 6 t^2). Quantile functions of unbounded families are
    singular at 0 and 1, where plain Gauss-Legendre converges like 1/count^2: 64 nodes leave 3e-4 of the distance
    between two Gaussians of different scale, and 3% of that between log-normals of scales 0.5 and 1. The
    substitution's vanishing slope at the ends takes both below 1e-6. Gauss-Hermite nodes would be exact for Gaussians,
    but are too far apart in the middle for a tanh-squashed Gaussian with scale above 1.

    A policy that is nearly a coin toss, such as a tanh-squashed Gaussian of large scale or a Beta of concentrations
    near 0, has a step for a quantile function, which falls between two nodes. Nodes at the step would be exact, but
    agents have theirs in different places, and points need the same nodes for all. A count that grows with the
    parameters would give the parts of a team, which are evaluated one by one, points of different sizes. So there is a
    warning instead, with an estimate of the error.
    """
    nodes, weights = (torch.from_numpy(array) for array in np.polynomial.legendre.leggauss(count))
    t = (nodes + 1) / 2
    slopes = weights * (t * (1 - t)) ** 2
    return t**3 * (10 - 15 * t + 6 * t**2), slopes / slopes.sum()


def estimate_error(values: torch.Tensor) -> torch.Tensor:
    r"""Estimate how far off, relatively, the distances of agents are whose quantile functions have these values.

    Two agents that act nearly alike differ by about the slope of their quantile function, times something smooth. So
    the rule is as good as it integrates the square of the slope by :math:`\log(u / (1-u))`. Where a step falls between
    nodes, few of the cells between nodes hold all of that integral: with the cells' shares :math:`p`, the error is
    about :math:`(\sum p^2)^{4.8}`, for 16 nodes as for 256. Where a tail is so heavy that much lies beyond the last
    node, the shares grow towards the end: the error is below three times the difference of the last two.

    Both were fitted to the default nodes, with twelve families over grids of their parameters. There they find all
    errors above 1%, but for 4 of 61,000 pairs that are off by 1.1% or 1.2%. The size is met within a factor of 3
    mostly; a large step right at a node may be ten times as bad, the tail of a log-normal or Weibull policy far better.

    Args:
        values: Quantiles at the nodes, at least 3 of them, shape ``[..., nodes]``.

    Returns:
        The estimates, at most 1, shape ``[...]``.

    Example:
        >>> nodes, _ = nodes_and_weights(64)
        >>> estimate_error(torch.stack([nodes, (nodes > 0.5).double()])) > 0.01  # a uniform policy, and a coin toss
        tensor([False,  True])
    """
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    nodes, weights = nodes_and_weights(values.shape[-1])
    slopes = values.diff().square() * (nodes.diff() / nodes.logit().diff().square()).to(values)
    size = (values.square() @ weights.to(values) * NEGLIGIBLE**2).clamp_min(torch.finfo(values.dtype).tiny)
    shares = slopes / (slopes.sum(dim=-1) + size).unsqueeze(-1)
    tails = torch.maximum(shares[..., 0] - shares[..., 1], shares[..., -1] - shares[..., -2])
    return torch.maximum(shares.square().sum(dim=-1) ** 4.8, 3 * tails).clamp_max(1)


def _check_nodes(values: torch.Tensor) -> None:
    """Warn where there are too few nodes for quantile functions ``[..., nodes]``."""
    count = values.shape[-1]
    if count < 3:
        return
    parts = values.flatten(0, -2).split(ELEMENTS)
    error = float(torch.stack([estimate_error(part).max() for part in parts]).max())
    if error > TOLERANCE:
        text = f"Quantiles at {count} nodes are too coarse: distances between agents may be off by about {error:.0%}."
        fix = f"Use graphsnd.from_distribution(..., nodes={4 * count}), and a bounded transform for heavy tails."
        warnings.warn(f"{text} {fix}", UserWarning, stacklevel=3)
