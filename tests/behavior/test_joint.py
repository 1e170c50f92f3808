"""What holds for joints beside what is tested for every case of :mod:`tests.cases`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import graphsnd as gs
from graphsnd import kernels
from graphsnd.behavior.behavior import embed

OBSERVATIONS, N = 40, 12


def make(seed: int = 0, dtype: torch.dtype = torch.float64) -> dict[str, gs.Behavior]:
    draw = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(OBSERVATIONS, N, *shape, generator=draw, dtype=torch.float64).to(dtype)  # noqa: E731
    return {
        "move": gs.Gaussian(normal(2), normal(2).abs()),
        "grip": gs.Categorical(logits=normal(4)),
        "say": gs.Categorical(logits=2 * normal(3)),
    }


WEIGHTS = {"move": 1, "grip": 2, "say": 0.5}
GRAPH = gs.graphs.random_regular(N, 4, seed=1)
MEASURES = {
    "snd": gs.snd,
    "pairwise": gs.pairwise,
    "contributions": gs.contributions,
    "graph_snd": lambda b, d=None: gs.graph_snd(b, GRAPH, d),
    "horvitz_thompson": lambda b, d=None: gs.horvitz_thompson(b, GRAPH, d),
    "pairwise of edges": lambda b, d=None: gs.pairwise(b, d, graph=GRAPH),
    "means_and_totals": lambda b, d=None: torch.cat(kernels.edge_means_and_totals(embed(b, d), GRAPH.edges)),
    "between": lambda b, d=None: gs.decompose(b, [0, 1, 2] * 4, d).between,
}


@pytest.mark.parametrize("backend", ["auto", "cpu", "reference"])
@given(weights=st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3), seed=st.integers(0, 99))
def test_snd_is_the_mean_of_the_snds_of_the_parts(backend: str, weights: list[float], seed: int) -> None:
    parts = make(seed)
    joint = gs.Joint(parts, weights=dict(zip(parts, weights, strict=True)))
    terms = [w * float(gs.snd(part)) for w, part in zip(weights, parts.values(), strict=True)]
    assert float(gs.snd(joint, backend=backend)) == pytest.approx(sum(terms) / sum(weights), rel=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_so_is_every_measure(name: str) -> None:
    parts = make()
    expected = sum(WEIGHTS[key] * MEASURES[name](part) for key, part in parts.items()) / 3.5
    torch.testing.assert_close(MEASURES[name](gs.Joint(parts, WEIGHTS)), expected, rtol=1e-12, atol=1e-15)


def test_distances_of_parts() -> None:
    parts = make()
    chosen = gs.Joint(parts, WEIGHTS, distance={"say": gs.Hellinger()})
    expected = gs.snd(parts["move"]) + 2 * gs.snd(parts["grip"]) + 0.5 * gs.snd(parts["say"], gs.Hellinger())
    torch.testing.assert_close(gs.snd(chosen), expected / 3.5, rtol=1e-12, atol=0)
    assert chosen.distance.name == "0.286 wasserstein + 0.571 total-variation + 0.143 hellinger"
    assert chosen.distance.maximum is None
    discrete = gs.Joint([parts["grip"], parts["say"]], [1, 3])
    for distance in (gs.Hellinger(), gs.JensenShannon(), gs.TotalVariation()):
        expected = (gs.snd(parts["grip"], distance) + 3 * gs.snd(parts["say"], distance)) / 4
        torch.testing.assert_close(gs.snd(discrete, distance), expected, rtol=1e-12, atol=0)
        assert gs.measure(discrete, distance=distance).distance == distance.name
    kept = gs.Joint([parts["grip"], parts["say"]], distance=[None, gs.TotalVariation()])
    assert kept.distance == gs.Joint([parts["grip"], parts["say"]]).distance


@pytest.mark.parametrize("design", ["bernoulli:0.4", "uniform:20", "regular:4", "matching", "ring:4", "agents:4"])
def test_sampled_designs_are_unbiased_and_cover(design: str) -> None:
    joint = gs.Joint(make(), WEIGHTS)
    truth = float(gs.snd(joint))
    estimates = [gs.measure(joint, design=design, seed=seed) for seed in range(120)]
    values = np.array([estimate.value for estimate in estimates])
    assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(len(values))
    covered = [estimate.interval[0] <= truth <= estimate.interval[1] for estimate in estimates]
    assert np.mean(covered) >= 0.95
    assert all(estimate.guaranteed for estimate in estimates)
    assert np.mean([estimate.interval[1] - estimate.interval[0] for estimate in estimates]) < 2 * truth


def test_names_of_agents() -> None:
    team = {"scout": torch.zeros(4, 2), "guard": torch.ones(4, 2)}
    joint = gs.Joint({"a": gs.Deterministic(torch.zeros(4, 2, 1)), "b": gs.Deterministic(team)})
    assert joint.names == ("scout", "guard")
    assert gs.Joint([gs.Deterministic(torch.zeros(4, 2, 1))]).with_names(["x", "y"]).names == ("x", "y")
    assert not gs.Joint([gs.Deterministic(torch.zeros(4, 2, 1))]).named
    turned = gs.Deterministic(dict(reversed(team.items())))
    with pytest.raises(gs.InputError, match=r"`parts`.*same order"):
        gs.Joint([gs.Deterministic(team), turned])


def test_precision_of_results() -> None:
    parts = make(dtype=torch.float32)
    assert gs.snd(gs.Joint(parts, WEIGHTS)).dtype == torch.float32
    assert gs.snd(gs.Joint(parts, WEIGHTS, distance={"say": gs.Hellinger()})).dtype == torch.float32
    assert gs.snd(gs.Joint([parts["grip"], make()["say"]])).dtype == torch.float64
