from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import distributions as D
from torch import nn

import graphsnd as gs
from tests import oracles

RNG = np.random.default_rng(7)
LOC = torch.from_numpy(RNG.normal(size=(5, 3, 2)))
SCALE = torch.from_numpy(RNG.uniform(0.2, 1.0, size=(5, 3, 2)))
LOGITS = torch.from_numpy(RNG.normal(size=(5, 3, 4)))
MASK = torch.tensor([False, True, True, True])


@pytest.fixture(scope="module")
def rl():  # type: ignore[no-untyped-def]
    """TorchRL takes seconds to import, so only the tests that need it do."""
    return pytest.importorskip("torchrl.modules")


def same(one: gs.Behavior, two: gs.Behavior, **tolerance: float) -> None:
    assert type(one) is type(two)
    assert (one.agents, one.batch_shape) == (two.agents, two.batch_shape)
    torch.testing.assert_close(gs.pairwise(one), gs.pairwise(two), **(tolerance or {"rtol": 1e-12, "atol": 0}))


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: D.Independent(d, 1)])
def test_normal(wrap) -> None:  # type: ignore[no-untyped-def]
    same(gs.from_distribution(wrap(D.Normal(LOC, SCALE))), gs.Gaussian(LOC, SCALE))


def test_multivariate_normal() -> None:
    covariance = torch.diag_embed(SCALE) + 0.1
    same(gs.from_distribution(D.MultivariateNormal(LOC, covariance)), gs.MultivariateGaussian(LOC, covariance))
    factor = SCALE.unsqueeze(-1)
    low_rank = D.LowRankMultivariateNormal(LOC, factor, SCALE)
    expected = gs.MultivariateGaussian(LOC, factor @ factor.mT + torch.diag_embed(SCALE))
    same(gs.from_distribution(low_rank), expected)


@pytest.mark.parametrize("family", [D.Categorical, D.OneHotCategorical])
def test_categorical(family) -> None:  # type: ignore[no-untyped-def]
    same(gs.from_distribution(family(logits=LOGITS)), gs.Categorical(logits=LOGITS))
    probs = torch.softmax(LOGITS, -1)
    same(gs.from_distribution(family(probs=probs)), gs.Categorical(probs=probs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bernoulli(dtype: torch.dtype) -> None:
    logits = LOC[..., 0].to(dtype).requires_grad_()
    behavior = gs.from_distribution(D.Bernoulli(logits=logits))
    assert (behavior.agents, behavior.observations) == (3, 5)
    p = 1 / (1 + np.exp(-LOC[..., 0].numpy()))
    expected = oracles.distances(3, 5, lambda o, i, j: abs(p[o, i] - p[o, j]))
    rtol = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(gs.pairwise(behavior).detach().numpy(), expected, rtol=rtol)
    expected = oracles.distances(
        3, 5, lambda o, i, j: oracles.hellinger(np.array([1 - p[o, i], p[o, i]]), np.array([1 - p[o, j], p[o, j]]))
    )
    np.testing.assert_allclose(gs.pairwise(behavior, gs.Hellinger()).detach().numpy(), expected, rtol=rtol)
    gs.snd(behavior).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("family", [D.Categorical, D.OneHotCategorical, D.Bernoulli])
def test_several_discrete_actions_are_not_taken_for_agents(family) -> None:  # type: ignore[no-untyped-def]
    # [observations, agents, components, categories] once gave the SND of as many "agents" as there are components.
    logits = LOC if family is D.Bernoulli else torch.stack([LOGITS, -LOGITS], dim=2)
    behavior = gs.from_distribution(D.Independent(family(logits=logits), 1))
    parts = [gs.from_distribution(family(logits=part)) for part in logits.unbind(2)]
    assert (behavior.agents, behavior.observations) == (3, 5)
    torch.testing.assert_close(gs.pairwise(behavior), (gs.pairwise(parts[0]) + gs.pairwise(parts[1])) / 2)
    with pytest.raises(gs.InputError, match=r"agents, actions"):
        gs.from_distribution(D.Independent(family(logits=logits[0, 0]), 1))


PARTS = {"move": D.Normal(LOC, SCALE), "grip": D.Categorical(logits=LOGITS)}
WEIGHTS = {"move": 1.0, "grip": 3.0}


def mixed_oracle() -> np.ndarray:
    p = oracles.softmax(LOGITS.numpy())
    points = torch.cat([LOC, SCALE], dim=-1).numpy()
    return oracles.distances(
        3,
        5,
        lambda o, i, j: (
            (oracles.euclidean(points[o, i], points[o, j]) + 3 * oracles.total_variation(p[o, i], p[o, j])) / 4
        ),
    )


def test_dicts_and_lists_of_distributions() -> None:
    behaviors = [
        gs.from_distribution(PARTS, weights=WEIGHTS),
        gs.from_distribution(list(PARTS.values()), weights=[1, 3]),
        gs.from_distribution((PARTS["move"], gs.Categorical(logits=LOGITS)), weights=[1, 3]),
        gs.from_distribution({"all": PARTS["move"], "hand": {"grip": PARTS["grip"]}}, weights=[1, 3]),
    ]
    for behavior in behaviors:
        np.testing.assert_allclose(gs.pairwise(behavior).numpy(), mixed_oracle(), rtol=1e-12)
    tanh = {"move": D.TransformedDistribution(PARTS["move"], [D.TanhTransform()]), "grip": PARTS["grip"]}
    before = gs.from_distribution(tanh, weights=WEIGHTS, squashed=False)
    np.testing.assert_allclose(gs.pairwise(before).numpy(), mixed_oracle(), rtol=1e-12)


def test_composite_distribution(rl) -> None:  # type: ignore[no-untyped-def]
    td = pytest.importorskip("tensordict")
    from tensordict.nn import CompositeDistribution

    held = {"move": {"loc": LOC, "scale": SCALE}, ("hand", "grip"): {"logits": LOGITS}}
    families = {"move": rl.IndependentNormal, ("hand", "grip"): rl.OneHotCategorical}
    composite = CompositeDistribution(td.TensorDict(held, [5, 3]), families)
    behavior = gs.from_distribution(composite, weights={"move": 1, "hand.grip": 3})
    np.testing.assert_allclose(gs.pairwise(behavior).numpy(), mixed_oracle(), rtol=1e-12)
    with pytest.raises(gs.InputError, match=r"`weights`.*wasserstein, total-variation.*'hand.grip': 1.0"):
        gs.from_distribution(composite)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", ["MaskedCategorical", "MaskedOneHotCategorical"])
def test_categoricals_masked_by_indices(rl, name: str, padded: bool) -> None:  # type: ignore[no-untyped-def]
    # They hold the probabilities of the allowed actions only: entry 0 is another action for each agent.
    allowed = torch.from_numpy(np.stack([RNG.permutation(4)[:2] for _ in range(15)])).reshape(5, 3, 2)
    p = np.zeros((5, 3, 4))
    for o, i in np.ndindex(5, 3):
        kept = allowed[o, i].numpy()
        p[o, i, kept] = oracles.softmax(LOGITS[o, i].numpy()[kept])
    expected = oracles.distances(3, 5, lambda o, i, j: oracles.total_variation(p[o, i], p[o, j]))
    options = {"padding_value": -1} if padded else {}
    indices = torch.cat([allowed, torch.full((5, 3, 1), -1)], dim=-1) if padded else allowed
    behavior = gs.from_distribution(getattr(rl, name)(logits=LOGITS, indices=indices, **options))
    np.testing.assert_allclose(gs.pairwise(behavior).numpy(), expected, rtol=1e-6)


def test_torchrl_categoricals(rl) -> None:  # type: ignore[no-untyped-def]
    logits = LOGITS.float()
    plain, masked = gs.Categorical(logits=logits), gs.Categorical(logits=logits, mask=MASK)
    tolerance = {"rtol": 1e-5, "atol": 1e-6}
    same(gs.from_distribution(rl.OneHotCategorical(logits=logits)), plain, **tolerance)
    every = MASK.expand(logits.shape)
    same(gs.from_distribution(rl.MaskedCategorical(logits=logits, mask=every)), masked, **tolerance)
    same(gs.from_distribution(rl.MaskedOneHotCategorical(logits=logits, mask=every)), masked, **tolerance)


def tanh_oracle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    z = oracles.GRID
    loc, scale = LOC.numpy()[..., None], SCALE.numpy()[..., None]
    middle, half = ((high + low) / 2)[:, None], ((high - low) / 2)[:, None]
    quantiles = middle + half * np.tanh(loc + scale * z)
    return oracles.distances(3, 5, lambda o, i, j: oracles.wasserstein_product(quantiles[o, i], quantiles[o, j]))


@pytest.mark.parametrize("event_dims", [0, 1])
@pytest.mark.parametrize(("low", "high"), [([-1.0, -1.0], [1.0, 1.0]), ([-2.0, 0.0], [3.0, 0.5])])
def test_tanh_normal(rl, low: list[float], high: list[float], event_dims: int) -> None:  # type: ignore[no-untyped-def]
    bounds = torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)
    d = rl.TanhNormal(LOC, SCALE, low=bounds[0], high=bounds[1], event_dims=event_dims)
    measured = gs.pairwise(gs.from_distribution(d))
    np.testing.assert_allclose(measured.numpy(), tanh_oracle(np.array(low), np.array(high)), rtol=1e-6)
    same(gs.from_distribution(d, squashed=False), gs.Gaussian(LOC, SCALE))


def test_tanh_normal_gradient(rl) -> None:  # type: ignore[no-untyped-def]
    def value(loc: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return gs.snd(gs.from_distribution(rl.TanhNormal(loc, scale, low=-2.0, high=1.0, safe_tanh=False)))

    assert torch.autograd.gradcheck(value, (LOC[:1].clone().requires_grad_(), SCALE[:1].clone().requires_grad_()))


COARSE = "nodes are too coarse"


class Squashed(nn.Module):
    """A tanh-squashed Gaussian, alone or as a part of the action."""

    def __init__(self, scale: float, *, part: bool) -> None:
        super().__init__()
        self.scale, self.part = nn.Parameter(torch.tensor(scale)), part

    def forward(self, seen: torch.Tensor) -> object:
        base = D.Normal(seen, self.scale.expand_as(seen), validate_args=False)
        squashed = D.TransformedDistribution(base, [D.TanhTransform()], validate_args=False)
        return {"move": squashed, "look": base} if self.part else squashed


@pytest.mark.parametrize("part", [False, True])
def test_any_module_of_a_list_is_warned_of(part: bool) -> None:
    seen = torch.randn(40, 3)

    def measure(scales: list[float], **options: Any) -> float:
        team = gs.teams.as_team([Squashed(scale, part=part) for scale in scales], **options)
        sampled = gs.measure(team, seen, design="matching:2", seed=0)
        assert team.batched  # type: ignore[attr-defined]
        return sampled.value

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure([0.1, 6.5, 1.0])
        measure([0.1, 20.0, 1.0], squashed=False)
    with pytest.warns(UserWarning, match=f"64 {COARSE}.*off by about [5-9].%"):
        measure([0.1, 20.0, 1.0])
    with pytest.warns(UserWarning, match=COARSE):
        gs.measure([Squashed(scale, part=part) for scale in (0.1, 20.0, 1.0)], seen)  # under torch.no_grad
    with pytest.warns(UserWarning, match=f"64 {COARSE}.*off by about [5-9].%"):
        gs.evaluate([Squashed(scale, part=part) for scale in (0.1, 20.0, 1.0)], seen)


def test_delta(rl) -> None:  # type: ignore[no-untyped-def]
    same(gs.from_distribution(rl.Delta(LOC)), gs.Deterministic(LOC))
    same(gs.from_distribution(rl.TanhDelta(LOC)), gs.Deterministic(LOC.tanh()), rtol=1e-6, atol=0)
    same(gs.from_distribution(rl.TanhDelta(LOC), squashed=False), gs.Deterministic(LOC))


def check_chunks(build, **options: bool) -> None:  # type: ignore[no-untyped-def]
    """On one observation, squared 2-Wasserstein distances of independent steps add up."""
    loc, scale = LOC[None], SCALE[None]  # 5 agents, 3 steps, 2 actions
    chunks = build(loc, scale)
    behavior = gs.from_distribution(D.Independent(chunks, 2 - len(chunks.event_shape)), **options)
    assert (behavior.agents, behavior.observations) == (5, 1)
    steps = [gs.from_distribution(build(loc[:, :, at], scale[:, :, at]), **options) for at in range(3)]
    expected = torch.stack([gs.pairwise(step) for step in steps]).square().sum(0).sqrt()
    torch.testing.assert_close(gs.pairwise(behavior), expected, rtol=1e-6, atol=1e-12)


CHUNKS = {
    "normal": D.Normal,
    "tanh": lambda loc, scale: D.TransformedDistribution(D.Normal(loc, scale), [D.TanhTransform()]),
    "tanh-outside": lambda loc, scale: D.TransformedDistribution(
        D.Independent(D.Normal(loc, scale), loc.dim() - 2), [D.TanhTransform()]
    ),
    "beta": lambda loc, scale: D.Beta(loc.exp(), scale),
    "laplace": D.Laplace,
    "multivariate": lambda loc, scale: D.MultivariateNormal(loc, torch.diag_embed(scale) + 0.1),
    "low-rank": lambda loc, scale: D.LowRankMultivariateNormal(loc, scale.unsqueeze(-1), scale),
}


@pytest.mark.parametrize("squashed", [True, False])
@pytest.mark.parametrize("name", CHUNKS)
def test_several_event_dimensions_are_one_action(name: str, squashed: bool) -> None:
    # [observations, agents, horizon, actions] once gave the SND of as many "agents" as there are steps.
    check_chunks(CHUNKS[name], squashed=squashed)


@pytest.mark.parametrize("name", ["TanhNormal", "TruncatedNormal", "Delta", "TanhDelta"])
def test_several_event_dimensions_of_torchrl_families(rl, name: str) -> None:  # type: ignore[no-untyped-def]
    check_chunks(lambda *given: getattr(rl, name)(*given[: 1 if "Delta" in name else 2]))


def test_independent_normal_and_truncated_normal(rl) -> None:  # type: ignore[no-untyped-def]
    same(gs.from_distribution(rl.IndependentNormal(LOC, SCALE)), gs.Gaussian(LOC, SCALE))
    d = rl.TruncatedNormal(LOC, SCALE, low=-1.0, high=1.0)
    measured = float(gs.snd(gs.from_distribution(d)))
    loc, scale = d.base_dist.loc.numpy()[..., None], d.base_dist.scale.numpy()[..., None]
    u = stats.norm.cdf(oracles.GRID)
    quantiles = stats.truncnorm.ppf(u, (-1 - loc) / scale, (1 - loc) / scale, loc=loc, scale=scale)
    matrix = oracles.distances(3, 5, lambda o, i, j: oracles.wasserstein_product(quantiles[o, i], quantiles[o, j]))
    assert measured == pytest.approx(oracles.snd(matrix), rel=1e-4)  # TorchRL's own icdf is no better


SCIPY = {
    "laplace": (lambda: D.Laplace(LOC, SCALE), lambda u: stats.laplace.ppf(u, LOC[..., None], SCALE[..., None])),
    "gumbel": (lambda: D.Gumbel(LOC, SCALE), lambda u: stats.gumbel_r.ppf(u, LOC[..., None], SCALE[..., None])),
    "exponential": (lambda: D.Exponential(SCALE), lambda u: stats.expon.ppf(u, scale=1 / SCALE[..., None])),
    "uniform": (lambda: D.Uniform(LOC, LOC + SCALE), lambda u: stats.uniform.ppf(u, LOC[..., None], SCALE[..., None])),
    "log-normal": (
        lambda: D.LogNormal(LOC, SCALE),
        lambda u: stats.lognorm.ppf(u, SCALE[..., None], scale=LOC.exp()[..., None]),
    ),
    "weibull": (
        lambda: D.Weibull(SCALE, SCALE + 1),
        lambda u: stats.weibull_min.ppf(u, SCALE[..., None] + 1, scale=SCALE[..., None]),
    ),
    "half-normal": (lambda: D.HalfNormal(SCALE), lambda u: stats.halfnorm.ppf(u, scale=SCALE[..., None])),
    # Its transforms decrease, so the quantiles come out in reverse.
    "kumaraswamy": (
        lambda: D.Kumaraswamy(SCALE + 1, SCALE + 0.5),
        lambda u: (1 - (1 - u) ** (1 / (SCALE[..., None].numpy() + 0.5))) ** (1 / (SCALE[..., None].numpy() + 1)),
    ),
}


@pytest.mark.parametrize("name", SCIPY)
def test_families_with_quantile_functions(name: str) -> None:
    build, quantile = SCIPY[name]
    measured = gs.pairwise(gs.from_distribution(D.Independent(build(), 1)))
    grid = np.clip(stats.norm.cdf(oracles.GRID), 1e-16, 1 - 1e-15)
    values = np.asarray(quantile(grid))
    expected = oracles.distances(3, 5, lambda o, i, j: oracles.wasserstein_product(values[o, i], values[o, j]))
    np.testing.assert_allclose(measured.numpy(), expected, rtol=2e-6)


def test_a_mirror_image_of_itself_is_no_difference() -> None:
    # x -> -x for one agent only: quantiles at the same level must be compared, not the images of the same level.
    normal = D.Normal(torch.zeros(1, 2, 1, dtype=torch.float64), 1.0)
    mirrored = D.TransformedDistribution(normal, [D.AffineTransform(0.0, torch.tensor([[1.0], [-1.0]]))])
    assert float(gs.snd(gs.from_distribution(mirrored))) < 1e-8


def test_beta_gradient_in_float32_near_one() -> None:
    # In float32 the upper quantiles round to 1, where Beta(1e5, 1) has no density to divide by.
    a = torch.tensor([[[1e5], [2e5]]], requires_grad=True)
    gs.snd(gs.from_distribution(D.Beta(a, torch.ones(1, 2, 1)))).backward()
    assert a.grad is not None
    assert a.grad.isfinite().all()
    assert a.grad.abs().min() > 0


@pytest.mark.filterwarnings("ignore:Quantiles at 64 nodes")  # at 0.02, where they are as differentiable
@pytest.mark.parametrize("scale", [0.02, 0.3, 30.0, 3000.0])
def test_beta_gradcheck(scale: float) -> None:
    a = (scale * torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)).requires_grad_()
    b = (scale * torch.tensor([[[2.0], [1.5]]], dtype=torch.float64)).requires_grad_()
    value = lambda a, b: gs.snd(gs.from_distribution(D.Beta(a, b, validate_args=False)))  # noqa: E731
    assert torch.autograd.gradcheck(value, (a, b), eps=1e-6 * scale, rtol=1e-4, atol=1e-7 / scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("family", [D.Laplace, D.LogNormal, D.Gumbel])
def test_low_precision_parameters(family, dtype: torch.dtype) -> None:  # type: ignore[no-untyped-def]
    loc, scale = LOC.to(dtype), SCALE.to(dtype)
    measured = gs.snd(gs.from_distribution(family(loc, scale)))
    exact = gs.snd(gs.from_distribution(family(loc.double(), scale.double())))
    assert measured.dtype == torch.float32
    tolerance = 1e-5 if dtype == torch.float32 or family is D.Laplace else 2e-2
    assert float(measured) == pytest.approx(float(exact), rel=tolerance)


def test_heavy_tails_of_finite_variance() -> None:
    a, b = 6.0, 9.0
    d = D.Pareto(torch.ones(1, 2, 1, dtype=torch.float64), torch.tensor([[[a], [b]]], dtype=torch.float64))
    # Quantiles are (1 - u)^(-1 / a), and the integral of (1 - u)^-c is 1 / (1 - c).
    expected = 1 / (1 - 2 / a) + 1 / (1 - 2 / b) - 2 / (1 - 1 / a - 1 / b)
    assert gs.snd(gs.from_distribution(d)).item() == pytest.approx(expected**0.5, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_variance_that_overflows_is_not_infinite(dtype: torch.dtype) -> None:
    most = torch.finfo(dtype).max ** 0.75
    d = D.Laplace(torch.zeros(1, 2, 1, dtype=dtype), torch.tensor([[[most], [most / 2]]], dtype=dtype))
    assert d.variance.isinf().any()
    scales = d.scale.double().flatten()  # W2 of two that differ in scale by s is s times the standard deviation of one
    expected = float(2**0.5 * (scales[0] - scales[1]))
    assert gs.snd(gs.from_distribution(d)).item() == pytest.approx(expected, rel=1e-3)
