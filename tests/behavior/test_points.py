from __future__ import annotations

import torch

from graphsnd.behavior import Norm, Points


def test_sizes_and_slices() -> None:
    points = Points(torch.zeros(5, 3, 2), Norm.EUCLIDEAN)
    assert (points.observations, points.agents) == (5, 3)
    part = points.slice(1, 3)
    assert (part.observations, part.norm) == (2, Norm.EUCLIDEAN)
    assert part.values.data_ptr() == points.values[1].data_ptr()


def test_center_is_the_mean_agent() -> None:
    values = torch.arange(12.0).reshape(2, 3, 2)
    assert torch.equal(Points(values, Norm.EUCLIDEAN).center().values, values.mean(dim=1, keepdim=True))


def test_center_of_the_largest_floats_does_not_overflow() -> None:
    values = torch.full((1, 4, 1), 3e38)
    assert torch.equal(Points(values, Norm.EUCLIDEAN).center().values, values[:, :1])
