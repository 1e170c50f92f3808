"""The Triton backend's raw operations: grids, block sizes, and the order of edges."""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from torch.cuda import is_current_stream_capturing
from triton.runtime import driver

from graphsnd.behavior.points import Norm
from graphsnd.kept import keep
from graphsnd.kernels.autograd import CODES, Differentiable, Dtype, Parts, add_up, side_by_side
from graphsnd.kernels.gpu import edges as edge_kernels
from graphsnd.kernels.gpu import slopes as slope_kernels
from graphsnd.kernels.gpu import tiles
from graphsnd.kernels.reference import add_star, scale_of

SMALL_TEAM = 32  # agents that fit one tile together
PROGRAMS = 2048  # enough to fill any GPU several times over
LANES = 32  # observations side by side for edge totals: one cache line of float32
TRANSPOSED = 1 << 26  # elements of a transposed copy, at most
NEAR = 2048  # features of second agents that a stretch of edges touches: they fit the first-level cache
KEPT = 1 << 20  # shares of programs that are kept for the next call
WARPS = 32  # of a program for edge totals
NARROW = 4  # features that all-pairs kernels keep in registers


class Triton:
    """See :class:`graphsnd.kernels.autograd.RawOperations`."""

    def pair_totals(self, parts: Parts, norm: Norm, single: bool, count: int, dtype: Dtype) -> Tensor:
        x, jump, fx, f = locate(parts)
        o, n, _ = x.shape
        if n <= SMALL_TEAM:
            size = max(2, triton.next_power_of_2(n))
            batch = max(1, 2048 // size**2)
            programs = triton.cdiv(o, batch)
            sums = _Sums(x, programs, o, dtype)
            tiles.totals_small[(programs,)](
                x, jump, *sums.arguments, o, n, count, *x.stride(), f, fx, CODES[norm], batch, size
            )
            return sums.result()
        double = x.dtype == torch.float64
        if f > NARROW or double:
            blocks = triton.cdiv(n, 16)
            out = x.new_empty(o, blocks, dtype=torch.float64)
            for start in range(0, o, step := max(1, TRANSPOSED // (n * f))):
                turned = _turn(x[start : start + step], jump, f, fx)
                rows, columns = turned.shape[1:]
                tiles.totals_wide[(len(turned) * blocks,)](
                    turned, out[start : start + step], n, blocks, count, rows, rows * columns, columns,
                    CODES[norm], single and double, num_warps=1, maxnreg=128 if double else 80,
                )  # fmt: skip
            return add_up(out, dtype)
        # Measured on an H200: small tiles waste less on the diagonal, large ones load less for each pair.
        columns, registers = (32, 96) if n <= 64 else (16, 80) if n < 300 else (32, 128)
        shares = min(triton.cdiv(n, 16), max(triton.cdiv(n, 128), PROGRAMS // o))
        sums = _Sums(x, o * shares, o, dtype)
        tiles.totals[(o * shares,)](
            x, jump, *sums.arguments, n, shares, count, *x.stride(), f, fx, CODES[norm], 16, columns,
            num_warps=1, maxnreg=registers,
        )  # fmt: skip
        return sums.result()

    def pair_totals_and_slopes(self, parts: Parts, norm: Norm, count: int, dtype: Dtype) -> tuple[Tensor, Parts]:
        x, jump, fx, f = locate(parts)
        o, n, _ = x.shape
        if f > NARROW:
            turned = _turn(x, jump, f, fx)
            blocks, slopes = triton.cdiv(n, 64), torch.empty_like(turned)
            out = x.new_empty(o, blocks, dtype=torch.float64)
            slope_kernels.totals_and_slopes_wide[(o * blocks,)](
                turned, out, slopes, n, blocks, count, turned.shape[1], *turned.stride()[:2], CODES[norm], num_warps=1
            )
            return add_up(out, dtype), _split(_turn_back(slopes, n, f), parts)
        blocks = triton.cdiv(n, 16)
        sums = _Sums(x, o * blocks, o, dtype)
        # In one tensor, so that the backward pass scales two parts in one launch; they are of one width.
        slopes = torch.empty(f // fx, o, n, fx, dtype=x.dtype, device=x.device)
        slope_kernels.totals_and_slopes[(o * blocks,)](
            x, jump, *sums.arguments, slopes, (f // fx - 1) * o * n * fx, n, blocks, count, *x.stride(),
            f, fx, CODES[norm], 16, 16, num_warps=1, maxnreg=96 if n >= 200 and x.dtype == torch.float32 else 128,
        )  # fmt: skip
        return sums.result(), (slopes,) if fx < f else _split(slopes[0], parts)

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        o, n, f = x.shape
        size = 32 if n < 512 else 64
        blocks = triton.cdiv(n, size)
        per_split = triton.cdiv(o, max(1, min(o, PROGRAMS * 2 // blocks**2)))
        out, scale = x.new_zeros(n, n, dtype=torch.float64), scale_of(x, norm)
        grid = (blocks * blocks, triton.cdiv(o, per_split))
        w = weight.double().contiguous()
        tiles.matrix[grid](x, scale, w, out, o, n, blocks, per_split, *x.stride(), f, CODES[norm], size)
        upper = torch.triu(out, diagonal=1) * scale
        return upper + upper.T

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:
        o, n, f = x.shape
        scale, weight, grad = scale_of(x, norm), weight.contiguous(), grad.to(x.dtype).contiguous()
        if f > NARROW:
            turned, blocks = _turn(x, 0, f, f), triton.cdiv(n, 64)
            out = torch.empty_like(turned)
            slope_kernels.matrix_backward_wide[(o * blocks,)](
                turned, scale, weight, grad, out, n, blocks, turned.shape[1], *turned.stride()[:2], CODES[norm],
                num_warps=1,
            )  # fmt: skip
            return _turn_back(out, n, f)
        blocks = triton.cdiv(n, 16)
        out = torch.empty(o, n, f, dtype=x.dtype, device=x.device)
        slope_kernels.matrix_backward[(o * blocks,)](
            x, scale, weight, grad, out, n, blocks, *x.stride(), f, CODES[norm], 16, 16, num_warps=1
        )
        return out

    def edge_means(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:
        o, _, f = x.shape
        size, block = edges.shape[0], 128
        blocks = triton.cdiv(size, block)
        per_split = triton.cdiv(o, max(1, min(o, PROGRAMS // blocks)))
        out, scale = x.new_zeros(size, dtype=torch.float64), scale_of(x, norm)
        edges, w = edges.contiguous(), torch.full((o,), 1 / o, dtype=torch.float64, device=x.device)
        edge_kernels.sums[(blocks, triton.cdiv(o, per_split))](
            x, scale, edges, w, out, o, size, per_split, *x.stride(), f, CODES[norm], block
        )
        return out * scale

    def edge_totals(self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool) -> Tensor:
        x, jump, fx, f = locate(parts)
        o, n, _ = x.shape
        near = max(32, NEAR // f)
        dense = edges.shape[0] >= 8 * n * triton.cdiv(n, near)
        share, batch = (4, 4 * WARPS) if dense else (1, 16 * WARPS)  # few edges for four to share an agent
        step = max(1, TRANSPOSED // (n * f * LANES)) * LANES
        first_rows = _turn_lanes(x[:step], jump, f, fx)  # runs while the launches of the edges' order are on their way
        sizes = n, near, share, batch
        first, second, place = keep(edges, sizes, lambda: group_edges(edges, ordered, *sizes))
        weight, peak = first_rows, None
        if coefficient is not None:
            # The kernel tells from the size of the sums whether squares stayed in range, so weights are at most 1.
            peak = coefficient.abs().max().clamp_min(torch.finfo(coefficient.dtype).tiny)
            weight = x.new_zeros(second.shape[0]).scatter_(0, place, (coefficient / peak).to(x.dtype))
        groups = first.shape[0]
        chunks = max(1, min(groups // batch, 2 * triton.cdiv(n, near), PROGRAMS))
        per_chunk = triton.cdiv(groups // batch, chunks) * batch
        chunks = triton.cdiv(groups, per_chunk)
        sums = []
        for start in range(0, o, step):
            turned = _turn_lanes(x[start : start + step], jump, f, fx) if start else first_rows
            columns = min(step, o - start)
            out = x.new_empty(chunks, columns, dtype=torch.float64)
            edge_kernels.totals[(chunks, len(turned))](
                turned, first, second, weight, out, n, columns, groups, per_chunk,
                f, CODES[norm], batch, share, LANES, peak is not None, num_warps=WARPS,
            )  # fmt: skip
            sums.append(out.sum(dim=0))
        totals = sums[0] if len(sums) == 1 else torch.cat(sums)
        return totals if peak is None else totals * peak

    def edge_means_and_totals(
        self, parts: Parts, norm: Norm, edges: Tensor, coefficient: Tensor | None, ordered: bool, radii: bool
    ) -> tuple[Tensor, Tensor]:
        n = parts[0].shape[1] * radii
        if radii:
            parts, edges, coefficient = add_star(parts, edges, coefficient)
        means = self.edge_means(side_by_side(parts), norm, edges).roll(-n)
        return means, self.edge_totals(parts, norm, edges, coefficient, ordered)

    def edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
        o = x.shape[0]
        return _edge_backward(x, norm, edges.expand(o, -1, -1), weight, grad.contiguous().expand(o, -1))

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None = None) -> Tensor:
        o, _, f = x.shape
        size = edges.shape[1]
        block = min(128, max(16, triton.next_power_of_2(size)))
        blocks = triton.cdiv(size, block)
        out, scale = x.new_empty(o, size, dtype=torch.float64), scale_of(x, norm)
        edge_kernels.own[(o * blocks,)](
            x, scale, edges, out, size, blocks, *x.stride(), *edges.stride(), f, CODES[norm], block
        )
        return out * scale

    def observation_edges_backward(
        self, x: Tensor, norm: Norm, edges: Tensor, starts: Tensor | None, grad: Tensor
    ) -> Tensor:
        return _edge_backward(x, norm, edges, torch.ones_like(grad[:, 0]), grad.contiguous())


class _Sums:
    """Where the programs of a kernel put their shares of the totals, or, in a dtype, of the sum of all totals."""

    def __init__(self, x: Tensor, programs: int, observations: int, dtype: Dtype) -> None:
        self.observations, self.total = observations, None
        self.arguments: tuple[Tensor, Tensor | None, Tensor | None, int]
        if dtype is None:
            self.shares = x.new_empty(max(programs, observations), dtype=torch.float64)
            self.arguments = self.shares, None, None, 1
        else:
            group = max(64, 1 << programs.bit_length() // 2)
            self.total = x.new_empty((), dtype=dtype)
            self.arguments = *_scratch(x, programs + -(-programs // group)), self.total, group

    def result(self) -> Tensor:
        """Return the totals of each observation, or of all."""
        if self.total is not None:
            return self.total
        return self.shares if len(self.shares) == self.observations else self.shares.view(self.observations, -1).sum(1)


_SCRATCH: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # by device and stream


def _scratch(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Shares ``[size]`` and counters that are 0 before and after a kernel.

    They are kept for each stream, where filling them would take longer than a small team's kernel. A CUDA graph has its
    own, since it may be replayed beside anything.
    """
    key, known = None, None
    if x.is_cuda and size <= KEPT and not torch.compiler.is_compiling() and not is_current_stream_capturing():
        key = x.get_device(), driver.active.get_current_stream(x.get_device())
        known = _SCRATCH.get(key)
    if known is None or len(known[0]) < size:
        room = size if key is None else max(8192, triton.next_power_of_2(size))
        known = x.new_empty(room, dtype=torch.float64), torch.zeros(room // 32 + 2, dtype=torch.int32, device=x.device)
        if key is not None:
            _SCRATCH[key] = known
    return known


def locate(parts: Parts) -> tuple[Tensor, int, int, int]:
    """One tensor, how much further the second of two begins than its features would, and the features of one and both.

    Kernels reach both by one pointer where they have the same strides; other parts are copied side by side.
    """
    x, f = parts[0], sum(part.shape[2] for part in parts)
    # Pointers are not known while torch.compile traces.
    alike = len(parts) == 2 and (x.shape, x.stride()) == (parts[1].shape, parts[1].stride())
    if alike and not torch.compiler.is_compiling():
        jump, odd = divmod(parts[1].data_ptr() - x.data_ptr(), x.element_size())
        if not odd:
            return x, jump - x.shape[2] * x.stride(2), x.shape[2], f
    return side_by_side(parts), 0, f, f


def _turn(x: Tensor, jump: int, f: int, fx: int) -> Tensor:
    """The points as ``[observations, features, agents]``, with zeros up to whole groups of 4 features and 64 agents."""
    o, n, _ = x.shape
    rows, columns = -(-f // 4) * 4, -(-n // 64) * 64
    out = torch.empty(o, rows, columns, dtype=x.dtype, device=x.device)
    width = min(32, triton.next_power_of_2(rows))
    tiles.turn[(o * columns // 64, triton.cdiv(rows, width))](
        x, jump, out, n, columns // 64, *x.stride(), f, fx, rows, columns, 64, width
    )
    return out


def _turn_lanes(x: Tensor, jump: int, f: int, fx: int) -> Tensor:
    """The points as ``[observations / LANES, agents, features, LANES]``, with zeros after the last observation."""
    o, n, _ = x.shape
    out = torch.empty(triton.cdiv(o, LANES), n, f, LANES, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n * f, 128), len(out))
    edge_kernels.turn[grid](x, jump, out, n * f, o, *x.stride(), f, fx, LANES, 128)
    return out


def _turn_back(turned: Tensor, n: int, f: int) -> Tensor:
    return turned[:, :f, :n].transpose(1, 2)


def _split(slopes: Tensor, parts: Parts) -> Parts:
    return slopes.split([part.shape[2] for part in parts], dim=-1)


def group_edges(
    edges: Tensor, ordered: bool, n: int, near: int, share: int, batch: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Order edges so that a stretch of them touches ``near`` second agents, in groups with one first agent.

    Without reading anything back from the device: the number of groups is the largest it could be, and what is not
    needed is -1.

    Args:
        edges: ``[m, 2]``.
        ordered: Whether they are sorted, as those of a graph are.
        n: Agents.
        near: Second agents in a stretch.
        share: Edges in a group.
        batch: Divides the number of groups.

    Returns:
        First agents ``[groups]``, second agents ``[groups * share]``, and the place of each edge among these, int64.
    """
    if not ordered:
        order = (edges[:, 0] * n + edges[:, 1]).argsort(stable=True)
        edges = edges[order]
    m, device, segments, strides = edges.shape[0], edges.device, n * triton.cdiv(n, near), edges.stride()
    begin, length = torch.empty(2, segments, dtype=torch.int32, device=device).unbind()
    edge_kernels.measure_segments[(triton.cdiv(segments, 128),)](
        edges, begin, length, m, n, segments, *strides, near, share, m.bit_length(), 128
    )
    groups = triton.cdiv(triton.cdiv(m + (share - 1) * min(m, segments), share), batch) * batch
    both, place = torch.full((groups * (1 + share),), -1, dtype=torch.int32, device=device), edges.new_empty(m)
    first, second, after = both[:groups], both[groups:], length.cumsum(0)
    edge_kernels.fill[(triton.cdiv(m, 512),)](
        edges, begin, length, after, first, second, place, m, n, *strides, near, share, 512
    )
    return first, second, place if ordered else torch.empty_like(place).scatter_(0, order, place)


def _edge_backward(x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor) -> Tensor:
    o, n, f = x.shape
    size = edges.shape[1]
    block = min(128, max(16, triton.next_power_of_2(size)))
    blocks = triton.cdiv(size, block)
    out = torch.zeros(o, n, f, dtype=x.dtype, device=x.device)
    edge_kernels.backward[(o * blocks,)](
        x, scale_of(x, norm), edges, weight.contiguous(), grad, out, n, size, blocks,
        *x.stride(), *edges.stride(), grad.stride(0), f, CODES[norm], block,
    )  # fmt: skip
    return out


backend = Differentiable(Triton())
