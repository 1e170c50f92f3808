"""Input that is extreme but valid gives the right number."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import graphsnd as gs
from tests.cases import CASES, QUADRATURE, Case, each

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each
def test_identical_agents_are_at_exactly_zero(case: Case, dtype: torch.dtype) -> None:
    observations = 40 if case in QUADRATURE else 1000  # so many that a compiled backend takes part where there is one
    parameters = [p[:, :1].repeat_interleave(7, dim=1) for p in case.parameters(dtype, observations=observations)]
    behavior = case.build(*parameters)
    assert gs.snd(behavior, case.distance) == 0
    assert not gs.pairwise(behavior, case.distance).any()
    assert gs.graph_snd(behavior, gs.graphs.uniform(7, 5), case.distance) == 0
    assert gs.bounds.diameter(behavior, case.distance) < 1e-6
    estimate = gs.measure(behavior, design=gs.graphs.uniform(7, 5), distance=case.distance)
    assert estimate.value == 0
    assert estimate.interval[0] == 0


SCALES = [1e-37, 1e-30, 1e-20, 1e-10, 1.0, 1e10, 1e20, 1e30, 1e37]


def family(name: str, values: torch.Tensor, scale: torch.Tensor) -> gs.Behavior:
    if name == "gaussian":
        return gs.Gaussian(values, scale)
    if name == "deterministic":
        return gs.Deterministic(values)
    if name == "one-action":
        return gs.Deterministic(values[..., :1])
    return gs.MultivariateGaussian(values.double(), torch.diag_embed(scale.double().square()))


@pytest.mark.parametrize("size", SCALES)
@pytest.mark.parametrize(
    ("name", "observations"),
    # A thousand observations are enough for a compiled backend to take part; full Gaussians have none.
    [(name, o) for name in ("gaussian", "deterministic", "one-action") for o in (2, 1000)] + [("full-gaussian", 2)],
)
def test_float32_scales(name: str, size: float, observations: int) -> None:
    rng = np.random.default_rng(0)
    loc = torch.from_numpy(rng.normal(size=(observations, 8, 3)) * size).float()
    scale = torch.from_numpy(rng.uniform(0.1, 1, size=(observations, 8, 3)) * size).float()
    found = family(name, loc, scale)
    # The oracle works on the same float32 values, brought to a size at which nothing can go wrong.
    expected = family(name, loc.double() / size, scale.double() / size)
    graph = gs.graphs.uniform(8, 9, seed=0)
    for measure in (
        gs.snd,
        gs.bounds.diameter,
        lambda b: gs.graph_snd(b, graph),
        lambda b: gs.measure(b, design=graph).value,
    ):
        assert float(measure(found)) / size == pytest.approx(float(measure(expected)), rel=1e-5)
    ratio = gs.pairwise(found).double() / size
    torch.testing.assert_close(ratio, gs.pairwise(expected).double(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_float64_scales(size: float) -> None:
    values = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]], dtype=torch.float64) * size
    assert float(gs.snd(gs.Deterministic(values))) == pytest.approx(5 * size, rel=1e-12)


@pytest.mark.parametrize(("dtype", "least"), [(torch.float32, 1e-19), (torch.float64, 1e-154)])
@pytest.mark.parametrize("largest", [1e-12, 1e-7, 1.0, 1e15])
@pytest.mark.parametrize("observations", [1, 4000], ids=["small", "compiled"])
def test_small_distances_beside_large_ones(dtype: torch.dtype, least: float, largest: float, observations: int) -> None:
    team, path = torch.zeros(observations, 3, 2, dtype=dtype), gs.Graph(3, torch.tensor([[0, 1]]))
    team[:, 2, 1] = largest
    for small in (least, 1e-5 * least):  # at the limit that docs/distances.md states, and past it
        team[:, 1, 0] = small * largest
        behavior, exact = gs.Deterministic(team), float(team[0, 1, 0])
        far = math.hypot(exact, largest)
        assert float(gs.snd(behavior)) == pytest.approx((exact + largest + far) / 3, rel=1e-6)
        close = [gs.pairwise(behavior)[0, 1], gs.graph_snd(behavior, path), gs.measure(behavior, design=path).value]
        lost = small < least
        assert all(0 <= float(one) <= 2 * exact if lost else abs(float(one) / exact - 1) < 1e-6 for one in close), close


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
def test_float32_gradient_does_not_depend_on_the_unit(size: float) -> None:
    x = torch.tensor([[[0.0, 0.0], [3.0, 4.0], [6.0, 1.0]]])
    slopes = []
    for unit in (1.0, size):
        scaled = (x * unit).requires_grad_()
        gs.snd(gs.Deterministic(scaled)).backward()
        assert scaled.grad is not None
        slopes.append(scaled.grad)
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("padding", [1e20, 3.4028234663852886e38, -3.4028234663852886e38])
@pytest.mark.parametrize("observations", [1, 4000], ids=["small", "compiled"])
def test_an_action_padded_with_a_huge_number_for_everybody(padding: float, observations: int) -> None:
    values = torch.zeros(observations, 4, 3)
    values[..., 0] = padding
    values[:, 1, 1] = 1.0
    assert float(gs.snd(gs.Deterministic(values))) == pytest.approx(0.5, rel=1e-5)
    assert float(gs.pairwise(gs.Deterministic(values))[0, 1]) == pytest.approx(1.0, rel=1e-5)


def test_largest_floats_of_opposite_sign() -> None:
    largest = torch.finfo(torch.float32).max
    values = torch.tensor([[[largest], [-largest]]])
    assert gs.measure(gs.Deterministic(values)).value == pytest.approx(2 * largest, rel=1e-6)


@each
def test_non_contiguous_views(case: Case) -> None:
    parameters = case.parameters(observations=4, agents=6)
    views = [p.transpose(0, 1).contiguous().transpose(0, 1)[::2, 1::2] for p in parameters]
    assert not any(v.is_contiguous() for v in views)
    behavior, copy = case.build(*views), case.build(*(v.contiguous() for v in views))
    assert torch.equal(gs.snd(behavior, case.distance), gs.snd(copy, case.distance))
    assert torch.equal(gs.pairwise(behavior, case.distance), gs.pairwise(copy, case.distance))
    graph = gs.graphs.uniform(3, 2)
    assert torch.equal(gs.graph_snd(behavior, graph, case.distance), gs.graph_snd(copy, graph, case.distance))


def test_expanded_views_have_a_gradient() -> None:
    actions = torch.tensor([[1.0], [2.0]], requires_grad=True)
    gs.snd(gs.Deterministic(actions.expand(50, 2, 1))).backward()
    assert actions.grad is not None
    assert actions.grad.flatten().tolist() == pytest.approx([-1.0, 1.0])


def test_certain_and_nearly_certain_choices() -> None:
    logits = torch.tensor([[[1e4, 0.0], [0.0, 1e4], [1e4, 1e4 - 1e-2]]])
    behavior = gs.Categorical(logits=logits)
    for distance, top in ((gs.TotalVariation(), 1.0), (gs.Hellinger(), 1.0), (gs.JensenShannon(), math.log(2) ** 0.5)):
        matrix = gs.pairwise(behavior, distance)
        assert float(matrix[0, 1]) == pytest.approx(top, rel=1e-6)
        assert matrix.isfinite().all()


def test_one_action_only() -> None:
    behavior = gs.Categorical(logits=torch.zeros(3, 4, 1))
    for distance in (gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()):
        assert gs.snd(behavior, distance) == 0


def test_auto_agrees_with_the_reference_on_a_larger_team() -> None:
    graph = gs.graphs.bernoulli(20, 0.5, seed=0)
    for case in CASES:
        behavior = case.behavior(observations=20 if case in QUADRATURE else 200, agents=20)
        for measure in (gs.snd, gs.pairwise, lambda b, d, backend: gs.graph_snd(b, graph, d, backend=backend)):
            fast = measure(behavior, case.distance, backend="auto")
            torch.testing.assert_close(fast, measure(behavior, case.distance, backend="reference"), rtol=1e-10, atol=0)
