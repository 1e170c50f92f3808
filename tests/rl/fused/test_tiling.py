"""Requests sorted into tiles: each one is in a tile of its own network, whatever is left out."""

from __future__ import annotations

import pytest
import torch

from graphsnd.rl.fused.tiling import Even, Sorted


@pytest.mark.parametrize(("count", "requests", "size"), [(3, 20, 4), (5, 7, 8), (1, 9, 2), (4, 1, 4), (50, 30, 4)])
def test_requests_are_in_tiles_of_their_network(count: int, requests: int, size: int) -> None:
    generator = torch.Generator().manual_seed(count)
    networks = torch.randint(0, count + 1, (requests,), generator=generator)  # ``count`` is left out
    rows = torch.randint(0, 100, (requests,), generator=generator)
    tiling = Sorted.sort(networks, rows, count, size=size)
    kept = (networks < count).nonzero().flatten().tolist()
    assert int((tiling.index >= 0).sum()) == len(kept)
    assert len({int(tiling.slots[request]) for request in kept}) == len(kept)
    for request in kept:
        slot = int(tiling.slots[request])
        assert int(tiling.index[slot]) == int(rows[request])
        tile = slot // size
        assert int(tiling.which[tile]) == int(networks[request])
        assert int(tiling.starts[networks[request]]) <= tile < int(tiling.starts[networks[request] + 1])


def test_even_tiles_cover_all_rows() -> None:
    assert [Even(2, rows).tiles(64) for rows in (1, 64, 65)] == [1, 1, 2]
