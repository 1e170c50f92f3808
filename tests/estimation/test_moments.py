from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import pytest
import torch

import graphsnd as gs
from graphsnd.bounds.relabelling import relabelling_variance
from graphsnd.designs.design import Agents, Matching, Ring
from graphsnd.designs.template import Template
from graphsnd.estimation.moments import products, variances

DESIGNS: dict[str, Agents | Matching | Ring] = {
    "matching": Matching(),
    "two pairs": Matching(2),
    "ring": Ring(2),
    "double ring": Ring(4),
    "clique of 4": Agents(4),
    "clique of 3": Agents(3),
    "pair": Agents(2),
}


def matrix(n: int, seed: int = 0) -> torch.Tensor:
    points = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    points[0] *= 5  # an outlier: strong effects of single agents
    return torch.cdist(points, points)


def every_draw(distances: torch.Tensor, template: Template) -> torch.Tensor:
    """Distances along the template for all ordered subsets of the agents, ``[subsets, m]``."""
    n = len(distances)
    agents = torch.tensor(list(itertools.permutations(range(n), template.size)))
    i, j = agents[:, template.list_edges()].unbind(-1)
    return distances[i, j]


@pytest.mark.parametrize("n", [5, 6, 7])
@pytest.mark.parametrize("name", DESIGNS)
def test_the_mean_over_all_draws_is_snd(name: str, n: int) -> None:
    d, design = matrix(n), DESIGNS[name]
    template = design.draw(n)
    truth = float(d.sum()) / (n * (n - 1))
    assert float(every_draw(d, template).mean()) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("n", [5, 6, 7])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_pair_is_measured_with_the_inclusion_probability(name: str, n: int) -> None:
    template = DESIGNS[name].draw(n)
    for pair in [(0, 1), (1, n - 1)]:
        one = torch.zeros(n, n)
        one[pair] = one[pair[::-1]] = 1
        measured = every_draw(one, template).sum(dim=1)
        assert float(measured.max()) <= 1
        assert float(measured.mean()) == pytest.approx(template.m / math.comb(n, 2), rel=1e-6)


@pytest.mark.parametrize("n", [5, 6, 7])
@pytest.mark.parametrize("name", DESIGNS)
def test_variance_from_products_is_the_variance_over_all_draws(name: str, n: int) -> None:
    d, template = matrix(n), DESIGNS[name].draw(n)
    draws = every_draw(d, template)
    truth = float(draws.mean(dim=1).var(correction=0))
    degrees = torch.bincount(template.list_edges().flatten(), minlength=n)
    assert truth == pytest.approx(float(relabelling_variance(d, degrees)), rel=1e-9, abs=1e-12)
    assert truth <= template.factor(n) * float(d[torch.ones(n, n).triu(1).bool()].var(correction=0)) + 1e-12
    # Products measured on another template predict it as well.
    predict = partial(variances, n=n, edges=template.m, meeting=template.meeting)
    others = products(every_draw(d, Agents(4).draw(n)), Agents(4).draw(n))
    assert float(predict(others.mean(dim=0))) == pytest.approx(truth, rel=1e-9, abs=1e-12)
    own = products(draws, template)
    if len(own):
        assert float(predict(own.mean(dim=0))) == pytest.approx(truth, rel=1e-9, abs=1e-12)


def test_the_variance_for_so_many_agents_that_pairs_of_pairs_are_more_than_an_integer_holds() -> None:
    q, a, b, n, m, meeting = 3.0, 2.5, 2.25, 1_000_000, 28, 168
    pairs, touching = math.comb(n, 2), n * math.comb(n - 1, 2)

    def square(edges: int, meet: int) -> Fraction:
        apart = math.comb(edges, 2) - meet
        return (edges * Fraction(q) + 2 * meet * Fraction(a) + 2 * apart * Fraction(b)) / edges**2

    exact = float(square(m, meeting) - square(pairs, touching))
    found = variances(torch.tensor([q, a, b], dtype=torch.float64), n, m, meeting)
    assert float(found) == pytest.approx(exact, rel=1e-12)


def test_a_hundred_thousand_agents_are_measured() -> None:
    points = torch.randn(3, 100_000, 1, generator=torch.Generator().manual_seed(0))
    estimate = gs.measure(gs.Deterministic(points), design="agents:100", seed=0)
    assert estimate.value == pytest.approx(2 / math.sqrt(math.pi), abs=5 * estimate.standard_error)
    assert 0 < estimate.standard_error < 0.2


def test_a_specialist_whose_effect_cancels_leaves_an_error() -> None:
    """The unbiased variance of a ring is negative in a third of these draws, and was reported as an error of 0."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(12, 4, 2, generator=generator)
    weights[0] *= 50
    observations = torch.randn(40, 4, generator=generator)
    policies = [lambda seen, weight=weight: seen @ weight for weight in weights]
    truth = gs.measure(policies, observations).value
    estimates = [gs.measure(policies, observations, design="ring:4", seed=seed) for seed in range(60)]
    assert min(one.standard_error for one in estimates) > 0
    assert sum(one.interval[0] <= truth <= one.interval[1] for one in estimates) >= 57


def test_one_observation_leaves_an_error_too() -> None:
    points = torch.randn(1, 8, 2, generator=torch.Generator().manual_seed(0))
    points[0, 0] *= 50
    errors = [gs.measure(gs.Deterministic(points), design="ring:4", seed=seed).standard_error for seed in range(40)]
    assert min(errors) > 0
