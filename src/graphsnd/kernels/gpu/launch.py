"""The Triton backend's raw operations: grids, block sizes, and the order of edges."""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from graphsnd.behavior import Norm
from graphsnd.kernels.autograd import CODES, Parts, side_by_side
from graphsnd.kernels.gpu import edges as edge_kernels
from graphsnd.kernels.gpu import tiles
from graphsnd.kernels.pairfunctions import scale_of

SMALL_TEAM = 32  # agents that fit one tile together
PROGRAMS = 2048  # enough to fill any GPU several times over
LANES = 32  # observations side by side for edge totals: one cache line of float32
TRANSPOSED = 1 << 26  # elements of a transposed copy, at most
NARROW = 4  # features that all-pairs kernels keep in registers


class Triton:
    """See :class:`graphsnd.kernels.autograd.RawOperations`."""

    def pair_totals(self, parts: Parts, norm: Norm, single: bool, count: int) -> Tensor:  # noqa: D102
        x, jump, fx, f = _locate(parts)
        o, n, _ = x.shape
        if n <= SMALL_TEAM:
            out = x.new_empty(o, dtype=torch.float64)
            size = max(2, triton.next_power_of_2(n))
            batch = max(1, 2048 // size**2)
            tiles.totals_small[(triton.cdiv(o, batch),)](
                x, jump, out, o, n, count, *x.stride(), f, fx, CODES[norm], batch, size
            )
            return out
        double = x.dtype == torch.float64
        if f > NARROW or double:
            blocks = triton.cdiv(n, 16)
            out = x.new_empty(o, blocks, dtype=torch.float64)
            for start in range(0, o, step := max(1, TRANSPOSED // (n * f))):
                turned = _turn(x[start : start + step], jump, f, fx)
                rows, columns = turned.shape[1:]
                tiles.totals_wide[(len(turned) * blocks,)](
                    turned, out[start : start + step], n, blocks, count, rows, rows * columns, columns,
                    CODES[norm], single and double, num_warps=1, maxnreg=128 if double or norm is Norm.SQRT_JS else 80,
                )  # fmt: skip
            return out
        # Measured on an H200: small tiles waste less on the diagonal, large ones load less for each pair.
        columns, registers = (32, 96) if n <= 64 else (16, 80) if n < 300 else (32, 128)
        shares = min(triton.cdiv(n, 16), max(triton.cdiv(n, 128), PROGRAMS // o))
        out = x.new_empty(o, shares, dtype=torch.float64)
        tiles.totals[(o * shares,)](
            x, jump, out, n, shares, count, *x.stride(), f, fx, CODES[norm], 16, columns,
            num_warps=1, maxnreg=registers,
        )  # fmt: skip
        return out

    def pair_totals_and_slopes(self, parts: Parts, norm: Norm, count: int) -> tuple[Tensor, Parts]:  # noqa: D102
        x, jump, fx, f = _locate(parts)
        o, n, _ = x.shape
        if f > NARROW:
            turned = _turn(x, jump, f, fx)
            blocks, slopes = triton.cdiv(n, 64), torch.empty_like(turned)
            out = x.new_empty(o, blocks, dtype=torch.float64)
            tiles.totals_and_slopes_wide[(o * blocks,)](
                turned, out, slopes, n, blocks, count, turned.shape[1], *turned.stride()[:2], CODES[norm], num_warps=1
            )
            return out, _split(_turn_back(slopes, n, f), parts)
        blocks = triton.cdiv(n, 16)
        out = x.new_empty(o, blocks, dtype=torch.float64)
        slopes, more = (torch.empty(o, n, w, dtype=x.dtype, device=x.device) for w in (fx, f - fx))
        tiles.totals_and_slopes[(o * blocks,)](
            x, jump, out, slopes, more, n, blocks, count, *x.stride(), f, fx, CODES[norm], 16, 16,
            num_warps=1, maxnreg=96 if n >= 200 and x.dtype == torch.float32 else 128,
        )  # fmt: skip
        return out, (slopes, more) if fx < f else _split(slopes, parts)

    def pair_matrix(self, x: Tensor, norm: Norm, weight: Tensor) -> Tensor:  # noqa: D102
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

    def pair_matrix_backward(self, x: Tensor, norm: Norm, weight: Tensor, grad: Tensor) -> Tensor:  # noqa: D102
        o, n, f = x.shape
        scale, weight, grad = scale_of(x, norm), weight.contiguous(), grad.to(x.dtype).contiguous()
        if f > NARROW:
            turned, blocks = _turn(x, 0, f, f), triton.cdiv(n, 64)
            out = torch.empty_like(turned)
            tiles.matrix_backward_wide[(o * blocks,)](
                turned, scale, weight, grad, out, n, blocks, turned.shape[1], *turned.stride()[:2], CODES[norm],
                num_warps=1,
            )  # fmt: skip
            return _turn_back(out, n, f)
        blocks = triton.cdiv(n, 16)
        out = torch.empty(o, n, f, dtype=x.dtype, device=x.device)
        tiles.matrix_backward[(o * blocks,)](
            x, scale, weight, grad, out, n, blocks, *x.stride(), f, CODES[norm], 16, 16, num_warps=1
        )
        return out

    def edge_sums(self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor) -> Tensor:  # noqa: D102
        o, _, f = x.shape
        size, block = edges.shape[0], 128
        blocks = triton.cdiv(size, block)
        per_split = triton.cdiv(o, max(1, min(o, PROGRAMS // blocks)))
        out, scale = x.new_zeros(size, dtype=torch.float64), scale_of(x, norm)
        edges, w = edges.contiguous(), weight.double().contiguous()
        edge_kernels.sums[(blocks, triton.cdiv(o, per_split))](
            x, scale, edges, w, out, o, size, per_split, *x.stride(), f, CODES[norm], block
        )
        return out * scale

    def edge_totals(self, x: Tensor, norm: Norm, edges: Tensor, coefficient: Tensor | None) -> Tensor:  # noqa: D102
        _, n, f = x.shape
        near = max(32, 2048 // f)  # second agents whose observations fit the first-level cache
        dense = edges.shape[0] >= 8 * n * triton.cdiv(n, near)
        share, batch = (4, 64) if dense else (1, 256)  # few edges for four to share an agent
        first, second, order, place = _grouped(edges, n, near, share, batch)
        weight, peak = None, x.new_ones(())
        if coefficient is not None:
            # The kernel tells from the size of the sums whether squares stayed in range, so weights are at most 1.
            peak = coefficient.abs().max().clamp_min(torch.finfo(coefficient.dtype).tiny)
            weight = x.new_zeros(second.shape[0]).scatter_(0, place, (coefficient[order] / peak).to(x.dtype))
        groups = first.shape[0]
        chunks = max(1, min(groups // batch, 2 * triton.cdiv(n, near), PROGRAMS))
        per_chunk = triton.cdiv(groups // batch, chunks) * batch
        chunks = triton.cdiv(groups, per_chunk)
        parts = []
        for part in x.split(max(1, TRANSPOSED // (n * f * LANES)) * LANES):
            columns = part.shape[0]
            rows = triton.cdiv(columns, LANES)
            if columns % LANES:
                part = torch.nn.functional.pad(part, (0, 0, 0, 0, 0, rows * LANES - columns))
            turned = part.reshape(rows, LANES, n, f).permute(0, 2, 3, 1).contiguous()
            out = x.new_empty(chunks, columns, dtype=torch.float64)
            edge_kernels.totals[(chunks, rows)](
                turned, first, second, turned if weight is None else weight, out, n, columns, groups, per_chunk,
                f, CODES[norm], batch, share, LANES, weight is not None, num_warps=16,
            )  # fmt: skip
            parts.append(out.sum(dim=0))
        return torch.cat(parts) * peak

    def edge_sums_backward(  # noqa: D102
        self, x: Tensor, norm: Norm, edges: Tensor, weight: Tensor, grad: Tensor
    ) -> Tensor:
        o = x.shape[0]
        return _edge_backward(x, norm, edges.expand(o, -1, -1), weight, grad.contiguous().expand(o, -1))

    def observation_edges(self, x: Tensor, norm: Norm, edges: Tensor) -> Tensor:  # noqa: D102
        o, _, f = x.shape
        size = edges.shape[1]
        block = min(128, max(16, triton.next_power_of_2(size)))
        blocks = triton.cdiv(size, block)
        out, scale = x.new_empty(o, size, dtype=torch.float64), scale_of(x, norm)
        edge_kernels.own[(o * blocks,)](
            x, scale, edges, out, size, blocks, *x.stride(), *edges.stride(), f, CODES[norm], block
        )
        return out * scale

    def observation_edges_backward(self, x: Tensor, norm: Norm, edges: Tensor, grad: Tensor) -> Tensor:  # noqa: D102
        return _edge_backward(x, norm, edges, torch.ones_like(grad[:, 0]), grad.contiguous())


def _locate(parts: Parts) -> tuple[Tensor, int, int, int]:
    """One tensor, how much further the second of two begins than its features would, and the features of one and both.

    Kernels reach both by one pointer where they have the same strides; other parts are copied side by side.
    """
    x, f = parts[0], sum(part.shape[2] for part in parts)
    # Pointers are not known while torch.compile traces.
    if len(parts) == 2 and x.stride() == parts[1].stride() and not torch.compiler.is_compiling():
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


def _turn_back(turned: Tensor, n: int, f: int) -> Tensor:
    return turned[:, :f, :n].transpose(1, 2)


def _split(slopes: Tensor, parts: Parts) -> Parts:
    return slopes.split([part.shape[2] for part in parts], dim=-1)


def group_edges(edges: Tensor, n: int, near: int, share: int, batch: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Order edges so that a stretch of them touches ``near`` second agents, in groups with one first agent.

    Without reading anything back from the device: the number of groups is the largest it could be, and what is not
    needed is filled with edges from an agent to itself.

    Returns:
        First agents ``[groups]``, second agents ``[groups * share]``, the order of the edges ``[m]`` and the place
        of each among the second agents. ``batch`` divides the number of groups.
    """
    m = edges.shape[0]
    key, order = torch.sort(edges[:, 1] // near * n + edges[:, 0])
    i, j = edges[order].int().unbind(1)
    place = torch.arange(m, device=edges.device)
    most = m
    if share > 1:
        starts = torch.ones_like(key, dtype=torch.bool)
        starts[1:] = key[1:] != key[:-1]
        length = place - torch.where(starts, place, 0).cummax(0).values + 1
        filling = -length % share
        filling[:-1] *= starts[1:]
        place = place + filling.cumsum(0) - filling
        most += (share - 1) * min(m, n * triton.cdiv(n, near))
    groups = triton.cdiv(triton.cdiv(most, share), batch) * batch
    first = i.new_zeros(groups).scatter_(0, place // share, i)
    second = first.repeat_interleave(share).scatter_(0, place, j)
    return first, second, order, place


_GROUPS = WeakTensorKeyDictionary()  # a graph that is measured again need not be sorted again


def _grouped(edges: Tensor, *key: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if edges.is_inference():  # such a tensor does not count its changes
        return group_edges(edges, *key)
    version, known = _GROUPS.get(edges, (None, {}))
    if version != edges._version:  # new, or written to since, which makes it another graph
        known = {}
        _GROUPS[edges] = (edges._version, known)
    if key not in known:
        known[key] = group_edges(edges, *key)
    return known[key]


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
