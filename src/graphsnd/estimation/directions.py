r"""Random directions whose average of :math:`|u \cdot x|` is the length of x, and how far one draw can be off.

Every direction is uniform on the sphere by itself, which is all that unbiasedness needs. Together they are spread as
evenly as is known to help: regular polygons in the plane, the six axes of an icosahedron in three dimensions, the
twelve of a 24-cell in four, orthonormal frames elsewhere, each turned at random.
"""

from __future__ import annotations

import math

import torch

Tensor = torch.Tensor
STRATA = 4  # consecutive observations that share one finer polygon


def length_constant(features: int) -> float:
    r"""Length of a vector over the mean of its absolute coordinate in a uniformly random direction.

    .. math:: c_F = \sqrt{\pi}\, \Gamma((F+1)/2) / \Gamma(F/2)

    Example:
        >>> [round(length_constant(f), 4) for f in (1, 2, 3)]
        [1.0, 1.5708, 2.0]
    """
    return math.sqrt(math.pi) * math.exp(math.lgamma((features + 1) / 2) - math.lgamma(features / 2))


def design(features: int, directions: int) -> Tensor:
    """Unit vectors ``[k, features]``, float64: the most even set known here with at most ``directions`` members."""
    if features == 2:
        angles = torch.arange(directions, dtype=torch.float64) * (math.pi / directions)
        return torch.stack([angles.cos(), angles.sin()], dim=1)
    if features == 3 and directions >= 6:
        return _icosahedron()
    if features == 4 and directions >= 12:
        return _cell_24()
    return torch.eye(features, dtype=torch.float64)[: min(directions, features)]


def worst_spread(vectors: Tensor) -> float:
    r"""Relative standard deviation of the average over a randomly turned design, for the worst team.

    For a single vector, with :math:`\rho_{kl} = u_k \cdot u_l`,

    .. math:: \kappa^2 = \frac{c_F^2}{K^2 F} \sum_{kl} \frac{2}{\pi}
        \Big( \sqrt{1 - \rho_{kl}^2} + \rho_{kl} \arcsin \rho_{kl} \Big) - 1,

    the mean of :math:`|g \cdot u| |g \cdot v|` for a Gaussian g being a classical integral. A mean of lengths is a
    sum over pairs, and standard deviations of sums are at most sums of standard deviations: no team exceeds
    :math:`\kappa` times its diversity, and a team on a line reaches it.

    Example:
        >>> [round(worst_spread(design(2, k)), 4) for k in (1, 2, 4, 8)]
        [0.4834, 0.0977, 0.0233, 0.0058]
    """
    count, features = vectors.shape
    rho = (vectors @ vectors.T).clamp(-1, 1)
    products = (1 - rho.square()).sqrt() + rho * rho.asin()
    second = length_constant(features) ** 2 * 2 / math.pi / features * float(products.mean())
    return math.sqrt(max(second - 1, 0.0)) if count else math.inf


def turned(vectors: Tensor, observations: int, replicates: int, generator: torch.Generator) -> Tensor:
    """The design, turned afresh for each observation and replicate: ``[observations, replicates, k, features]``."""
    features = vectors.shape[1]
    if features == 2:
        turns = _strata(observations, replicates, generator) * (math.pi / vectors.shape[0])
        c, s = turns.cos(), turns.sin()
        rotations = torch.stack([torch.stack([c, s], dim=-1), torch.stack([-s, c], dim=-1)], dim=-2)
    else:
        rotations = _frames(observations * replicates, vectors, generator)
        rotations = rotations.unflatten(0, (observations, replicates))
    return vectors[:, : rotations.shape[-2]] @ rotations


def _strata(observations: int, replicates: int, generator: torch.Generator) -> Tensor:
    """Offsets in [0, 1) ``[observations, replicates]``: four consecutive ones lie a quarter apart, in random order.

    Each alone is uniform. Neighbours in a rollout are alike, so together they act as a polygon with four times the
    corners. The order is random because an orderly one can keep step with a team that turns.
    """
    blocks = -(-observations // STRATA)
    shape = (blocks, STRATA + 1, replicates)
    draws = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
    order, shared = draws[:, 1:].argsort(dim=1), draws[:, :1]
    return ((order + shared) / STRATA).reshape(-1, replicates)[:observations]


def _frames(count: int, vectors: Tensor, generator: torch.Generator) -> Tensor:
    """Orthonormal vectors, uniformly distributed, ``[count, k, features]``; k = features unless fewer are wanted.

    Gram and Schmidt's procedure on Gaussian vectors: the law is unchanged by every rotation, and there is no sign
    to fix. Batches of thousands of small matrices are an order of magnitude faster than with a QR routine.
    """
    features = vectors.shape[1]
    wanted = min(features, vectors.shape[0])
    shape = (count, wanted, features)
    q = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    for k in range(wanted):
        for _ in range(2 if k else 0):  # once more, so that rounding does not tilt the last of many
            q[:, k] -= torch.einsum("bf,bjf,bjg->bg", q[:, k], q[:, :k], q[:, :k])
        q[:, k] /= q[:, k].norm(dim=-1, keepdim=True)
    return q


def _icosahedron() -> Tensor:
    golden = (1 + math.sqrt(5)) / 2
    corners = [c for s in (golden, -golden) for c in ((0.0, 1.0, s), (1.0, s, 0.0), (s, 0.0, 1.0))]
    vectors = torch.tensor(corners, dtype=torch.float64)
    return vectors / vectors.norm(dim=1, keepdim=True)


def _cell_24() -> Tensor:
    signs = torch.cartesian_prod(*[torch.tensor([0.5, -0.5], dtype=torch.float64)] * 3)
    halves = torch.cat([torch.full((8, 1), 0.5, dtype=torch.float64), signs], dim=1)
    return torch.cat([torch.eye(4, dtype=torch.float64), halves])
