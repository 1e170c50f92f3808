from __future__ import annotations

import pytest
import torch

from graphsnd.behavior.points import JoinedPoints, Norm, Points


def test_center_is_the_mean_agent() -> None:
    values = torch.arange(12.0).reshape(2, 3, 2)
    assert torch.equal(Points(values, Norm.EUCLIDEAN).center().values, values.mean(dim=1, keepdim=True))


def test_center_of_the_largest_floats_does_not_overflow() -> None:
    values = torch.full((1, 4, 1), 3e38)
    assert torch.equal(Points(values, Norm.EUCLIDEAN).center().values, values[:, :1])


def test_joined_points_are_copied_only_when_their_values_are_asked_for() -> None:
    parts = torch.zeros(5, 3, 2), torch.ones(5, 3, 1)
    points = JoinedPoints.join(parts, Norm.EUCLIDEAN)
    assert (points.observations, points.agents, points.features) == (5, 3, 3)
    assert points.parts is parts
    assert points.result_dtype == torch.float32
    assert "values" not in vars(points)
    assert torch.equal(points.values, torch.tensor([0.0, 0.0, 1.0]).expand(5, 3, 3))
    assert points.values is points.values
    assert torch.equal(points.slice(1, 3).values, points.values[1:3])
    with pytest.raises(AttributeError, match="weights"):
        points.weights  # noqa: B018
