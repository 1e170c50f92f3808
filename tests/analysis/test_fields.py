from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from tests.cases import Case, each


@each
def test_by_observation_is_snd_of_each_observation_alone(case: Case) -> None:
    parameters = case.parameters(observations=4)
    values = gs.by_observation(case.build(*parameters), case.distance)
    alone = [gs.snd(case.build(*(p[o : o + 1] for p in parameters)), case.distance) for o in range(4)]
    torch.testing.assert_close(values, torch.stack(alone))
    n = parameters[0].shape[1]
    assert float(values.mean()) == pytest.approx(case.oracle(*parameters).sum() / (n * (n - 1)), rel=1e-6)


def test_by_observation_keeps_the_layout_and_the_gradient() -> None:
    actions = torch.randn(2, 3, 4, 5, requires_grad=True)
    values = gs.by_observation(gs.Deterministic(actions))
    assert values.shape == (2, 3)
    values[1, 2].backward()
    assert actions.grad is not None
    assert actions.grad[1, 2].any()
    assert not actions.grad[0].any()


def loop(values: np.ndarray, places: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    counts, sums = np.zeros((bins, bins), int), np.zeros((bins, bins))
    low, high = places.min(0), places.max(0)
    for value, place in zip(values, places, strict=True):
        at = tuple(min(bins - 1, int(bins * part)) for part in (place - low) / (high - low))
        counts[at] += 1
        sums[at] += value
    with np.errstate(invalid="ignore"):
        return counts, sums / counts


def test_bins_are_those_of_a_loop_and_of_scipy(generator: torch.Generator) -> None:
    team = gs.Deterministic(torch.randn(20, 30, 5, 2, generator=generator, dtype=torch.float64))
    places = torch.randn(20, 30, 2, generator=generator, dtype=torch.float64)
    field = gs.bin_field(team, places, bins=7)
    values, flat = gs.by_observation(team).flatten().numpy(), places.reshape(-1, 2).numpy()
    counts, means = loop(values, flat, 7)
    np.testing.assert_array_equal(field.counts, counts)
    np.testing.assert_allclose(field.means, means, rtol=1e-12)
    scipys = stats.binned_statistic_2d(*flat.T, values, bins=7)
    np.testing.assert_allclose(field.means, scipys.statistic, rtol=1e-12)
    np.testing.assert_allclose(field.edges[0], scipys.x_edge)
    assert field.snd == pytest.approx(float(gs.snd(team)))
    few = field.counts < 16
    assert torch.equal(field.intervals.isnan().any(-1), few)


def test_intervals_of_episodes_cover(generator: torch.Generator) -> None:
    # Episodes shift all their observations together; who takes those for independent misses the truth.
    truth, missed, asked, naive = 3.0, 0, 0, 0
    for _ in range(200):
        shift = torch.randn(40, 1, generator=generator)
        values = truth + (shift + 0.3 * torch.randn(40, 20, generator=generator)).double()
        episodes = torch.arange(40).unsqueeze(1).expand(40, 20)
        places = torch.rand(40, 20, 2, generator=generator)
        for clusters in (episodes, None):
            field = gs.bin_field(
                values if clusters is not None else values.T.flatten(), places, bins=2, clusters=clusters
            )
            low, high = field.intervals.unbind(-1)
            wrong = int(((low > truth) | (high < truth)).sum())
            if clusters is None:
                naive += wrong
            else:
                missed, asked = missed + wrong, asked + low.numel()
    assert missed / asked < 0.075
    assert naive > missed


def test_where_the_team_differs_more_is_told() -> None:
    places = torch.rand(8000, 2, generator=torch.Generator().manual_seed(0))
    right = (places[:, :1] > 0.5).double()
    noise = 0.1 * torch.randn(8000, 3, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    team = gs.Deterministic(noise + right[:, None] * torch.tensor([[[0.0], [1.0], [2.0]]], dtype=torch.float64))
    assert gs.bin_field(team, places, bins=4).apart().tolist() == [[-1] * 4, [-1] * 4, [1] * 4, [1] * 4]


@pytest.mark.parametrize("confidence", [1e-300, 0.5, math.nextafter(1, 0)])
def test_intervals_at_every_confidence(confidence: float) -> None:
    field = gs.bin_field(torch.ones(32), torch.randn(32, 2), bins=1, confidence=confidence)
    assert field.intervals.tolist() == [[[1.0, 1.0]]]


def test_features_of_another_layout_are_refused(generator: torch.Generator) -> None:
    team, places = (
        gs.Deterministic(torch.randn(6, 5, 3, 2, generator=generator)),
        torch.rand(6, 5, 2, generator=generator),
    )
    for same in (places, places.flatten(0, 1), places.view(6, 1, 5, 2), places.view(2, 3, 5, 2)):
        assert torch.equal(gs.bin_field(team, same, bins=2).counts, gs.bin_field(team, places, bins=2).counts)
    with pytest.raises(gs.InputError, match=r"`features` laid out as the observations, \(6, 5\), got \(5, 6\)"):
        gs.bin_field(team, places.transpose(0, 1))
    with pytest.raises(gs.InputError, match=r"`clusters` .*\(6, 5\), got \(5, 6\)"):
        gs.bin_field(team, places, clusters=torch.zeros(5, 6).long())


def test_odd_places() -> None:
    team = gs.Deterministic(torch.randn(6, 3, 1))
    same = gs.bin_field(team, torch.full((6, 2), 3.0), bins=3)
    assert same.counts.tolist() == [[0, 0, 0], [0, 6, 0], [0, 0, 0]]
    huge = gs.bin_field(team, torch.tensor([[-1.7e308, 0], [1.7e308, 1]], dtype=torch.float64).repeat(3, 1), bins=2)
    assert huge.counts.tolist() == [[3, 0], [0, 3]]
    one = gs.bin_field(gs.Deterministic(torch.randn(1, 3, 1)), torch.zeros(1, 2), bins=1)
    assert one.counts.tolist() == [[1]]
    assert one.intervals.isnan().all()


@pytest.mark.parametrize(("features", "options", "name"), [
    (torch.zeros(6, 3), {}, "features"),
    (torch.zeros(5, 2), {}, "features"),
    (torch.full((6, 2), math.nan), {}, "features"),
    (torch.zeros(6, 2), {"bins": 0}, "bins"),
    (torch.zeros(6, 2), {"confidence": 1.0}, "confidence"),
    (torch.zeros(6, 2), {"clusters": torch.zeros(5).long()}, "clusters"),
])  # fmt: skip
def test_wrong_arguments(features: torch.Tensor, options: dict[str, object], name: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`"):
        gs.bin_field(gs.Deterministic(torch.randn(6, 3, 1)), features, **options)
