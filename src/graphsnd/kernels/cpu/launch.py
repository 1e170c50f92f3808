"""The numba backend's raw operations: tensors in, threads over observations or rows, tensors out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsnd.behavior.points import Norm
from graphsnd.kernels.autograd import CODES, Differentiable, Dtype, Parts, add_up, side_by_side
from graphsnd.kernels.cpu import loops
from graphsnd.kernels.cpu.loops import LANES
from graphsnd.kernels.reference import HOMOGENEOUS, scale_of
from graphsnd.kernels.threads import map_threads, run_threads, split_range
from graphsnd.sums import add_last

Array = npt.NDArray[Any]

FEW = LANES // 4  # observations below which lanes of observations would be mostly padding
# Lanes of agents are faster for more features than NARROW, if these times the agents are WIDE: timed for 5 to 2,000
# agents and 2 to 128 features.
NARROW, WIDE = 8, 1000
# Bytes to put side by side at a time. From 32 MB on malloc asks the system for memory, whose new pages cost more than
# the copy.
COPY = 1 << 24
# Parts of a sum over observations: enough for eight threads, more where adding them up costs nothing beside them.
SHARES, LONG = 8, 8 * LANES


class Numba:
    """See :class:`graphsnd.kernels.autograd.RawOperations`."""

    def pair_totals(self, parts: Parts, norm: Norm, single: bool, count: int, dtype: Dtype) -> Tensor:
        (o, n), features = parts[0].shape[:2], sum(part.shape[2] for part in parts)
        wide = norm is Norm.EUCLIDEAN and features > NARROW and n * features >= WIDE
        copies = min(o // FEW, sum(part.nbytes for part in parts) // COPY) if wide and len(parts) > 1 else 1
        if copies > 1:
            shares = zip(*(part.tensor_split(copies) for part in parts), strict=True)
            return add_up(torch.cat([self.pair_totals(share, norm, single, count, None) for share in shares]), dtype)
        x = side_by_side(parts)
        a, code = _array(x), CODES[norm]

        def run(inverse: Any) -> Tensor:
            if o < FEW:
                rows = np.zeros((o, n))
                run_threads(lambda i, j: loops.row_totals(code, a, inverse, i, j, rows), _strips(n))
                return torch.from_numpy(rows.sum(axis=1))
            out = np.empty(o)
            if wide:
                run_threads(lambda i, j: loops.euclidean_totals(a, inverse, i, j, out), split_range(o))
            else:
                run_threads(lambda i, j: loops.totals(code, a, inverse, i, j, out), _shares(x))
            return torch.from_numpy(out)

        return add_up(_in_range(run, x, norm, terms=n**2) / count, dtype)

    def pair_totals_and_slopes(self, parts: Parts, norm: Norm, count: int, dtype: Dtype) -> tuple[Tensor, Parts]:
        x = side_by_side(parts)
        a, code = _array(x), CODES[norm]
        (o, n), slopes = x.shape[:2], np.empty_like(a)

        def run(inverse: Any) -> Tensor:
            if o < FEW:
                rows, slopes[:] = np.zeros((o, n)), 0
                run_threads(lambda i, j: loops.row_slopes(code, a, inverse, i, j, rows, slopes), _strips(n))
                return torch.from_numpy(rows.sum(axis=1) / 2)
            out = np.empty(o)
            if norm is Norm.EUCLIDEAN and n > LANES // 2:
                run_threads(lambda i, j: loops.euclidean_slopes(a, inverse, i, j, out, slopes), split_range(o))
            else:
                run_threads(lambda i, j: loops.slopes(code, a, inverse, i, j, out, slopes), _shares(x))
            return torch.from_numpy(out)

        # Slopes do not change with the scale, but those of the closest pairs are lost before the sum shows it.
        totals = _in_range(run, x, norm, terms=n**2, least=1e-3)
        widths, together = [part.shape[2] for part in parts], torch.from_numpy(slopes)
        return add_up(totals / count, dtype), together.div_(count).split(widths, dim=-1)

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        a, code, inverse, w = _array(x), CODES[norm], _inverse(scale := scale_of(x, norm)), _array(weight.double())
        out = np.zeros((x.shape[1], x.shape[1]))
        run_threads(lambda i, j: loops.matrix(code, a, inverse, w, i, j, out), _strips(x.shape[1]))
        upper = torch.from_numpy(out)
        return (upper + upper.T) * scale

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        # Tile by tile: what a tile of agents needs stays in a first-level cache.
        i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
        pairs = torch.stack([i, j])[:, (i // loops.TILE * x.shape[1] + j // loops.TILE).argsort(stable=True)]
        return self.edges_backward(x, norm, pairs.T, weight, grad[tuple(pairs)])

    def edge_means(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:
        return self.edge_means_and_totals((x,), norm, edges, None, ordered=False)[0]

    def edge_totals(self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool) -> Tensor:
        x = side_by_side(parts)
        if x.shape[0] < FEW:
            return self.edge_means_and_totals((x,), norm, edges, coefficient, ordered)[1]
        run = _along_edges(x, norm, edges, coefficient)
        if coefficient is None:
            return _in_range(lambda inverse: run(inverse, _shares(x), 0)[1], x, norm, terms=edges.shape[0])
        scale = scale_of(x, norm)  # the size of the sums says nothing about that of the distances
        return run(_inverse(scale), _shares(x), 0)[1] * scale

    def edge_means_and_totals(
        self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool
    ) -> tuple[Tensor, Tensor]:
        x = side_by_side(parts)
        o, m = x.shape[0], edges.shape[0]
        if o < FEW:
            own = self.observation_edges(x, norm, edges.expand(o, -1, -1))
            return own.mean(dim=0), add_last(own) if coefficient is None else own @ coefficient.double()
        run = _along_edges(x, norm, edges, coefficient)
        # Shares that the number of threads does not decide, or it would decide the last bits of their sum.
        shares = split_range(o, LANES, max(SHARES, o // LONG))
        # As in `_in_range`, but of the means, in which no coefficient hides the size of the distances.
        sums, totals = run(x.detach().numpy().dtype.type(1), shares, m)
        if norm not in HOMOGENEOUS or 1e-3 * m < float(add_last(sums)) / o < 1e18:
            return sums / o, totals
        scale = scale_of(x, norm)
        sums, totals = run(_inverse(scale), shares, m)
        return sums * scale / o, totals * scale

    def edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        if x.shape[0] < FEW:
            own = weight.double().unsqueeze(1) * grad.unsqueeze(0)
            return self.observation_edges_backward(x, norm, edges.expand(x.shape[0], -1, -1), None, own)
        a, code, inverse = _array(x), CODES[norm], _inverse(scale_of(x, norm))
        e, w, g, out = _array(edges), _array(weight.double()), _array(grad.double()), np.empty_like(a)
        run_threads(lambda i, j: loops.shared_backward(code, a, inverse, e, w, g, i, j, out), _shares(x))
        return torch.from_numpy(out)

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None = None) -> Tensor:
        a, code, inverse = _array(x), CODES[norm], _inverse(scale := scale_of(x, norm))
        e, out = edges.numpy(), np.empty(edges.shape[:2])

        def run(i: int, j: int, part: slice) -> None:
            loops.own(code, a, inverse, e[:, part], i, j, out[:, part])

        _own_shares(run, x.shape[0], starts)
        return torch.from_numpy(out) * scale

    def observation_edges_backward(
        self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None, grad: Tensor
    ) -> Tensor:
        a, code, inverse = _array(x), CODES[norm], _inverse(scale_of(x, norm))
        e, g, out = edges.numpy(), _array(grad), np.zeros_like(a)

        def run(i: int, j: int, part: slice) -> None:
            loops.own_backward(code, a, inverse, e[:, part], g[:, part], i, j, out)

        _own_shares(run, x.shape[0], starts)
        return torch.from_numpy(out)


def _along_edges(
    x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None
) -> Callable[[Any, Sequence[tuple[int, int]], int], tuple[Tensor, Tensor]]:
    """Return how to sum distances over observations, for the first edges, and over edges, for each observation."""
    a, code, e = _array(x), CODES[norm], _array(edges)
    c = _array(x.new_empty(0, dtype=torch.float64) if coefficient is None else coefficient.double())

    def run(inverse: Any, shares: Sequence[tuple[int, int]], size: int) -> tuple[Tensor, Tensor]:
        out = np.empty(x.shape[0])

        def part(i: int, j: int) -> Array:
            sums = np.zeros(size)
            loops.shared(code, a, inverse, e, c, i, j, sums, out)
            return sums

        return torch.from_numpy(reduce(operator.iadd, map_threads(part, shares))), torch.from_numpy(out)

    return run


def _own_shares(run: Callable[[int, int, slice], None], observations: int, starts: Tensor | None) -> None:
    """Run shares of the observations on all their edges; or the one observation on edges between starts."""
    if starts is None:
        run_threads(lambda i, j: run(i, j, slice(None)), split_range(observations))
    else:
        at = starts.tolist()
        run_threads(lambda i, j: run(0, 1, slice(at[i], at[j])), split_range(len(at) - 1))


def _in_range(run: Callable[[Any], Tensor], x: Tensor, norm: Norm, terms: int, least: float = 1e-9) -> Tensor:
    """Return sums of distances, scaled only if their size shows that squares over- or underflowed without it.

    Looking for the largest value first would cost as much as the kernel itself on small teams.
    """
    sums = run(x.detach().numpy().dtype.type(1))
    if norm not in HOMOGENEOUS or bool(((sums > least * terms) & (sums < 1e18)).all()):
        return sums
    scale = scale_of(x, norm)
    return run(_inverse(scale)) * scale


def _array(x: Tensor) -> Array:
    return x.detach().contiguous().numpy()


def _inverse(scale: Tensor) -> Any:
    """Return 1 / scale, exact for a power of two, as a NumPy scalar of the points' dtype."""
    return (1 / scale).numpy()[()]


def _shares(x: Tensor) -> list[tuple[int, int]]:
    """Split the observations into whole sets of lanes."""
    return split_range(x.shape[0], LANES)


def _strips(rows: int) -> list[tuple[int, int]]:
    """Split the rows of a triangle into strips of one tile, longest first, so that threads end together."""
    return [(i, min(i + loops.TILE, rows)) for i in range(0, rows, loops.TILE)]


backend = Differentiable(Numba())
