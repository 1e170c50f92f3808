"""One set of autograd functions for all compiled backends.

A backend is a class of raw operations on detached tensors, forward and backward; here they become differentiable.
Each backend keeps squares inside the floating range, for values of any magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd.behavior.points import Norm, Points
from graphsnd.sums import total

Operation = Callable[..., Tensor]
Parts = tuple[Tensor, ...]
Dtype = torch.dtype | None  # of the sum over observations; None for those of each observation

# The norms that have compiled kernels, and the numbers by which these know them.
CODES = {Norm.EUCLIDEAN: 0, Norm.HALF_L1: 1}


class RawOperations(Protocol):
    """What a compiled backend provides. ``x`` is ``[observations, agents, features]``; sums come back in float64."""

    def pair_totals(self, parts: Parts, norm: Norm, single: bool, count: int, dtype: Dtype) -> Tensor:
        """``[observations]`` sums of the distances over all pairs, divided by ``count``; their sum, in a given dtype.

        ``parts`` are the points' (:attr:`Points.parts`), ``single`` says that distances in float32 are good enough.
        """

    def pair_totals_and_slopes(self, parts: Parts, norm: Norm, count: int, dtype: Dtype) -> tuple[Tensor, Parts]:
        """The same, and their gradients with respect to the parts, or all of them ``[parts, ...]`` in one tensor."""

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        """``[agents, agents]`` weighted sums over observations of the distances."""

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        """Gradient with respect to ``x``; ``grad`` is symmetric."""

    def edge_means(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:
        """``[edges]`` means over observations of the distances."""

    def edge_totals(self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool) -> Tensor:
        """``[observations]`` sums over edges of coefficient, or 1, times the distances; ``ordered``: the edges are."""

    def edge_means_and_totals(
        self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool, radii: bool
    ) -> tuple[Tensor, Tensor]:
        """``[edges]`` means over observations of the distances, and the edge totals.

        With ``radii``, also means of the distances of all agents to the mean agent, ``[edges + agents]``.
        """

    def edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        """Gradient with respect to ``x`` of the sum over observations and edges of weight * grad * distance.

        It serves edge means and edge totals alike: one gives the weights and gets the gradient of the edges, the
        other the reverse.
        """

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None = None) -> Tensor:
        """``[observations, k]`` distances.

        With ``starts``, ``x`` is one observation, and edges before and after each start have no agent in common.
        """

    def observation_edges_backward(
        self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None, grad: Tensor
    ) -> Tensor:
        """Gradient with respect to ``x``."""


class _PairTotals(torch.autograd.Function):
    """Totals with their gradient from one visit of the pairs, since each total depends on its own observation only.

    That is cheaper than a second visit on the way back, which would have to compute every distance again.
    """

    @staticmethod
    def forward(ctx: Any, norm: Norm, raw: RawOperations, count: int, dtype: Dtype, *parts: Tensor) -> Tensor:
        totals, slopes = raw.pair_totals_and_slopes(parts, norm, count, dtype)
        ctx.save_for_backward(*slopes)
        return totals

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        slopes = ctx.saved_tensors
        grad = grad.to(slopes[0].dtype).reshape(-1, 1, 1)
        scaled = [slope * grad for slope in slopes]
        return None, None, None, None, *(scaled if scaled[0].dim() == 3 else scaled[0].unbind())


class _Sums(torch.autograd.Function):
    """Sums whose gradient is computed by a second visit of the pairs, in the backward pass.

    ``forward_sums(x, norm, *tensors)`` are the sums, ``backward_sums(x, norm, *tensors, grad)`` the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, norm: Norm, forward_sums: Operation, backward_sums: Operation, *tensors: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(x, *tensors)
        ctx.norm, ctx.backward_sums = norm, backward_sums
        return forward_sums(x.detach(), norm, *tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *tensors = ctx.saved_tensors
        return ctx.backward_sums(x, ctx.norm, *tensors, grad), None, None, None, *(None for _ in tensors)


def add_up(totals: Tensor, dtype: Dtype) -> Tensor:
    """The totals ``[observations]`` or ``[observations, shares]`` of each observation; or, in a dtype, of all."""
    if dtype is None:
        return totals.sum(dim=1) if totals.dim() > 1 else totals
    return total(totals).to(dtype)


class Differentiable:
    """A compiled backend with the interface of :mod:`graphsnd.kernels.reference`."""

    def __init__(self, raw: RawOperations) -> None:
        self.raw = raw

    def pair_totals(self, points: Points) -> Tensor:
        """Sum over all pairs, for each observation."""
        return self._pairs(points, 1, None)

    def pair_mean(self, points: Points) -> Tensor:
        """Mean over observations and pairs, in the dtype of the results."""
        (o, n, _), dtype = points.parts[0].shape, points.result_dtype
        return self._pairs(points, o * (n * (n - 1) // 2), dtype)

    def _pairs(self, points: Points, count: int, dtype: Dtype) -> Tensor:
        parts = points.parts
        if _need_gradient(parts):
            return _PairTotals.apply(points.norm, self.raw, count, dtype, *parts)
        return self.raw.pair_totals(parts, points.norm, points.result_dtype == torch.float32, count, dtype)

    def pair_matrix(self, points: Points, weight: Tensor) -> Tensor:
        """Weighted sum of distance matrices."""
        return _Sums.apply(points.values, points.norm, self.raw.pair_matrix, self._pair_matrix_backward, weight)

    def edge_means(self, points: Points, edges: Tensor) -> Tensor:
        """Mean over observations along each edge."""
        return _Sums.apply(points.values, points.norm, self.raw.edge_means, self._edge_means_backward, edges)

    def edge_totals(self, points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False) -> Tensor:
        """Sum over edges of coefficient times distance, for each observation."""

        def forward(x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None) -> Tensor:
            return self.raw.edge_totals((x,), norm, edges, coefficient, ordered)

        if not _need_gradient(points.parts):
            return self.raw.edge_totals(points.parts, points.norm, edges, coefficient, ordered)
        return _Sums.apply(points.values, points.norm, forward, self._edge_totals_backward, edges, coefficient)

    def edge_means_and_totals(
        self, points: Points, edges: Tensor, coefficient: Tensor | None, ordered: bool = False, radii: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Means over observations along each edge, and sums over edges of coefficient times distance; no gradient."""
        return self.raw.edge_means_and_totals(points.parts, points.norm, edges, coefficient, ordered, radii)

    def observation_edges(self, points: Points, edges: Tensor, starts: Tensor | None = None) -> Tensor:
        """Distances along each observation's own edges."""
        forward, backward = self.raw.observation_edges, self.raw.observation_edges_backward
        return _Sums.apply(points.values, points.norm, forward, backward, edges, starts)

    def _pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        # d(i, j) stands in two places of the matrix; the kernels visit each pair once.
        return self.raw.pair_matrix_backward(x, norm, weight, grad + grad.T)

    def _edge_means_backward(self, x: Tensor, norm: Norm, edges: Tensor, grad: Tensor) -> Tensor:
        weight = torch.full((len(x),), 1 / len(x), dtype=torch.float64, device=x.device)
        return self.raw.edges_backward(x, norm, edges, weight, grad)

    def _edge_totals_backward(
        self, x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None, grad: Tensor
    ) -> Tensor:
        if coefficient is None:
            coefficient = torch.ones(edges.shape[0], dtype=grad.dtype, device=grad.device)
        return self.raw.edges_backward(x, norm, edges, grad, coefficient)


def _need_gradient(parts: Parts) -> bool:
    return torch.is_grad_enabled() and any([part.requires_grad for part in parts])


def side_by_side(parts: Parts) -> Tensor:
    """The features of all parts in one tensor."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
