"""Gaussian behaviours, diagonal and full."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from graphsnd.behavior.behavior import Behavior, PerAgent, broadcast, read_agents, stack_agents
from graphsnd.behavior.distances import Distance
from graphsnd.behavior.points import Norm, Points, flatten
from graphsnd.errors import InputError, check_finite, check_tensor, shape_of


class Gaussian(Behavior):
    """Diagonal Gaussian policies, all on the same observations.

    The 2-Wasserstein distance between diagonal Gaussians is Euclidean on ``[loc, scale]``.

    Args:
        loc: Means, shape ``[..., agents, actions]``, or a dict of one array ``[..., actions]`` per agent.
        scale: Standard deviations, non-negative, broadcastable to ``loc``.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> b = Gaussian(torch.zeros(64, 3, 2), torch.ones(2))
        >>> b
        Gaussian(agents=3, observations=64)
    """

    def __init__(self, loc: PerAgent, scale: PerAgent | float, *, validate: bool = True) -> None:
        given, loc = loc, read_agents("loc", loc, "(..., agents, actions)", finite=validate)
        super().__init__(loc.shape, given)
        scale = stack_agents("scale", scale, self._names)
        if isinstance(scale, int | float):
            scale = torch.tensor(scale, dtype=loc.dtype, device=loc.device)
        scale = check_tensor("scale", scale, 0, "(..., agents, actions)")
        wide = scale.to(torch.promote_types(scale.dtype, loc.dtype))
        self.scale = broadcast("scale", wide, loc.shape, f"loc's {shape_of(loc)}")
        self.loc = loc.to(self.scale.dtype)
        if validate:
            check_finite("scale", scale, self._names)
            if bool((scale.detach() < 0).any()):
                fix = "If the network puts out log standard deviations, pass log_std.exp()."
                raise InputError("scale", "to be non-negative", f"a minimum of {float(scale.detach().min()):g}", fix)

    def embed(self, distance: Distance) -> Points:
        """Return ``[loc, scale]``, under the Euclidean norm."""
        return Points((flatten(self.loc), flatten(self.scale)), Norm.EUCLIDEAN)


class MultivariateGaussian(Behavior):
    """Gaussian policies with full covariance, all on the same observations, compared by the Bures-Wasserstein metric.

    Args:
        loc: Means, shape ``[..., agents, actions]``, or a dict of one array ``[..., actions]`` per agent.
        covariance: Symmetric positive semi-definite, broadcastable to ``[..., agents, actions, actions]``.
        validate: Check values, positive semi-definiteness by eigenvalues included.

    Example:
        >>> b = MultivariateGaussian(torch.zeros(64, 3, 2), torch.eye(2))
        >>> b
        MultivariateGaussian(agents=3, observations=64)
    """

    def __init__(self, loc: PerAgent, covariance: PerAgent, *, validate: bool = True) -> None:
        given, loc = loc, read_agents("loc", loc, "(..., agents, actions)", finite=validate)
        super().__init__(loc.shape, given)
        stacked = stack_agents("covariance", covariance, self._names, trailing=2)
        covariance = read_agents("covariance", stacked, "(..., agents, actions, actions)", finite=validate)
        target = (*loc.shape, loc.shape[-1])
        self.covariance = broadcast("covariance", covariance, target, f"shape {target}")
        self.loc = loc
        if validate:
            _check_psd(covariance.detach())

    def embed(self, distance: Distance) -> Points:
        """Return ``[loc, flattened covariance square root]`` in float64, under the Bures norm.

        The square root is taken once per agent instead of once per pair. It stays in float64 because the
        root of an eigenvalue that rounding moved by eps moves by sqrt(eps).
        """
        given = flatten(self.loc)
        loc = given.double()
        actions = loc.shape[-1]
        root = psd_sqrt(self.covariance.double()).reshape(*loc.shape[:-1], actions * actions)
        return Points(torch.cat([loc, root], dim=-1), Norm.BURES, given.dtype)


def _check_psd(covariance: torch.Tensor) -> None:
    matrix = covariance.double()
    size = matrix.abs().amax(dim=(-1, -2)).clamp_min(torch.finfo(torch.float64).tiny)
    tolerance = 64 * torch.finfo(covariance.dtype).eps
    if bool(((matrix - matrix.mT).abs().amax(dim=(-1, -2)) > tolerance * size).any()):
        raise InputError("covariance", "to be symmetric", "an asymmetric matrix", "Use (C + C.mT) / 2.")
    smallest = (torch.linalg.eigvalsh(matrix)[..., 0] / size).min()
    if bool(smallest < -tolerance):
        got = f"a relative eigenvalue of {float(smallest):.3g}"
        fix = "If the network puts out a Cholesky factor L, pass L @ L.mT."
        raise InputError("covariance", "to be positive semi-definite", got, fix)


class _PsdSqrt(torch.autograd.Function):
    """Square root of positive semi-definite matrices, with a finite gradient at repeated eigenvalues.

    ``eigh``'s own backward divides by differences of eigenvalues. The square root's differential solves
    S dS + dS S = dA, whose solution divides by *sums* of square roots, zero only where both vanish; there
    the distance has no derivative and we return 0.
    """

    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor) -> torch.Tensor:
        # eigh alone reads one triangle, and the gradient below would then belong to another function.
        values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
        roots = values.clamp_min(0).sqrt()
        ctx.save_for_backward(roots, vectors)
        return (vectors * roots.unsqueeze(-2)) @ vectors.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        roots, vectors = ctx.saved_tensors
        sums = roots.unsqueeze(-1) + roots.unsqueeze(-2)
        inner = vectors.mT @ ((grad + grad.mT) / 2) @ vectors
        inner = torch.where(sums > 0, inner / sums.clamp_min(torch.finfo(sums.dtype).tiny), torch.zeros_like(inner))
        return vectors @ inner @ vectors.mT


def psd_sqrt(matrix: torch.Tensor) -> torch.Tensor:
    """Symmetric square root of positive semi-definite matrices, differentiable.

    Args:
        matrix: Shape ``[..., a, a]``.
    """
    return _PsdSqrt.apply(matrix)
