"""Samples of policies: distances against scipy and loops, what the corrections leave, and what is refused."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.optimize import linear_sum_assignment

import graphsnd as gs
from graphsnd.kernels.threads import limit_threads

M_DISTANCES = [gs.Wasserstein(), gs.Sliced(directions=3, seed=1), gs.Sliced(debias=True)]


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_one_feature_against_scipy(count: int) -> None:
    x = draw(4, 3, count, 1)
    assert float(gs.snd(gs.Samples(x))) == pytest.approx(
        np.mean([
            np.sqrt(np.mean((np.sort(o[i, :, 0]) - np.sort(o[j, :, 0])) ** 2))
            for o in x.numpy() for i, j in ((0, 1), (0, 2), (1, 2))
        ]), rel=1e-12,
    )  # fmt: skip


def test_debiased_square_is_the_product_of_halves() -> None:
    """Of every split on average: against all splits of 4 samples of each agent, by a loop."""
    x = draw(1, 2, 4, 1)
    x[:, 1] += 2
    one, two = x[0, :, :, 0].numpy()
    products = []
    for half in combinations(range(4), 2):
        rest = [k for k in range(4) if k not in half]
        a, b = (np.sort(one[list(k)]) - np.sort(two[list(k)]) for k in (half, rest))
        products.append(float((a * b).mean()))
    roots = [float(gs.snd(gs.Samples(x), gs.Sliced(debias=True, seed=seed))) for seed in range(1000)]
    squares = [root * abs(root) for root in roots]
    assert np.mean(squares) == pytest.approx(np.mean(products), rel=0.02)
    assert min(products) - 1e-9 <= min(squares)
    assert max(squares) <= max(products) + 1e-9


def test_sliced_is_exact_for_translations_and_never_more_than_wasserstein() -> None:
    x = draw(5, 1, 20, 3).expand(5, 2, 20, 3).clone()
    shift = torch.tensor([1.0, -2.0, 2.0], dtype=torch.float64)
    x[:, 1] += shift
    for directions in (None, 3, 6):
        assert float(gs.snd(gs.Samples(x), gs.Sliced(directions=directions))) == pytest.approx(3, rel=1e-12)
    y = draw(1, 2, 30, 2, seed=1) * torch.tensor([1.0, 0.2])
    y[:, 1] = y[:, 1].flip(-1)
    costs = torch.cdist(y[0, 0], y[0, 1]).square().numpy()
    exact = math.sqrt(costs[linear_sum_assignment(costs)].mean())
    assert 0.5 * exact < float(gs.snd(gs.Samples(y))) <= exact
    # One sample is an action.
    z = draw(6, 4, 1, 3)
    assert float(gs.snd(gs.Samples(z))) == pytest.approx(float(gs.snd(gs.Deterministic(z[:, :, 0]))), rel=1e-12)


def expected_order_statistics(m: int) -> np.ndarray:
    """Of m standard normal numbers, by quadrature."""
    grid = np.linspace(-9, 9, 40_001)
    density, level = stats.norm.pdf(grid), stats.norm.cdf(grid)
    of_rank = [density * stats.beta.pdf(level, k, m - k + 1) for k in range(1, m + 1)]
    return np.array([integrate.trapezoid(grid * each, grid) for each in of_rank])


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.5, 2.0)])
def test_what_is_unbiased(shift: float, scale: float) -> None:
    """The squared distance of expected sorted halves, never above the closed form."""
    count, repetitions = 8, 20_000
    x = draw(repetitions, 2, count, 1, seed=3)
    x[:, 1] = shift + scale * x[:, 1]
    behavior = gs.Samples(x)

    def mean_and_error(distance: gs.Distance) -> tuple[float, float]:
        values = behavior.embed(distance).values
        one, two = (values[:, 0] - values[:, 1]).chunk(2, dim=-1)
        squares = (one * two).sum(-1)
        return float(squares.mean()), float(squares.std()) / math.sqrt(repetitions)

    square, error = mean_and_error(gs.Sliced(debias=True))
    truth = shift**2 + (scale - 1) ** 2
    smoothed = shift**2 + (scale - 1) ** 2 * float((expected_order_statistics(count // 2) ** 2).mean())
    assert smoothed <= truth
    assert abs(square - smoothed) < 4 * error


@pytest.mark.parametrize(("features", "samples"), [(1, 2), (1, 9), (2, 16), (32, 8), (384, 4)])
def test_agents_that_act_alike_measure_around_zero(features: int, samples: int) -> None:
    x = draw(4000 if features < 32 else 200, 2, samples, features, seed=features).exp()  # skewed
    values = gs.metric.by_observation(gs.Samples(x), "sliced-debiased")
    error = float(values.std()) / math.sqrt(len(values))
    assert abs(float(values.mean())) < 4 * error
    assert float(gs.snd(gs.Samples(x), "sliced")) > 20 * error


def test_corrected_distances_of_both_signs_are_within_their_bound() -> None:
    behavior = gs.Samples(draw(5, 6, 4, 2))
    for whole in (behavior, gs.Joint([behavior], distance=["sliced-debiased"])):
        values = gs.pairwise(whole, "sliced-debiased")
        assert values.min() < 0 < values.max()
        assert float(values.abs().max()) <= gs.bounds.diameter(whole, "sliced-debiased")


@pytest.mark.parametrize("distance", M_DISTANCES)
@pytest.mark.parametrize("features", [1, 2, 5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_identical_samples_are_at_distance_zero(distance: gs.Distance, features: int, dtype: torch.dtype) -> None:
    x = draw(3, 1, 10, features).to(dtype).expand(3, 4, 10, features)
    assert float(gs.snd(gs.Samples(x), distance)) == 0
    if not getattr(distance, "debias", False):  # the order of samples does not count
        assert float(gs.snd(gs.Samples(torch.cat([x, x.flip(2)], dim=1)), distance)) == 0


@pytest.mark.parametrize("distance", M_DISTANCES)
def test_backends_designs_and_gradients(distance: gs.Distance) -> None:
    x = (draw(6, 5, 8, 2) + torch.arange(5).view(5, 1, 1)).requires_grad_()
    behavior = gs.Samples(x)
    value = gs.snd(behavior, distance)
    matrix = gs.pairwise(behavior, distance)
    upper = torch.triu_indices(5, 5, 1)
    torch.testing.assert_close(matrix[tuple(upper)].mean(), value)
    torch.testing.assert_close(gs.graph_snd(behavior, gs.graphs.complete(5), distance=distance), value)
    assert gs.measure(behavior, distance=distance).value == pytest.approx(value.item(), rel=1e-12)
    for design in ("uniform:6", "ring:2", "agents:3"):
        if isinstance(distance, gs.Sliced) and distance.debias:  # may be negative, so it bounds no pair left out
            with pytest.raises(gs.InputError, match="Measure all pairs"):
                gs.measure(behavior, design=design, distance=distance)
        else:
            low, high = gs.measure(behavior, design=design, distance=distance).interval
            assert low - 1e-9 <= value.item() <= high + 1e-9
    value.backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert x.grad.abs().max() > 0
    torch.testing.assert_close(x.grad.sum(dim=(1, 2)), torch.zeros(6, 2, dtype=torch.float64))  # translations
    largest = gs.bounds.diameter(behavior, distance)
    assert matrix.max().item() <= largest


def test_joint_with_samples() -> None:
    behavior = gs.Samples(draw(6, 4, 8, 2))
    for distance in (gs.Sliced(), gs.Sliced(debias=True)):
        joint = gs.Joint([behavior, behavior], distance=[distance, distance])
        torch.testing.assert_close(gs.snd(joint), gs.snd(behavior, distance))


def test_threads_change_no_bit() -> None:
    behavior = gs.Samples(draw(300, 3, 6, 2).float())
    values = []
    for threads in (1, 2):
        with limit_threads(threads):
            values.append([gs.pairwise(behavior, distance) for distance in M_DISTANCES])
    assert all(torch.equal(one, two) for one, two in zip(*values, strict=True))


def test_gradients_after_inference_mode() -> None:
    samples = torch.randn(2, 3, 4, 9, dtype=torch.float64)  # of as many features as in no other test
    with torch.inference_mode():
        gs.snd(gs.Samples(samples))
    gs.snd(gs.Samples(samples.requires_grad_())).backward()
    assert samples.grad is not None
    assert samples.grad.any()


def test_layouts() -> None:
    x = draw(2, 3, 4, 8, 2)
    behavior = gs.Samples(x)
    assert (behavior.agents, behavior.observations, behavior.batch_shape) == (4, 6, torch.Size([2, 3]))
    torch.testing.assert_close(gs.snd(behavior), gs.snd(gs.Samples(x.flatten(0, 1))))
    assert float(gs.snd(gs.Samples(x[0, 0]))) > 0  # one observation without its axis
    strided = x.transpose(0, 1).transpose(-1, -2).contiguous().transpose(-1, -2)
    torch.testing.assert_close(gs.snd(gs.Samples(strided)), gs.snd(behavior))
    named = gs.Samples({"a": x[..., 0, :, :], "b": x[..., 1, :, :]})
    assert named.names == ("a", "b")
    torch.testing.assert_close(gs.snd(named), gs.snd(gs.Samples(x[..., :2, :, :])))
