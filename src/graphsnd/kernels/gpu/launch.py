"""The Triton backend's raw operations: grids, block sizes, and the order of edges."""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from graphsnd.behavior import Norm
from graphsnd.kernels.autograd import CODES
from graphsnd.kernels.gpu import edges as edge_kernels
from graphsnd.kernels.gpu import tiles
from graphsnd.kernels.pairfunctions import scale_of

SMALL_TEAM = 32  # agents that fit one tile together
PROGRAMS = 2048  # enough to fill any GPU several times over
LANES = 32  # observations side by side for edge totals: one cache line of float32
TRANSPOSED = 1 << 26  # elements of the transposed copy made for edge totals, at most


class Triton:
    """See :class:`graphsnd.kernels.autograd.RawOperations`."""

    def pair_totals(self, x: Tensor, norm: Norm) -> Tensor:  # noqa: D102
        o, n, f = x.shape
        if n <= SMALL_TEAM:
            out = x.new_empty(o, dtype=torch.float64)
            size = max(2, triton.next_power_of_2(n))
            batch = max(1, 2048 // size**2)
            grid = (triton.cdiv(o, batch),)
            tiles.totals_small[grid](x, out, o, n, *x.stride(), f, CODES[norm], batch, size)
            return out
        # Measured on an H200: small tiles waste less on the diagonal, large ones load less for each pair.
        size, warps, registers = (16, 1, 64) if n < 1000 else (32, 4, 80)
        parts = max(1, min(triton.cdiv(n, size), max(3, PROGRAMS // o)))
        out = x.new_empty(o, parts, dtype=torch.float64)
        tiles.totals[(o * parts,)](
            x, out, n, parts, *x.stride(), f, CODES[norm], size, size, num_warps=warps, maxnreg=registers
        )
        return out.sum(dim=1)

    def pair_totals_and_slopes(self, x: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:  # noqa: D102
        o, n, f = x.shape
        rows, columns, warps = 16, 16, 1
        blocks, groups = triton.cdiv(n, rows), triton.cdiv(f, 4)
        out = x.new_empty(o, blocks, dtype=torch.float64)
        slopes = torch.empty(o, n, f, dtype=x.dtype, device=x.device)
        tiles.totals_and_slopes[(o * blocks * groups,)](
            x, out, slopes, n, blocks, groups, *x.stride(), f, CODES[norm], rows, columns, num_warps=warps
        )
        return out.sum(dim=1) / 2, slopes

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
        rows, columns, warps = 16, 16, 1
        blocks, groups = triton.cdiv(n, rows), triton.cdiv(f, 4)
        out = torch.empty(o, n, f, dtype=x.dtype, device=x.device)
        tiles.matrix_backward[(o * blocks * groups,)](
            x, scale_of(x, norm), weight.contiguous(), grad.to(x.dtype).contiguous(), out, n, blocks, groups,
            *x.stride(), f, CODES[norm], rows, columns, num_warps=warps,
        )  # fmt: skip
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
