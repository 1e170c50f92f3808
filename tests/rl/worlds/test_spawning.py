from __future__ import annotations

import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.rl.worlds import Navigation
from graphsnd.rl.worlds.spawning import scatter_apart


def one_by_one(generator: torch.Generator, count: int, apart: float) -> torch.Tensor:
    """Draw again until it fits, one point after the other."""
    placed: list[torch.Tensor] = []
    while len(placed) < count:
        point = torch.rand(2, generator=generator) * 2 - 1
        if all(torch.linalg.vector_norm(point - other) >= apart for other in placed):
            placed.append(point)
    return torch.stack(placed)


@pytest.mark.parametrize(
    ("count", "half", "apart"), [(2, (1.0, 1.0), 0.3), (20, (1.0, 1.0), 0.25), (40, (3, 0.5), 0.2)]
)
def test_everything_keeps_its_distance(count: int, half: tuple[float, float], apart: float) -> None:
    points = scatter_apart(0, 30, count, half, apart)
    assert points.shape == (30, count, 2)
    assert (points.abs() <= torch.tensor(half)).all()
    assert min(float(torch.pdist(one).min()) for one in points) >= apart * (1 - 1e-6)
    assert len({float(one[0, 0]) for one in points}) == 30


def test_it_has_the_law_of_drawing_one_by_one() -> None:
    # How crowded the k-th point is, is what a wrong order of acceptance would change.
    count, apart, draws = 10, 0.4, 200
    generator = torch.Generator().manual_seed(0)
    slow = torch.stack([one_by_one(generator, count, apart) for _ in range(draws)])
    fast = scatter_apart(1, 4 * draws, count, (1.0, 1.0), apart)
    for statistic in (
        lambda x: x[:, -1].abs().amax(-1),
        lambda x: torch.cdist(x[:, -1:], x[:, :-1]).amin(2).squeeze(1),
    ):
        a, b = statistic(slow), statistic(fast)
        error = (a.var() / len(a) + b.var() / len(b)).sqrt()
        assert abs(float(a.mean() - b.mean())) < 4 * float(error)


@pytest.mark.parametrize("agents", [15, 18])
def test_a_full_world_still_fills(agents: int) -> None:
    state = Navigation(agents, 8).spawn(0)
    everything = torch.cat([state.positions, state.targets], 1)
    assert min(float(torch.pdist(one).min()) for one in everything) >= 0.25 * (1 - 1e-6)


@pytest.mark.parametrize("agents", [35, 60])
def test_what_cannot_fit_is_named(agents: int) -> None:
    with pytest.raises(InputError, match="world_spawning_x"):
        Navigation(agents, 2).spawn(0)
