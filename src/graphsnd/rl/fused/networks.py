"""Stacked networks as one differentiable function of their weights."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd.kernels.gpu.ahead import launch
from graphsnd.rl.fused import programs
from graphsnd.rl.fused.tiling import Even, Sorted

ROWS = 64  # rows of a tile of gathered rows
STEP = 32  # features of the input taken at a time; inputs are padded to a multiple
COLUMNS = 64  # hidden features of the second layer made at a time
TALL = 128  # rows of a tile of an elementwise program
SPAN, FEW = 512, 4  # rows of a program, and those it takes at a time
TAKEN, MANY = 16, 2048  # rows, and numbers, that a program copies
SPLIT = 4096  # rows that one product of a weight's gradient sums over
EXACT = os.environ.get("TRITON_INTERPRET") == "1"


class Weights(NamedTuple):
    """Weights of all networks, in the order in which autograd gives gradients back."""

    w1: Tensor  # [networks, in, H], float32
    b1: Tensor  # [networks, H]
    w2: Tensor  # [networks, H, H]
    b2: Tensor
    w3: Tensor  # [networks, H, out]
    b3: Tensor


class Networks(torch.autograd.Function):
    """Stacked networks of ``x``, ``[rows, K]`` in bfloat16, or in float32 for products in TF32.

    Outputs are float32, ``[networks, rows, out]`` or ``[tiles * size, out]``.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, tiling: Even | Sorted, kind: int, keep: bool, *weights: Tensor) -> Tensor:  # noqa: D102
        w = Weights(*weights)
        count, features, hidden = w.w1.shape
        width, outputs = x.shape[1], w.w3.shape[2]
        wide = x.dtype == torch.float32
        first, second = _round_weights(w.w1, width, x.dtype), _round_weights(w.w2, hidden, x.dtype)
        third = w.w3.mT.to(x.dtype).contiguous()
        even = isinstance(tiling, Even)
        rows = tiling.networks * tiling.rows if isinstance(tiling, Even) else len(tiling.index)
        kept = [x.new_empty(rows if keep else 1, hidden) for _ in range(2)]
        # A request that was left out reads the first row, which may not have been written.
        out = (torch.empty if even else torch.zeros)(rows, outputs, device=x.device)
        constants, options = _shape_tiles(isinstance(tiling, Even) and tiling.rows > ROWS, wide=wide, keep=keep)
        size = constants["ROWS"]
        where, grid, gather = _place(tiling, x, size)
        extra = (tiling.rows, tiling.group, tiling.tiles(size)) if isinstance(tiling, Even) else (0, 1, 1)
        launch(
            programs.forward, grid,
            x, *where, first, w.b1, second, w.b2, third, w.b3, *kept, out, *extra,
            K=width, H=hidden, A=outputs, GATHER=gather, KEEP=keep, KIND=kind, WIDE=wide, EXACT=EXACT,
            STEP=STEP, COLUMNS=COLUMNS, OUT=triton.next_power_of_2(outputs), **constants, **options,
        )  # fmt: skip
        ctx.save_for_backward(x, second, third, *kept)
        ctx.tiling, ctx.kind, ctx.features = tiling, kind, features
        return out.view(count, -1, outputs) if even else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:  # noqa: D102
        x, second, third, h1, h2 = ctx.saved_tensors
        tiling: Even | Sorted = ctx.tiling
        wide = x.dtype == torch.float32
        slope = slopes[0].contiguous()
        count, outputs, hidden = third.shape
        d2 = torch.empty_like(h2)
        if isinstance(tiling, Even):
            spans, tall = (tiling.tiles(size) for size in (SPAN, TALL))
            s1, s2, s3 = (
                torch.empty(count, parts, each, hidden, device=x.device)
                for parts, each in ((tall, 1), (spans, 1), (spans, outputs))
            )
            launch(
                programs.backward_last, (count * spans,),
                third, h2, slope, d2, s2, s3, tiling.rows, spans, H=hidden, A=outputs,
                OUT=triton.next_power_of_2(outputs), KIND=ctx.kind, SPAN=SPAN, ROWS=FEW, num_warps=1,
            )  # fmt: skip
            # For TF32 the weights are stored transposed.
            d1 = torch.bmm(d2.view(count, -1, hidden), second if wide else second.mT).view(-1, hidden)
            launch(
                programs.through_activation, (count * tall, hidden // COLUMNS),
                h1, d1, s1, tiling.rows, tall, H=hidden, KIND=ctx.kind, ROWS=TALL, COLUMNS=COLUMNS, num_warps=4,
            )  # fmt: skip
            g1, g2 = _even(x, d1, tiling), _even(h1, d2, tiling, own=True)
            last, folded = slope.view(count, -1, outputs).sum(1), [part.sum(1) for part in (s1, s2, s3)]
        else:
            where, (tiles,), _ = _place(tiling, x, tiling.size)
            d1 = torch.empty_like(h1)
            s1, s2, s3 = (torch.empty(tiles, each, hidden, device=x.device) for each in (1, 1, outputs))
            launch(
                programs.backward, (tiles,),
                *where, third, second, h1, h2, slope, d1, d2, s1, s2, s3, H=hidden, A=outputs, KIND=ctx.kind,
                WIDE=wide, EXACT=EXACT, ROWS=tiling.size, COLUMNS=COLUMNS // 2 if wide else COLUMNS, num_warps=4,
                num_stages=2,
            )  # fmt: skip
            g1, g2 = _ragged(x, d1, tiling, gather=True), _ragged(h1, d2, tiling, gather=False)
            last = _ends(slope, tiling, count)
            folded = [_fold(part, tiling.starts, count).view(count, -1, hidden) for part in (s1, s2, s3)]
        bias1, bias2, g3 = folded
        return None, None, None, None, g1[:, : ctx.features], bias1.squeeze(1), g2, bias2.squeeze(1), g3.mT, last


def _shape_tiles(many: bool, *, wide: bool, keep: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Return tile sizes and compiler options of the forward program, the fastest measured on an H200.

    Tall tiles read weights half as often. In bfloat16, two programs that keep features do not fit on one
    multiprocessor; short tiles are then faster.
    """
    if many and wide:
        return {"ROWS": 2 * ROWS, "PARTS": 1 if keep else 2}, {"num_warps": 8, "num_stages": 2 if keep else 3}
    if many and not keep:
        return {"ROWS": 2 * ROWS, "PARTS": 2}, {"num_warps": 8, "num_stages": 3, "maxnreg": 128}
    return {"ROWS": ROWS, "PARTS": 1}, {"num_warps": 4, "num_stages": 2 if wide else 3}


def run_networks(x: Tensor, tiling: Even | Sorted, kind: int, *weights: Tensor) -> Tensor:
    """Apply :class:`Networks`. Hidden features are kept only where a gradient may be needed."""
    keep = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
    return Networks.apply(x, tiling, kind, keep, *weights)


def _place(tiling: Even | Sorted, x: Tensor, rows: int) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int], bool]:
    """Return index, network and end of tiles, the grid, and whether rows are gathered."""
    if isinstance(tiling, Even):
        return (x, x, x), (tiling.networks * tiling.tiles(rows),), False
    return (tiling.index, tiling.which, tiling.starts[-1:]), (len(tiling.which),), True


def round_rows(values: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return ``[..., count]`` rounded to bfloat16, or to TF32 for float32, filled up with zeros: ``[..., width]``."""
    count = values.shape[-1]
    out = torch.empty(*values.shape[:-1], width, dtype=dtype, device=values.device)
    block = min(MANY, triton.next_power_of_2(width))
    blocks, wide = triton.cdiv(width, block), dtype == torch.float32
    launch(
        programs.rounded, (out.numel() // width * blocks,),
        values.contiguous(), out, count, width, blocks, WIDE=wide, EXACT=EXACT, BLOCK=block,
        num_warps=4 if block == MANY else 1,
    )  # fmt: skip
    return out


def _round_weights(weights: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return ``[networks, in, out]`` in ``dtype``, ``in`` padded to ``width``; ``[networks, out, width]`` for TF32."""
    if dtype == torch.float32:
        return round_rows(weights.mT, width, dtype)
    outputs = weights.shape[2]
    return round_rows(weights.flatten(1), width * outputs, dtype).view(len(weights), width, outputs)


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Return rows ``index`` (int64 ``[runs, taken]``) of ``[runs, agents, rows, K]``: ``[runs, agents, taken, K]``."""
    runs, agents, rows, width = x.shape
    out = x.new_empty(runs, agents, index.shape[1], width)
    parts = triton.cdiv(index.shape[1], TAKEN)
    launch(
        programs.take, (runs * agents * parts,),
        x.contiguous(), index.contiguous(), out, rows, index.shape[1], agents, parts, K=width,
        WIDE=triton.next_power_of_2(width), ROWS=TAKEN, num_warps=1,
    )  # fmt: skip
    return out


def _even(x: Tensor, d: Tensor, tiling: Even, *, own: bool = False) -> Tensor:
    """Return ``x^T d`` of every network, in pieces that keep the whole GPU busy if there are few networks."""
    groups = tiling.networks if own else tiling.networks // tiling.group
    pieces = next(n for n in range(min(64, -(-tiling.rows // SPLIT)), 0, -1) if tiling.rows % n == 0)
    a = x.view(groups, pieces, -1, x.shape[1])
    if groups < tiling.networks:
        a = a.unsqueeze(1).expand(-1, tiling.group, -1, -1, -1)
    a = a.reshape(tiling.networks * pieces, -1, x.shape[1])
    b = d.view(tiling.networks * pieces, -1, d.shape[1])
    products = _float_products(a.transpose(1, 2), b)
    return products if pieces == 1 else products.view(tiling.networks, pieces, *products.shape[1:]).sum(1)


def _float_products(a: Tensor, b: Tensor) -> Tensor:
    if a.is_cuda and a.dtype == torch.bfloat16:
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())


def _ragged(x: Tensor, d: Tensor, tiling: Sorted, *, gather: bool) -> Tensor:
    count, width, hidden = len(tiling.starts) - 1, x.shape[1], d.shape[1]
    out = torch.empty(count, width, hidden, device=x.device)
    block = 64
    launch(
        programs.products, (count, triton.cdiv(width, block)),
        x, tiling.index, d, tiling.starts, out, K=width, H=hidden, GATHER=gather, ROWS=tiling.size, BLOCK=block,
        num_warps=4,
    )  # fmt: skip
    return out


def _fold(parts: Tensor, starts: Tensor, count: int) -> Tensor:
    width = parts[0].numel()
    out = torch.empty(count, width, device=parts.device)
    block = min(256, width & -width)
    launch(programs.fold, (count, width // block), parts, starts, out, WIDTH=block, num_warps=1)
    return out


def _ends(slope: Tensor, tiling: Sorted, count: int) -> Tensor:
    """Return the sum of the outputs' slopes for each network."""
    kept = torch.where(tiling.index.view(-1, 1) >= 0, slope, 0.0)
    return _fold(kept.view(-1, tiling.size, slope.shape[1]).sum(1), tiling.starts, count)
