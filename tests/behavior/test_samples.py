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
from graphsnd.behavior.samples import length_constant
from graphsnd.kernels.pairfunctions import energy

M_DISTANCES = [gs.Wasserstein(), gs.Sliced(debias=True), gs.Energy(), gs.Energy(debias=True)]
M_DISTANCES += [gs.Sliced(pooled=True), gs.Sliced(debias=True, pooled=True), gs.Energy(debias=True, pooled=True)]


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
    energies = [stats.energy_distance(o[i, :, 0], o[j, :, 0]) for o in x for i, j in ((0, 1), (0, 2), (1, 2))]
    assert float(gs.snd(gs.Samples(x), gs.Energy())) == pytest.approx(np.mean(energies), rel=1e-12)


def mean_distance(x: np.ndarray, y: np.ndarray, *, own: bool) -> float:
    """A loop over samples; those of one agent with itself only between different samples."""
    pairs = [(a, b) for a in range(len(x)) for b in range(len(y)) if not own or a != b]
    return float(np.mean([np.linalg.norm(x[a] - y[b]) for a, b in pairs]))


def test_debiased_energy_is_the_u_statistic() -> None:
    x = draw(1, 2, 9, 1)
    x[:, 1] += 1
    one, two = x[0].numpy()
    squared = 2 * mean_distance(one, two, own=False) - sum(mean_distance(a, a, own=True) for a in (one, two))
    assert float(gs.snd(gs.Samples(x), gs.Energy(debias=True))) == pytest.approx(math.sqrt(squared), rel=1e-12)


def test_energy_along_many_directions_is_that_of_all_features() -> None:
    x = draw(1, 2, 12, 3)
    x[:, 1, :, 0] += 1
    one, two = x[0].numpy()
    squared = 2 * mean_distance(one, two, own=False) - sum(mean_distance(a, a, own=True) for a in (one, two))
    measured = float(gs.snd(gs.Samples(x), gs.Energy(debias=True, directions=30_000)))
    assert measured == pytest.approx(math.sqrt(squared), rel=3e-3)


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
    squares = [float(gs.snd(gs.Samples(x), gs.Sliced(debias=True, seed=seed))) ** 2 for seed in range(300)]
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
    """The squared energy distance; the squared distance of expected sorted halves, never above the closed form."""
    count, repetitions = 8, 20_000
    x = draw(repetitions, 2, count, 1, seed=3)
    x[:, 1] = shift + scale * x[:, 1]
    behavior = gs.Samples(x)

    def mean_and_error(distance: gs.Distance) -> tuple[float, float]:
        points = distance.embed(behavior)
        if isinstance(distance, gs.Sliced):
            one, two = (points.values[:, 0] - points.values[:, 1]).chunk(2, dim=-1)
            squares = (one * two).sum(-1)
        else:
            values = points.metric().values
            squares = energy(values[:, 0], values[:, 1], count).square() - points.values[..., -1].sum(-1)
        return float(squares.mean()), float(squares.std()) / math.sqrt(repetitions)

    square, error = mean_and_error(gs.Sliced(debias=True))
    truth = shift**2 + (scale - 1) ** 2
    smoothed = shift**2 + (scale - 1) ** 2 * float((expected_order_statistics(count // 2) ** 2).mean())
    assert smoothed <= truth
    assert abs(square - smoothed) < 4 * error

    def absolute(mean: float, sd: float) -> float:  # of a Gaussian number
        spread = sd * math.sqrt(2 / math.pi) * math.exp(-(mean**2) / 2 / sd**2)
        return spread + mean * math.erf(mean / sd / math.sqrt(2))

    energy_truth = 2 * absolute(shift, math.hypot(1, scale)) - absolute(0, math.sqrt(2)) * (1 + scale)
    square, error = mean_and_error(gs.Energy(debias=True))
    assert abs(square - energy_truth) < 4 * error


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
    for design in (None, "uniform:6", "ring:2", "agents:3"):
        if getattr(distance, "pooled", False) and design in ("ring:2", "agents:3"):
            continue  # draws that need several observations
        estimate = gs.measure(behavior, design=design, distance=distance)
        assert estimate.interval[0] - 1e-9 <= value.item() <= estimate.interval[1] + 1e-9
    value.backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert x.grad.abs().max() > 0
    torch.testing.assert_close(x.grad.sum(dim=(1, 2)), torch.zeros(6, 2, dtype=torch.float64))  # translations
    largest = gs.bounds.diameter(behavior, distance)
    assert matrix.max().item() <= largest


def test_joint_with_samples() -> None:
    behavior = gs.Samples(draw(6, 4, 8, 2))
    for distance in (gs.Energy(), gs.Sliced(debias=True)):
        joint = gs.Joint([behavior, behavior], distance=[distance, distance])
        torch.testing.assert_close(gs.snd(joint), gs.snd(behavior, distance))


def test_noise_floor_is_what_agents_that_act_alike_measure() -> None:
    for distance in (None, gs.Sliced(debias=True), gs.Energy(), gs.Energy(debias=True)):
        estimate = gs.measure(gs.Samples(draw(400, 6, 32, 1, seed=5)), distance=distance)
        assert estimate.noise_floor == pytest.approx(estimate.value, rel=0.1)
        assert f"; about {estimate.noise_floor:.3g} for agents that act alike" in str(estimate)
    assert gs.measure(gs.Samples(draw(4, 6, 1, 1))).noise_floor is None
    assert gs.measure(gs.Samples(draw(4, 6, 3, 1)), distance=gs.Energy(debias=True)).noise_floor is None
    assert gs.measure(gs.Deterministic(draw(40, 6, 2))).noise_floor is None


NOISES = {
    "normal": lambda x: x,
    "exponential": lambda x: -torch.special.ndtr(x).log(),
    "coin": lambda x: (x > 0).to(x.dtype),
}


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("samples", [2, 3, 4, 5, 7, 8, 16])
def test_noise_floor_of_any_number_of_samples(samples: int, kind: str) -> None:
    behavior = gs.Samples(NOISES[kind](draw(600, 6, samples, 1, seed=5)))
    for distance, most in ((gs.Wasserstein(), 0.12 if samples >= 8 else 0.2), (gs.Energy(), 0.1)):
        estimate = gs.measure(behavior, distance=distance)
        assert estimate.noise_floor == pytest.approx(estimate.value, rel=most)


def test_noise_floor_depends_neither_on_the_order_of_samples_nor_on_global_randomness() -> None:
    samples = draw(200, 6, 16, 1)
    before = torch.get_rng_state()
    floors = [gs.measure(gs.Samples(s)).noise_floor for s in (samples, samples.sort(dim=-2).values, samples)]
    assert floors[1] == pytest.approx(floors[0], rel=0.05)
    assert floors[2] == floors[0]
    torch.testing.assert_close(torch.get_rng_state(), before)


def test_noise_floor_splits_part_of_many_samples_and_all_that_are_pooled(monkeypatch) -> None:
    sizes = []
    split = gs.Samples._split
    monkeypatch.setattr(gs.Samples, "_split", lambda self, size: sizes.append(self.observations) or split(self, size))
    few = gs.measure(gs.Samples(draw(3000, 6, 4, 1)))
    assert sizes == [682, 682]  # halves and quarters of 4,092 agents at observations
    assert few.noise_floor == pytest.approx(few.value, rel=0.1)
    gs.measure(gs.Samples(draw(3000, 6, 4, 1)), distance=gs.Energy(pooled=True))
    assert sizes[2:] == [3000]


def test_noise_floor_of_a_joint_is_what_agents_that_act_alike_measure() -> None:
    first, second = (gs.Samples(scale * draw(400, 6, 32, 1, seed=seed)) for scale, seed in ((1.0, 5), (3.0, 6)))
    same = gs.Deterministic(torch.ones(400, 6, 2))
    inner = gs.Joint([first, same])
    for parts in ([first, second], [first, same], [inner, second]):
        estimate = gs.measure(gs.Joint(parts, weights=[1, 2]))
        assert estimate.noise_floor == pytest.approx(estimate.value, rel=0.1)
    energy = gs.measure(gs.Joint([first, second]), distance=gs.Energy())
    assert energy.noise_floor == pytest.approx(energy.value, rel=0.1)
    assert gs.measure(gs.Joint([first, gs.Samples(draw(400, 6, 1, 1))])).noise_floor is None  # one sample has no halves
    assert gs.measure(gs.Joint([same, same])).noise_floor is None


def test_noise_floor_of_agents_that_always_do_the_same_is_zero() -> None:
    assert gs.measure(gs.Samples(torch.ones(5, 3, 8, 1))).noise_floor == 0
    assert gs.measure(gs.Samples(torch.ones(3, 8, 1)), distance=gs.Sliced(debias=True)).noise_floor == 0


def test_threads_change_no_bit() -> None:
    behavior = gs.Samples(draw(300, 3, 6, 2).float())
    before, values = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        values.append([gs.pairwise(behavior, distance) for distance in M_DISTANCES])
    torch.set_num_threads(before)
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


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: gs.Samples(torch.zeros(3, 2)), r"`samples`.*\(..., agents, samples, features\)"),
        (lambda: gs.Samples(torch.zeros(3, 2, 0, 1)), "`samples`"),
        (lambda: gs.Samples(torch.zeros(0, 2, 3, 1)), "`samples`"),
        (lambda: gs.Samples(torch.full((3, 2, 4, 1), torch.nan)), "`samples`"),
        (lambda: gs.Samples(torch.zeros(3, 2, 4, 1).int()), "floating"),
        (lambda: gs.snd(gs.Samples(torch.zeros(3, 2, 1, 1)), gs.Energy(debias=True)), "at least 2 of each agent"),
        (lambda: gs.snd(gs.Samples(torch.zeros(3, 1, 4, 1))), "at least 2 agents"),
        (lambda: gs.snd(gs.Deterministic(torch.zeros(3, 2, 1)), gs.Energy()), "draw_samples"),
        (lambda: gs.snd(gs.Samples(torch.zeros(3, 2, 4, 1)), gs.Hellinger()), "`distance`"),
        (lambda: gs.Sliced(directions=0), "`directions`"),
        (lambda: gs.Energy(debias=2), "`debias`"),  # type: ignore[arg-type]
    ],
)
def test_refusals(call, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(gs.InputError, match=match):
        call()


def test_length_constant_is_the_inverse_mean_coordinate() -> None:
    for features in (2, 3, 4, 9):
        # The first coordinate u has density proportional to (1 - u^2)^((F - 3)/2).
        u = np.sin(np.linspace(0, np.pi / 2, 200_001))
        weight = np.sqrt(1 - u**2) ** (features - 2)
        assert length_constant(features) == pytest.approx(weight.sum() / (u * weight).sum(), rel=1e-4)
