from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import graphsnd as gs

DRAWS = 400


def team(n: int, seed: int = 0, observations: int = 2) -> gs.Behavior:
    """Two roles with a little noise: the distances are near 0 or near 1, which is where intervals are hard to get."""
    rng = np.random.default_rng(seed)
    actions = (np.arange(n) % 2)[:, None] + 0.01 * rng.normal(size=(observations, n, 1))
    return gs.Deterministic(torch.from_numpy(actions))


DESIGNS = {
    "bernoulli": lambda n, g: gs.graphs.bernoulli(n, 0.2, seed=g),
    "uniform": lambda n, g: gs.graphs.uniform(n, n, seed=g),
    "many": lambda n, g: gs.graphs.uniform(n, n * (n - 1) // 3, seed=g),
    "random_regular": lambda n, g: gs.graphs.random_regular(n, 1, seed=g),  # the bound does not look at the degree
}


@pytest.mark.parametrize("confidence", [0.5, 0.9])
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_the_exact_value(design: str, confidence: float) -> None:
    n = 60
    behavior = team(n)
    truth = float(gs.snd(behavior))
    generator = torch.Generator().manual_seed(0)
    covered, narrow = 0, 0
    for _ in range(DRAWS):
        estimate = gs.measure(behavior, design=DESIGNS[design](n, generator), confidence=confidence)
        low, high = estimate.interval
        assert low <= estimate.value <= high
        assert estimate.target == "SND"
        covered += low <= truth <= high
        narrow += abs(truth - estimate.value) <= (high - low) / 40
    slack = 3 * math.sqrt(confidence * (1 - confidence) / DRAWS)
    assert covered / DRAWS >= confidence - slack
    # A twentieth of the width does not cover, so the test above could have failed.
    assert narrow / DRAWS < confidence - slack


@pytest.mark.parametrize("design", ["bernoulli", "uniform", "many"])
def test_standard_error_is_the_spread_over_draws(design: str) -> None:
    n = 60
    behavior = team(n)
    generator = torch.Generator().manual_seed(1)
    found = [gs.measure(behavior, design=DESIGNS[design](n, generator)) for _ in range(DRAWS)]
    spread = np.std([e.value for e in found], ddof=1)
    assert np.mean([e.standard_error for e in found]) == pytest.approx(spread, rel=0.15)


def test_standard_error_is_conservative_for_regular_graphs() -> None:
    n = 60
    behavior = team(n)
    generator = torch.Generator().manual_seed(1)
    found = [gs.measure(behavior, design=gs.graphs.random_regular(n, 4, seed=generator)) for _ in range(DRAWS)]
    assert np.mean([e.standard_error for e in found]) > 0.85 * np.std([e.value for e in found], ddof=1)


def test_asymptotic_interval_covers_with_many_edges() -> None:
    n, confidence = 40, 0.9
    behavior = team(n)
    truth = float(gs.snd(behavior))
    generator = torch.Generator().manual_seed(2)
    covered = 0
    for _ in range(DRAWS):
        low, high = gs.measure(
            behavior, design=gs.graphs.uniform(n, 200, seed=generator), confidence=confidence
        ).asymptotic_interval
        covered += low <= truth <= high
    assert covered / DRAWS == pytest.approx(confidence, abs=4 * math.sqrt(confidence * (1 - confidence) / DRAWS))


def test_one_edge() -> None:
    behavior = team(6)
    for graph in (gs.graphs.uniform(6, 1), gs.graphs.random_regular(2, 1)):
        estimate = gs.measure(team(graph.n), design=graph)
        assert math.isfinite(estimate.standard_error)
        assert estimate.interval[0] <= estimate.value <= estimate.interval[1]
    # One edge shows no spread; the error must not look like certainty.
    assert gs.measure(behavior, design=gs.graphs.uniform(6, 1)).standard_error > 0.1


def test_the_interval_is_clipped_to_what_the_measured_pairs_leave_possible() -> None:
    # 5 of 6 pairs seen: the last one lies between 0 and the diameter.
    behavior = team(4)
    graph = gs.graphs.uniform(4, 5, seed=0)
    estimate = gs.measure(behavior, design=graph, confidence=0.999)
    share, d_max = 5 / 6, gs.bounds.diameter(behavior)
    assert estimate.interval[0] == pytest.approx(share * estimate.value)
    assert estimate.interval[1] == pytest.approx(share * estimate.value + (1 - share) * d_max)


def test_higher_confidence_is_wider() -> None:
    behavior, graph = team(60), gs.graphs.uniform(60, 600)
    widths = [np.ptp(gs.measure(behavior, design=graph, confidence=c).interval) for c in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_methods_are_named() -> None:
    behavior = team(60)
    assert "Serfling" in gs.measure(behavior, design=gs.graphs.uniform(60, 60)).method
    assert "regular" in gs.measure(behavior, design=gs.graphs.random_regular(60, 4)).method
    # Nearly equal distances and a bound far above them: the empirical variance pays.
    corners = gs.Deterministic(torch.eye(200, dtype=torch.float64)[None])
    assert "Bernstein" in gs.measure(corners, design=gs.graphs.uniform(200, 5000)).method
