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
from graphsnd.behavior.points import Norm
from tests import oracles

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


def test_against_a_loop_over_observations_and_pairs() -> None:
    parts = make()
    points = torch.cat([parts["move"].loc, parts["move"].scale], dim=-1).numpy()  # type: ignore[attr-defined]
    grip, say = (parts[name].probs.numpy() for name in ("grip", "say"))  # type: ignore[attr-defined]
    total = 0.0
    for o in range(OBSERVATIONS):
        for i in range(N):
            for j in range(i):
                total += 1 * oracles.euclidean(points[o, i], points[o, j])
                total += 2 * oracles.total_variation(grip[o, i], grip[o, j])
                total += 0.5 * oracles.total_variation(say[o, i], say[o, j])
    expected = total / 3.5 / OBSERVATIONS / (N * (N - 1) / 2)
    joint = gs.Joint(parts, WEIGHTS)
    assert float(gs.snd(joint)) == pytest.approx(expected, rel=1e-12)
    assert gs.measure(joint).value == pytest.approx(expected, rel=1e-12)
    accumulator = gs.SndAccumulator(N)
    accumulator.update(joint)
    assert accumulator.compute().value == pytest.approx(expected, rel=1e-12)


def test_multi_discrete_is_one_block_of_probabilities() -> None:
    parts = [make(dtype=torch.float32)[name] for name in ("grip", "say", "grip")]
    points = embed(gs.Joint(parts))
    assert [(block.norm, block.features) for block in points.blocks] == [(Norm.HALF_L1, 11)]
    # Equal weights leave the values as they are: nothing is rounded.
    assert torch.equal(points.values[..., :4], parts[0].probs.flatten(0, -3))  # type: ignore[attr-defined]
    names = ("total-variation", 1.0)
    distance = gs.Joint(parts).distance
    assert (distance.name, pytest.approx(distance.maximum)) == names


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


def test_equal_agents_are_at_exactly_zero() -> None:
    for dtype in (torch.float32, torch.float64):
        parts = make(dtype=dtype)
        loc, logits = parts["move"].loc[:, :1], parts["say"].probs[:, :1].log()  # type: ignore[attr-defined]
        joint = gs.Joint(
            {
                "move": gs.Gaussian(loc.expand(OBSERVATIONS, N, 2), 0.3),
                "say": gs.Categorical(logits=logits.expand(OBSERVATIONS, N, 3)),
            },
            weights=[0.1, 0.7],
        )
        assert gs.snd(joint) == 0
        assert gs.measure(joint).value == 0
        assert gs.measure(joint, design="matching").interval == (0.0, 0.0)
        assert not gs.pairwise(joint).any()


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


def test_tolerances() -> None:
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(1000, 60, 5, generator=draw)
    joint = gs.Joint([gs.Categorical(logits=logits), gs.Deterministic(logits[..., :2])], [2, 1])
    truth = float(gs.snd(joint))
    met = gs.measure(joint, design="matching", rel_tol=0.02)
    assert met.met
    assert met.interval[0] <= truth <= met.interval[1]


def test_accumulators_give_the_same_numbers_for_every_split_and_resume() -> None:
    joint = gs.Joint(make(dtype=torch.float32), WEIGHTS)
    rows = [gs.Joint(_rows(joint, part), WEIGHTS) for part in (slice(0, 7), slice(7, 8), slice(8, OBSERVATIONS))]
    whole = gs.SndAccumulator(N, graph=GRAPH)
    whole.update(joint)
    part = gs.SndAccumulator(N, graph=GRAPH)
    for each in rows[1:]:
        part.update(each)
    first = gs.SndAccumulator(N, graph=GRAPH)
    first.update(rows[0])
    merged = gs.SndAccumulator.merge(part, first)
    assert merged.compute().value == pytest.approx(whole.compute().value, rel=1e-6)
    assert merged.compute().interval == pytest.approx(whole.compute().interval, rel=1e-6)
    again = gs.SndAccumulator.from_state(merged.state(), graph=GRAPH, distance=merged.distance)
    assert again.compute() == merged.compute()
    with pytest.raises(gs.InputError, match=r"`behavior`.*Joint with weights"):
        merged.update(gs.Joint(make(dtype=torch.float32), [1, 1, 1]))


def _rows(joint: gs.Joint, rows: slice) -> dict[str, gs.Behavior]:
    from graphsnd.teams.answers import map_tensors

    return {name: map_tensors(lambda given, _: given[0][rows], [part]) for name, part in joint.parts.items()}


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


CAT, DET = gs.Categorical(probs=torch.full((5, 3, 2), 0.5)), gs.Deterministic(torch.zeros(5, 3, 2))
