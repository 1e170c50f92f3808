from __future__ import annotations

import torch

from graphsnd.plots.clustering import behaviour_map


def test_the_map_keeps_distances_that_fit_into_the_plane() -> None:
    points = torch.randn(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = torch.cdist(points, points)
    drawn = torch.from_numpy(behaviour_map(matrix))
    torch.testing.assert_close(torch.cdist(drawn, drawn), matrix, atol=1e-6, rtol=1e-6)
