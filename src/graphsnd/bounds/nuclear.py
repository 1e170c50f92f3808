"""The nuclear norm of a distance matrix: exactly, or between two bounds that are certain."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_finite, check_rank, shape_of

# Up to here all eigenvalues are computed, a few seconds on one core; the cost grows with the cube.
EXACT = 2048
# Directions kept above that, and rounds of subspace iteration towards the largest eigenvalues.
DIRECTIONS, ROUNDS = 64, 4


@dataclass(frozen=True)
class NuclearNorm:
    """The sum of the absolute eigenvalues of a symmetric matrix."""

    value: float  # the norm when exact, else a lower bound, tight when the directions left out share one sign
    upper: float  # the norm is at most this, whatever the matrix
    exact: bool  # whether all eigenvalues were computed


def nuclear_norm(distances: Tensor, *, exact: bool | None = None) -> NuclearNorm:
    r"""The nuclear norm of a symmetric matrix with a zero diagonal.

    Above 2048 agents only the k directions V of the largest eigenvalues are found. With :math:`T = V^\top D V`,
    R = DV - VT and Q the projection away from V, the four blocks of D give, for *any* V with orthonormal columns,

    .. math:: \|T\|_* + |\mathrm{tr}(QDQ)| \;\le\; \|D\|_* \;\le\;
        \|T\|_* + 2 \sqrt{k} \|R\|_F + \sqrt{n-k} \sqrt{\|D\|_F^2 - \|T\|_F^2 - 2\|R\|_F^2},

    so neither side depends on how far the iteration got; the right one is taken at the best k. The left one is the
    norm itself when what is left out has eigenvalues of one sign. A distance of negative type (Euclidean, total
    variation, and sums of those) has a single positive eigenvalue, so there ``value`` is exact up to rounding.

    Args:
        distances: ``[n, n]``, symmetric, as from :func:`graphsnd.pairwise`.
        exact: Compute all eigenvalues; decided by size when None.

    Raises:
        InputError: For a matrix that is not square, symmetric and finite, or whose diagonal is not 0.

    Example:
        >>> nuclear_norm(1 - torch.eye(4)).value
        6.0
    """
    matrix = symmetric(distances)
    if exact is None:
        exact = len(matrix) <= EXACT
    return norm_of(matrix, exact=exact)


def norm_of(matrix: Tensor, *, exact: bool) -> NuclearNorm:
    """The same for a float64 matrix already known to be symmetric, whatever its trace."""
    if exact or len(matrix) <= DIRECTIONS:
        value = float(torch.linalg.eigvalsh(matrix).abs().sum())
        return NuclearNorm(value, value, True)
    ritz, residuals = _leading(matrix, DIRECTIONS)
    order = ritz.abs().argsort(descending=True)
    ritz, residuals = ritz[order], residuals[order].square().cumsum(0)
    n, k = len(matrix), torch.arange(1, len(ritz) + 1, device=matrix.device)
    inside = ritz.abs().cumsum(0)
    left = (matrix.square().sum() - ritz.square().cumsum(0) - 2 * residuals).clamp(min=0)
    upper = float((inside + 2 * (k * residuals).sqrt() + ((n - k) * left).sqrt()).min())
    value = float((inside + (matrix.diagonal().sum() - ritz.cumsum(0)).abs()).max())
    # Rounding of n^2 sums in float64 is far below this, so that the bound stays one.
    return NuclearNorm(min(value, upper), upper * (1 + 1e-9), False)


def symmetric(distances: Tensor) -> Tensor:
    """The matrix in float64, checked."""
    check_rank("distances", distances, 2, "(n, n)")
    if distances.dim() != 2 or distances.shape[0] != distances.shape[1] or len(distances) < 2:
        raise InputError("distances", "with shape (n, n), at least (2, 2)", shape_of(distances))
    check_finite("distances", distances)
    matrix = distances.detach().double()
    scale = float(matrix.abs().max())
    off = float((matrix - matrix.T).abs().max())
    if off > 1e-5 * scale:
        raise InputError("distances", "to be symmetric", f"entries that differ by {off:.3g}", "Use graphsnd.pairwise.")
    if bool(matrix.diagonal().any()):
        fix = "An agent is at distance 0 of itself."
        raise InputError("distances", "to have a zero diagonal", f"{float(matrix.diagonal().abs().max()):.3g}", fix)
    return (matrix + matrix.T) / 2


def _leading(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Rayleigh quotients of ``count`` orthonormal directions, and the norms of their residuals."""
    generator = torch.Generator().manual_seed(count)
    start = torch.randn(len(matrix), count, dtype=torch.float64, generator=generator)
    basis = torch.linalg.qr(start.to(matrix.device)).Q
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(matrix @ basis).Q
    image = matrix @ basis
    values, rotation = torch.linalg.eigh(basis.T @ image)
    # With Ritz vectors the block T is diagonal, so every leading part of it is one as well.
    residuals = (image - basis @ (basis.T @ image)) @ rotation
    return values, residuals.norm(dim=0)
