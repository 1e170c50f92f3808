"""The numba backend's raw operations: tensors in, threads over observations, tensors out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphsnd.behavior.points import Norm
from graphsnd.kept import keep
from graphsnd.kernels.autograd import CODES, Differentiable, Dtype, Parts, add_up, side_by_side
from graphsnd.kernels.cpu import loops
from graphsnd.kernels.cpu.loops import FOUR, LANES, SPAN
from graphsnd.kernels.reference import HOMOGENEOUS, add_star, scale_of
from graphsnd.kernels.threads import map_threads, run_threads, split_range
from graphsnd.sums import add_last, total

Array = npt.NDArray[Any]
Rows = tuple[Array, Array]  # rows of edges and their second agents, see `loops.visit`

# Lanes of agents are faster for fewer observations than SCARCE; for more features than NARROW if these times the agents
# are WIDE; for gradients of LARGE teams: timed for 10 to 2,000 agents and 4 to 128 features.
SCARCE, NARROW, WIDE, LARGE = 3 * LANES // 4, 12, 6400, 100
# Bytes to put side by side at a time. From 32 MB on malloc asks the system for memory, whose new pages cost more than
# the copy.
COPY = 1 << 24
# Bytes of second agents that are met at a time: they fit any first-level cache. Sparse edges meet at least FEWEST of
# them, or first agents would be loaded for a single edge. All of MANY times as many fit a second-level cache.
NEAR, FEWEST, MANY = 24 << 10, 64, 16
# Parts of a sum over observations: enough for eight threads, more where adding them up costs nothing beside them.
SHARES, LONG = 8, 512
NONE = np.zeros(0)


class Numba:
    """See :class:`graphsnd.kernels.autograd.RawOperations`."""

    def pair_totals(self, parts: Parts, norm: Norm, single: bool, count: int, dtype: Dtype) -> Tensor:
        (o, n), features = parts[0].shape[:2], sum(part.shape[2] for part in parts)
        if not _wide(norm, o, features > NARROW and n * features >= WIDE):
            return add_up(_visit(parts, norm, _all_pairs(parts))[1] / count, dtype)
        copies = min(o // LANES, sum(part.nbytes for part in parts) // COPY) if len(parts) > 1 else 1
        if copies > 1:
            shares = zip(*(part.tensor_split(copies) for part in parts), strict=True)
            return add_up(torch.cat([self.pair_totals(share, norm, single, count, None) for share in shares]), dtype)
        return add_up(_along_agents(loops.euclidean_totals, side_by_side(parts), 1e-9) / count, dtype)

    def pair_totals_and_slopes(self, parts: Parts, norm: Norm, count: int, dtype: Dtype) -> tuple[Tensor, Parts]:
        o, n = parts[0].shape[:2]
        if _wide(norm, o, n >= LARGE):
            x = side_by_side(parts)
            slopes = torch.empty(x.shape, dtype=x.dtype)
            # Slopes do not change with the scale, but those of the closest pairs are lost before the sum shows it.
            totals = _along_agents(loops.euclidean_slopes, x, 1e-3, slopes.numpy())
            return add_up(totals / count, dtype), slopes.div_(count).split([part.shape[2] for part in parts], dim=-1)
        share = torch.full((o,), 1 / count, dtype=torch.float64)
        totals, pulls = _slopes(parts, norm, _all_pairs(parts), None, share)
        return add_up(totals / count, dtype), pulls

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        n = x.shape[1]
        upper = _visit((x,), norm, _all_pairs((x,)), weight=weight, size=n**2)[0].view(n, n)
        return upper + upper.T

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        return _slopes((x,), norm, _all_pairs((x,)), grad.reshape(-1), weight)[1][0]

    def edge_means(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:
        return self.edge_means_and_totals((x,), norm, edges, None, ordered=False, radii=False)[0]

    def edge_totals(self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool) -> Tensor:
        if _few(parts, edges):
            return self.edge_means_and_totals(parts, norm, edges, coefficient, ordered, radii=False)[1]
        rows, order = _group(edges, parts)
        return _visit(parts, norm, rows, _pick(coefficient, order))[1]

    def edge_means_and_totals(
        self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool, radii: bool
    ) -> tuple[Tensor, Tensor]:
        (o, n), m = parts[0].shape[:2], len(edges)
        if _few(parts, edges, n * radii):
            parts, edges, coefficient = add_star(parts, edges, coefficient) if radii else (parts, edges, coefficient)
            own = self.observation_edges(side_by_side(parts), norm, edges.expand(o, -1, -1))
            totals = add_last(own) if coefficient is None else own @ coefficient.double()
            return own.mean(dim=0).roll(-n * radii), totals
        (rows, second), order = _group(edges, parts)
        coefficient = _pick(coefficient, order)
        if radii:
            rows = np.append(rows, [[n, m, m + n, 0]], axis=0)
            second = np.append(second, np.arange(n, dtype=second.dtype))
            coefficient = torch.cat([torch.ones(m) if coefficient is None else coefficient, torch.zeros(n)])
        sums, totals = _visit(parts, norm, (rows, second), coefficient, size=m + n * radii, mean=radii)
        if order is not None:
            sums[order] = sums[:m].clone()
        return sums / o, totals

    def edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        if _few((x,), edges):
            own = weight.double().unsqueeze(1) * grad.unsqueeze(0)
            return self.observation_edges_backward(x, norm, edges.expand(x.shape[0], -1, -1), None, own)
        rows, order = _group(edges, (x,))
        return _slopes((x,), norm, rows, _pick(grad, order), weight)[1][0]

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None = None) -> Tensor:
        a, code, e, out = _array(x), CODES[norm], edges.numpy(), np.empty(edges.shape[:2])

        def run(inverse: Any) -> tuple[Tensor]:
            def some(i: int, j: int, part: slice) -> None:
                loops.own(code, a, inverse, e[:, part], i, j, out[:, part])

            _own_shares(some, x.shape[0], starts)
            return (torch.from_numpy(out),)

        def good(own: Tensor) -> bool:
            return _moderate(total(own), 1e-3 * out.size)

        return _in_range(run, (x,), norm, good)[0]

    def observation_edges_backward(
        self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None, grad: Tensor
    ) -> Tensor:
        a, code, inverse = _array(x), CODES[norm], _inverse(scale_of(x, norm))
        e, g, out = edges.numpy(), _array(grad), np.zeros_like(a)

        def run(i: int, j: int, part: slice) -> None:
            loops.own_backward(code, a, inverse, e[:, part], g[:, part], i, j, out)

        _own_shares(run, x.shape[0], starts)
        return torch.from_numpy(out)


def _wide(norm: Norm, observations: int, large: bool) -> bool:
    """Return whether agents are the lanes instead of observations."""
    return norm is Norm.EUCLIDEAN and (large or observations < SCARCE)


def _few(parts: Parts, edges: Tensor, more: int = 0) -> bool:
    """Return whether single distances take less time than putting all agents of several observations side by side."""
    o, n = parts[0].shape[:2]
    blocks = -(-o // LANES)
    return (o - blocks) * (len(edges) + more) < 3 * n * blocks


def _near(parts: Parts, least: int) -> int:
    """Return how many second agents, at least, edges meet at a time."""
    n, features = parts[0].shape[1], sum(part.shape[2] for part in parts)
    return max(NEAR // (-(-features // 4) * FOUR * parts[0].element_size()), least, n // 64)


def _all_pairs(parts: Parts) -> Rows:
    """Return all pairs as rows; pair (i, j) is number ``i n + j``."""
    return _list_pairs(parts[0].shape[1], _near(parts, 8))


@lru_cache(maxsize=2)
def _list_pairs(n: int, near: int) -> Rows:
    stretch, i = np.divmod(np.arange(-(-n // near) * n), n)
    begin, end = np.maximum(i + 1, stretch * near), np.minimum((stretch + 1) * near, n)
    return np.stack([i, begin, end, i * n], axis=1)[begin < end], np.arange(n, dtype=np.int32)


def _group(edges: Tensor, parts: Parts) -> tuple[Rows, Tensor | None]:
    """Return edges as rows, and the order in which these have them; None for their own."""
    near = _near(parts, FEWEST) if parts[0].shape[1] > MANY * _near(parts, FEWEST) else 0
    return keep(edges, near, lambda: _make_rows(edges, near))


def _make_rows(edges: Tensor, near: int) -> tuple[Rows, Tensor | None]:
    (i, j), order = edges.numpy().T, None
    if near:
        order = np.argsort((j // near).astype(np.uint8), kind="stable")  # sorts bytes by counting
        i, j = i[order], j[order]
    starts = np.flatnonzero(np.diff(i, prepend=-1))
    rows = np.stack([i[starts], starts, np.append(starts, len(i))[1:], np.zeros_like(starts)], axis=1)
    return (rows, j.astype(np.int32)), None if order is None else torch.from_numpy(order)


def _pick(values: Tensor | None, order: Tensor | None) -> Tensor | None:
    return values if values is None or order is None else values[order]


def _visit(
    parts: Parts,
    norm: Norm,
    rows: Rows,
    coefficient: Tensor | None = None,
    weight: Tensor | None = None,
    size: int = 0,
    mean: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return sums over observations, weighted, along the first ``size`` edges, and over edges at each observation."""
    (x, z), code, o = _both(parts), CODES[norm], parts[0].shape[0]
    c = NONE if coefficient is None else _array(coefficient.double())
    w = np.ones(o) if weight is None else _array(weight.double())
    # Shares that the number of threads does not decide, or it would decide the last bits of a sum over observations.
    shares = split_range(o, LANES, max(SHARES, o // LONG) if size else None)

    def run(inverse: Any) -> tuple[Tensor, Tensor]:
        out = np.empty(o)

        def part(i: int, j: int) -> Array:
            sums = np.zeros(size)
            loops.visit(code, x, z, inverse, *rows, c, w, mean, i, j, sums, out)
            return sums

        return torch.from_numpy(reduce(operator.iadd, map_threads(part, shares))), torch.from_numpy(out)

    def good(sums: Tensor, totals: Tensor) -> bool:
        if size == 0:
            return _moderate(totals.abs(), 1e-9 * _terms(rows, c))
        # Of the mean distance, in which no coefficient hides the size of the distances.
        return _moderate(add_last(totals if coefficient is None else sums) / o, 1e-3 * _terms(rows, NONE))

    sums, totals = _in_range(run, parts, norm, good)
    return sums, totals


def _slopes(
    parts: Parts, norm: Norm, rows: Rows, coefficient: Tensor | None, factor: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return sums over edges of coefficient times distance, and their gradients, times a factor at each observation."""
    (x, z), code, out = _both(parts), CODES[norm], np.empty(parts[0].shape[0])
    peak = 1.0 if coefficient is None else max(float(coefficient.abs().max()), float(np.finfo(float).tiny))
    c = NONE if coefficient is None else _array(coefficient.double() / peak)  # may leave single precision without it
    f, pulls = _array(factor.double() * peak), (np.empty_like(x), np.empty_like(z))

    def run(inverse: Any) -> tuple[Tensor]:
        run_threads(
            lambda i, j: loops.slopes(code, x, z, inverse, *rows, c, f, i, j, out, *pulls), split_range(len(x), LANES)
        )
        return (torch.from_numpy(out),)

    def good(totals: Tensor) -> bool:
        return _moderate(totals, 1e-3 * _terms(rows, c))

    # Slopes do not change with the scale, but those of the closest pairs are lost before the sum shows it. A sum with
    # coefficients of both signs shows nothing.
    (totals,) = _in_range(run, parts, norm, None if (c < 0).any() else good)
    return totals * peak, tuple(map(torch.from_numpy, pulls))[: len(parts)]


def _along_agents(kernel: Callable[..., None], x: Tensor, least: float, *outputs: Array) -> Tensor:
    """Return the Euclidean totals of a kernel that has agents as lanes, in float64."""
    a, (o, n) = _array(x), x.shape[:2]
    strips = max(1, min(SHARES // o, n // SPAN))

    def run(inverse: Any) -> tuple[Tensor]:
        out = np.empty(o * strips)
        run_threads(lambda i, j: kernel(a, inverse, strips, i, j, out, *outputs), split_range(o * strips))
        return (torch.from_numpy(out).view(o, strips).sum(dim=1),)

    return _in_range(run, (x,), Norm.EUCLIDEAN, lambda totals: _moderate(totals, least * n**2))[0]


def _own_shares(run: Callable[[int, int, slice], None], observations: int, starts: Tensor | None) -> None:
    """Run shares of the observations on all their edges; or the one observation on edges between starts."""
    if starts is None:
        run_threads(lambda i, j: run(i, j, slice(None)), split_range(observations))
    else:
        at = starts.tolist()
        run_threads(lambda i, j: run(0, 1, slice(at[i], at[j])), split_range(len(at) - 1))


def _in_range(
    run: Callable[[Any], tuple[Tensor, ...]], parts: Parts, norm: Norm, good: Callable[..., bool] | None
) -> tuple[Tensor, ...]:
    """Return sums of distances, scaled only if their size shows that squares over- or underflowed without it.

    Looking for the largest value first would cost as much as the kernel itself on small teams. It comes first where
    the sums show nothing, and ``good`` is None.
    """
    if good is not None or norm not in HOMOGENEOUS:
        results = run(parts[0].new_ones(()).numpy()[()])
        if norm not in HOMOGENEOUS or good is None or good(*results):
            return results
    scale = scale_of(side_by_side(parts), norm)
    return tuple(result * scale for result in run(_inverse(scale)))


def _terms(rows: Rows, coefficient: Array) -> float:
    """Return the number of edges, or the sum of the absolute coefficients."""
    return float(np.abs(coefficient).sum() if len(coefficient) else (rows[0][:, 2] - rows[0][:, 1]).sum())


def _moderate(sums: Tensor, least: float) -> bool:
    return bool(((sums > least) & (sums < 1e18)).all())


def _both(parts: Parts) -> tuple[Array, Array]:
    """Return the points as two arrays of features; the second is empty unless there are two parts."""
    x = _array(parts[0] if len(parts) == 2 else side_by_side(parts))
    return x, _array(parts[1]) if len(parts) == 2 else x[:, :, :0]


def _array(x: Tensor) -> Array:
    return x.detach().contiguous().numpy()


def _inverse(scale: Tensor) -> Any:
    """Return 1 / scale, exact for a power of two, as a NumPy scalar of the points' dtype."""
    return (1 / scale).numpy()[()]


backend = Differentiable(Numba())
