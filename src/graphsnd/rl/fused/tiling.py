"""Which rows belong to which network, in tiles of equal size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Even:
    """Every network has the same number of rows, and ``group`` consecutive networks read the same rows."""

    networks: int
    rows: int
    group: int = 1

    def tiles(self, size: int) -> int:
        """Return the number of tiles of one network."""
        return -(-self.rows // size)


@dataclass(frozen=True, eq=False)
class Sorted:
    """Requests sorted by network, each network's padded to whole tiles. Made without waiting for the device."""

    index: Tensor  # int64 [tiles * size], the row of the inputs; -1 for padding
    which: Tensor  # int64 [tiles], network of each tile
    starts: Tensor  # int64 [networks + 1], first tile of each network; the last is the number of tiles in use
    slots: Tensor  # int64 [requests], place of each request's output; 0 if it was left out
    size: int

    @classmethod
    def sort(cls, networks: Tensor, rows: Tensor, count: int, *, size: int) -> Sorted:
        """Sort requests by network.

        Args:
            networks: int64 ``[requests]``, which network; ``count`` for a request that is left out.
            rows: int64 ``[requests]``, which row of the inputs.
            count: Number of networks.
            size: Rows of a tile.

        Example:
            >>> Sorted.sort(torch.tensor([1, 0, 1]), torch.arange(3), 2, size=2).index
            tensor([ 1, -1,  0,  2, -1, -1, -1, -1])
        """
        device, requests = networks.device, len(networks)
        ordered, order = networks.sort(stable=True)
        ends = torch.searchsorted(ordered, torch.arange(count + 1, device=device))
        tiles = (ends.diff() + size - 1) // size
        starts = torch.cat([tiles.new_zeros(1), tiles.cumsum(0)])
        most = -(-requests // size) + min(count, requests)
        kept = ordered < count
        own = ordered.clamp_max(count - 1)
        place = starts[own] * size + torch.arange(requests, device=device) - ends[own]
        last = most * size  # place of requests that are left out; dropped below
        index = torch.full((last + 1,), -1, dtype=torch.int64, device=device)
        index.scatter_(0, torch.where(kept, place, last), torch.where(kept, rows[order], -1))
        slots = torch.empty_like(order).scatter_(0, order, torch.where(kept, place, 0))
        which = torch.searchsorted(starts[1:], torch.arange(most, device=device), right=True).clamp_max_(count - 1)
        return cls(index[:last], which, starts, slots, size)
