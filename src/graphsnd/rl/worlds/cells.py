"""Search for pairs of close points without looking at all pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

CELLS = 2**20  # a point further out than this many cells shares the outermost one: slow, never wrong
WIDER = 1 + 1e-6  # so that rounding decides nothing at the rim; callers test distances themselves


def near_pairs(points: Tensor, group: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Return all pairs of points of the same group at distance at most ``reach``.

    Points are sorted by square cells of side ``reach``, row by row, so that the partners of a point lie in two runs of
    the sorted list: the rest of its own row of cells, and three cells of the next row. Time and memory follow the
    number of points and of pairs in neighbouring cells.

    Args:
        points: ``[M, 2]`` on the CPU; the number of pairs depends on the data, so a GPU would have to wait for it.
        group: int64 ``[M]``, from 0; usually the environment.
        reach: A distance above 0.

    Returns:
        Two int64 tensors of indices, the lower one of each pair first. A pair that is further apart by less than a
        millionth of ``reach`` may be among them.

    Example:
        >>> low, high = near_pairs(torch.tensor([[0.0, 0.0], [0.3, 0.0], [2.0, 0.0]]), torch.zeros(3).long(), 0.5)
        >>> low.tolist(), high.tolist()
        ([0], [1])
    """
    if len(points) < 2:
        return group[:0], group[:0]
    # A NaN or an agent far away has a cell too: a broken team must not hide pairs or exhaust the memory.
    cell = (points.double() / (reach * WIDER)).floor_().nan_to_num_(0.0).clamp_(-CELLS, CELLS).long()
    cell -= cell.amin(0)
    columns, rows = (cell.amax(0) + 3).tolist()
    keys, order = ((group * rows + cell[:, 1]) * columns + cell[:, 0] + 1).sort(stable=True)
    here = torch.arange(len(keys))
    start_of = _index_starts(keys, (int(group.max()) + 1) * rows * columns)
    begin = torch.cat([here + 1, start_of(keys + (columns - 1))])
    end = torch.cat([start_of(keys + 2), start_of(keys + (columns + 2))])
    first, second = _expand_runs(here.repeat(2), begin, end)
    a, b = order.index_select(0, first), order.index_select(0, second)
    x, y = points.unbind(1)
    dx, dy = subtract_rows(x.contiguous(), a, b), subtract_rows(y.contiguous(), a, b)
    close = dx.square_() + dy.square_() <= (reach * WIDER) ** 2
    a, b = a.masked_select(close), b.masked_select(close)
    return torch.minimum(a, b), torch.maximum(a, b)


def subtract_rows(values: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return ``values[a] - values[b]``; selecting from one dimension is several times faster than indexing rows."""
    return values.index_select(0, a) - values.index_select(0, b)


def _index_starts(keys: Tensor, size: int) -> Callable[[Tensor], Tensor]:
    """Return a function that says where a key begins in the sorted ``keys``: by a table while small, else by search."""
    if size > 16 * len(keys) + 4096:
        return partial(torch.searchsorted, keys)
    table = torch.zeros(size + 1, dtype=torch.long)
    torch.cumsum(torch.bincount(keys, minlength=size), 0, out=table[1:])
    return partial(torch.index_select, table, 0)


def _expand_runs(owner: Tensor, begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Write out ``begin .. end-1`` beside its owner, for all owners in a row."""
    counts = end - begin
    before = counts.cumsum(0) - counts
    which = torch.repeat_interleave(counts)
    return owner.index_select(0, which), torch.arange(len(which)) + (begin - before).index_select(0, which)
