"""One set of autograd functions for all compiled backends.

A backend is a class of raw operations on detached tensors, forward and backward; here they become differentiable.
Each backend sees to it that squares stay inside the floating range, for values of any magnitude.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch.autograd.function import once_differentiable

from graphsnd.behavior import Norm, Points
from graphsnd.kernels.pairfunctions import HOMOGENEOUS, unit_scale

Tensor = torch.Tensor


class RawOperations(Protocol):
    """What a compiled backend provides. ``x`` is ``[observations, agents, features]``; sums come back in float64."""

    def pair_totals(self, x: Tensor, norm: Norm) -> Tensor:
        """``[observations]`` sums of the distances over all pairs."""

    def pair_totals_and_slopes(self, x: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        """The same, and their gradients ``[observations, agents, features]``."""

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        """``[agents, agents]`` weighted sums over observations of the distances."""

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        """Gradient with respect to ``x``; ``grad`` is symmetric."""

    def edge_sums(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor) -> Tensor:
        """``[edges]`` weighted sums over observations of the distances."""

    def edge_totals(self, x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None) -> Tensor:
        """``[observations]`` sums over edges of coefficient, or 1, times the distances."""

    def edge_sums_backward(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        """Gradient with respect to ``x`` of the sum over observations and edges of weight * grad * distance.

        It serves edge sums and edge totals alike: one gives the weights and gets the gradient of the edges, the
        other the reverse.
        """

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:
        """``[observations, k]`` distances."""

    def observation_edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, grad: Tensor) -> Tensor:
        """Gradient with respect to ``x``."""


class _PairTotals(torch.autograd.Function):
    """Each total depends on its own observation only, so its gradient can be had in the same visit of the pairs.

    That is cheaper than a second visit on the way back, which would have to compute every distance again.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: Norm, raw: RawOperations) -> Tensor:
        if not ctx.needs_input_grad[0]:
            return raw.pair_totals(x.detach(), norm)
        totals, slopes = raw.pair_totals_and_slopes(x.detach(), norm)
        ctx.save_for_backward(slopes)
        return totals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * grad.to(slopes.dtype).reshape(-1, 1, 1), None, None


class _PairMatrix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: Norm, weight: Tensor, raw: RawOperations) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.norm, ctx.raw = norm, raw
        return raw.pair_matrix(x.detach(), norm, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, weight = ctx.saved_tensors
        # d(i, j) stands in two places of the matrix; the kernels visit each pair once.
        return ctx.raw.pair_matrix_backward(x, ctx.norm, weight, grad + grad.T), None, None, None


class _EdgeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, raw: RawOperations) -> Tensor:
        ctx.save_for_backward(x, edges, weight)
        ctx.norm, ctx.raw = norm, raw
        return raw.edge_sums(x.detach(), norm, edges, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        x, edges, weight = ctx.saved_tensors
        return ctx.raw.edge_sums_backward(x, ctx.norm, edges, weight, grad), None, None, None, None


class _EdgeTotals(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None, raw: RawOperations
    ) -> Tensor:
        ctx.save_for_backward(x, edges, coefficient)
        ctx.norm, ctx.raw = norm, raw
        return raw.edge_totals(x.detach(), norm, edges, coefficient)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        x, edges, coefficient = ctx.saved_tensors
        if coefficient is None:
            coefficient = torch.ones(edges.shape[0], dtype=grad.dtype, device=grad.device)
        return ctx.raw.edge_sums_backward(x, ctx.norm, edges, grad, coefficient), None, None, None, None


class _ObservationEdges(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: Norm, edges: Tensor, raw: RawOperations) -> Tensor:
        ctx.save_for_backward(x, edges)
        ctx.norm, ctx.raw = norm, raw
        return raw.observation_edges(x.detach(), norm, edges)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, edges = ctx.saved_tensors
        return ctx.raw.observation_edges_backward(x, ctx.norm, edges, grad), None, None, None


class Differentiable:
    """A compiled backend with the interface of :mod:`graphsnd.kernels.reference`."""

    def __init__(self, raw: RawOperations) -> None:
        self.raw = raw

    def pair_totals(self, points: Points) -> Tensor:
        """Sum over all pairs, for each observation."""
        if not torch.is_grad_enabled():  # inside a Function, a leaf that requires a gradient always seems to want one
            return self.raw.pair_totals(points.values.detach(), points.norm)
        return _PairTotals.apply(points.values, points.norm, self.raw)

    def pair_matrix(self, points: Points, weight: Tensor) -> Tensor:
        """Weighted sum of distance matrices."""
        return _PairMatrix.apply(points.values, points.norm, weight, self.raw)

    def edge_sums(self, points: Points, edges: Tensor, weight: Tensor) -> Tensor:
        """Weighted sum over observations along each edge."""
        return _EdgeSums.apply(points.values, points.norm, edges, weight, self.raw)

    def edge_totals(self, points: Points, edges: Tensor, coefficient: Tensor | None) -> Tensor:
        """Sum over edges of coefficient times distance, for each observation."""
        return _EdgeTotals.apply(points.values, points.norm, edges, coefficient, self.raw)

    def observation_edges(self, points: Points, edges: Tensor) -> Tensor:
        """Distances along each observation's own edges."""
        return _ObservationEdges.apply(points.values, points.norm, edges, self.raw)


def scale_of(x: Tensor, norm: Norm) -> Tensor:
    """The unit to divide by before squaring, 1 for norms that do not square."""
    return unit_scale(x) if norm in HOMOGENEOUS else torch.ones((), dtype=x.dtype, device=x.device)
