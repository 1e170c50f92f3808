"""The difference estimator: unbiased by simulation, and better where agents stand out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.estimation.control import _cross_fit, _Sample, difference_estimate

N, DRAWS = 24, 500
DESIGNS = {
    "uniform": lambda g: gs.graphs.uniform(N, 40, seed=g),
    "few": lambda g: gs.graphs.uniform(N, 5, seed=g),
    "bernoulli": lambda g: gs.graphs.bernoulli(N, 0.2, seed=g),
}


def outlying(observations: int = 2) -> gs.Behavior:
    """Most agents alike, a few far out."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(observations, N, 2))
    x[:, :3] *= 10
    return gs.Deterministic(torch.from_numpy(x))


@pytest.mark.parametrize("coefficient", [0.0, 0.7, 1.0, "cross-fit"])
@pytest.mark.parametrize("design", DESIGNS)
def test_unbiased_and_covered(design: str, coefficient: float | str) -> None:
    behavior, generator = outlying(), torch.Generator().manual_seed(0)
    truth = float(gs.snd(behavior))
    found = [
        difference_estimate(behavior, DESIGNS[design](generator), coefficient=coefficient, seed=generator)
        for _ in range(DRAWS)
    ]
    values = np.array([f.value for f in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(DRAWS)
    assert np.mean([f.interval[0] <= truth <= f.interval[1] for f in found]) >= 0.95 - 3 * math.sqrt(0.05 / DRAWS)
    errors = np.sqrt(np.mean([f.standard_error**2 for f in found]))
    # Cross-fitting has less variance than its residuals suggest: each fit also sees its own half in part.
    assert 0.85 * values.std() < errors < (1.15 if coefficient != "cross-fit" else 1.45) * values.std()


def test_cross_fitting_is_exactly_unbiased_where_a_common_fit_is_not() -> None:
    # All samples of 4 of 6 pairs and all splits into halves: the expectation itself.
    sums = torch.from_numpy(np.random.default_rng(1).exponential(size=6))
    distances = (sums - 0.3) ** 2 / 9
    fitted, pooled = [], []
    for chosen in itertools.combinations(range(6), 4):
        index = torch.tensor(chosen)
        sample = _Sample(distances[index], sums[index], float(sums.mean()), 6)
        slope = sample.slope()
        pooled.append(float(sample.residuals(slope).mean()) + slope * sample.mean)
        for half in itertools.combinations(range(4), 2):
            others = torch.tensor([k for k in range(4) if k not in half])
            fitted.append(_cross_fit(sample.take(torch.tensor(half)), sample.take(others), 9.0, 0.1)[0])
    truth = float(distances.mean())
    assert np.mean(fitted) == pytest.approx(truth, rel=1e-12)
    assert abs(np.mean(pooled) / truth - 1) > 0.01


@pytest.mark.parametrize("coefficient", [1.0, "cross-fit"])
@pytest.mark.parametrize("design", ["uniform", "bernoulli"])
def test_variance_falls_where_agents_stand_out(design: str, coefficient: float | str) -> None:
    behavior, generator = outlying(), torch.Generator().manual_seed(2)
    plain, better = [], []
    for _ in range(200):
        graph = DESIGNS[design](generator)
        plain.append(gs.measure(behavior, graph).value)
        better.append(difference_estimate(behavior, graph, coefficient=coefficient, seed=generator).value)
    assert np.var(better) < np.var(plain) / 5


def test_a_zero_coefficient_is_the_plain_mean() -> None:
    behavior, graph = outlying(), gs.graphs.uniform(N, 40)
    plain, found = gs.measure(behavior, graph), difference_estimate(behavior, graph, coefficient=0.0)
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
    assert (found.target, found.pairs_used) == ("SND", 40)


def test_regular_graphs_have_nothing_to_correct() -> None:
    graph = gs.graphs.random_regular(N, 3)
    effects = torch.rand(N, generator=torch.Generator().manual_seed(0))
    assert float(effects[graph.edges].sum(dim=1).mean()) == pytest.approx(2 * float(effects.mean()), rel=1e-6)
    with pytest.raises(gs.InputError, match=r"`graph`.*simple random sample.*need no correction"):
        difference_estimate(outlying(), graph)


@pytest.mark.parametrize("coefficient", [0.5, "cross-fit"])
def test_all_pairs_are_exact(coefficient: float | str) -> None:
    behavior = outlying()
    found = difference_estimate(behavior, gs.graphs.uniform(N, N * (N - 1) // 2), coefficient=coefficient)
    assert found.value == pytest.approx(float(gs.snd(behavior)), rel=1e-12)
    assert found.standard_error == 0
    assert found.exact


def test_other_distances_and_few_edges() -> None:
    team = gs.Categorical(logits=torch.randn(5, N, 3, generator=torch.Generator().manual_seed(0)))
    graph = gs.graphs.uniform(N, 2)
    for distance in (None, gs.Hellinger(), gs.JensenShannon()):
        found = difference_estimate(team, graph, distance=distance)
        assert found.interval[0] <= found.value <= found.interval[1] <= (distance or gs.TotalVariation()).maximum
        assert "cross-fitted" in found.method


@pytest.mark.parametrize(("call", "message"), [
    (lambda: difference_estimate(outlying(), gs.graphs.cliques([0] * N)), "`graph`.*simple random sample"),
    (lambda: difference_estimate(outlying(), gs.graphs.uniform(N, 1)), "`graph`.*at least 2 edges"),
    (lambda: difference_estimate(outlying(), gs.graphs.uniform(5, 3)), "`graph`.*24 agents"),
    (lambda: difference_estimate(outlying(), gs.graphs.uniform(N, 9), coefficient=1.5), r"`coefficient`.*\[0, 1\]"),
    (lambda: difference_estimate(outlying(), gs.graphs.uniform(N, 9), coefficient="best"), "`coefficient`.*cross-fit"),
])  # fmt: skip
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(gs.InputError, match=message):
        call()
