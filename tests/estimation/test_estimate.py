from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.designs import Design
from graphsnd.designs.template import Template
from graphsnd.estimation.estimate import round_outwards
from tests import oracles
from tests.estimation.teams import policies

TEAM = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0], [7.0]]]).expand(20, 4, 1))


def test_prints_what_it_is() -> None:
    assert str(gs.measure(TEAM)) == "SND 4 ± 0 (2-Wasserstein of actions, all 6 pairs, 20 observations)"
    one = gs.measure(gs.Deterministic(torch.eye(2)[None]))
    assert str(one) == "SND 1.41421 ± unknown (2-Wasserstein of actions, 1 pair, 1 observation)"
    assert repr(one) == "Estimate(SND 1.41421 ± unknown, complete, agents=2)"


def noisy_team() -> gs.Behavior:
    generator = torch.Generator().manual_seed(0)
    return gs.Gaussian(torch.randn(400, 12, 2, generator=generator), torch.ones(2))


def test_the_error_for_other_observations_stands_beside_the_number() -> None:
    estimate = gs.measure(noisy_team())
    assert estimate.observation_error == pytest.approx(0.013, abs=0.006)
    shown, error = map(float, str(estimate).split(" (")[0].removeprefix("SND ").split(" ± "))
    assert error == pytest.approx(estimate.observation_error, rel=0.25)
    assert shown == pytest.approx(estimate.value, abs=error / 2)


class Star(Design):
    """A design of the user's own: one random agent against three others."""

    family = example = "star"

    def draw(self, n: int, generator: Any = None, positions: Any = None) -> Template:
        return Template(4, torch.tensor([[0, 1], [0, 2], [0, 3]]))


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (Star(), "3 of 66 pairs redrawn at each observation by star, 400 observations; guaranteed 95% interval"),
        (
            "uniform:40",
            "40 of 66 pairs by uniform:40, 400 observations; guaranteed 95% interval on these observations [",
        ),
        (
            "matching",
            "6 of 66 pairs redrawn at each observation by matching, 400 observations; guaranteed 95% interval",
        ),
        (gs.graphs.cliques([0, 1] * 6), "30 of 66 pairs by cliques, 400 observations)"),
        ("radius:1", "pairs on average by radius:1, 400 observations)"),
    ],
)
def test_the_sentence_says_which_pairs(design: Any, words: str) -> None:
    places = torch.rand(400, 12, 2) if design == "radius:1" else None
    estimate = gs.measure(noisy_team(), design=design, positions=places)
    assert f"(2-Wasserstein of Gaussians, {'' if places is not None else words}" in str(estimate)
    assert words in str(estimate)


def test_an_interval_without_a_bound_is_called_approximate() -> None:
    policies = [torch.nn.Linear(3, 2) for _ in range(6)]
    estimate = gs.measure(policies, torch.randn(300, 3), design="matching")
    assert not estimate.guaranteed
    assert "; approximate 95% interval on these observations [" in str(estimate)


@pytest.mark.parametrize(
    ("team", "words"),
    [
        (gs.Categorical(torch.rand(20, 3, 4).softmax(-1)), "total variation of action probabilities"),
        (gs.Samples(torch.randn(20, 3, 8, 2)), "2-Wasserstein of samples"),
        (gs.Joint([TEAM, TEAM]), "2-Wasserstein of joint actions"),
    ],
)
def test_the_sentence_says_what_was_compared(team: gs.Behavior, words: str) -> None:
    estimate = gs.measure(team)
    assert f"({words}, all {estimate.pairs_total} pairs, 20 observations)" in str(estimate)
    stream = gs.SndAccumulator(team.agents)
    stream.update(team)
    assert f"± unknown ({words}, all" in str(stream.compute())


@pytest.mark.parametrize(
    "graph",
    [
        None,
        gs.graphs.complete(4),
        gs.graphs.uniform(4, 1),
        gs.graphs.uniform(4, 3),
        gs.graphs.bernoulli(4, 0.5, seed=1),
        gs.graphs.random_regular(4, 1),
        gs.graphs.cliques([0, 0, 1, 1]),
        gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64)),
    ],
    ids=lambda g: "none" if g is None else f"{g.family}-{g.m}",
)
@pytest.mark.parametrize("observations", [1, 20])
def test_json_without_nan_or_infinity(graph: gs.Graph | None, observations: int) -> None:
    behavior = gs.Deterministic(TEAM.actions[:observations])
    estimate = gs.measure(behavior, design=graph)
    text = json.dumps(estimate.to_dict(), allow_nan=False)
    again = json.loads(text)
    assert again.keys() == {field.name for field in dataclasses.fields(gs.Estimate) if field.compare} | {
        "exact",
        "text",
    }
    assert again["value"] == estimate.value
    assert again["interval"] == list(estimate.interval)


def test_reads_as_its_value() -> None:
    estimate = gs.measure(TEAM)
    assert float(estimate) == 4.0
    assert (f"{estimate:.3f}", f"{estimate:8.2e}", f"{estimate}") == ("4.000", "4.00e+00", str(estimate))
    with pytest.raises(ValueError, match="format"):
        f"{estimate:d}"


@pytest.mark.parametrize(("error", "text"), [(4e-9, "4e-09"), (6.82115e-10, "7e-10"), (2e-5, "0.00002"), (0.0, "0")])
def test_an_error_that_is_rounding_is_printed_short(error: float, text: str) -> None:
    assert dataclasses.replace(gs.measure(TEAM), observation_error=error).number().endswith(f" ± {text}")


@pytest.mark.parametrize("seed", range(200))
def test_what_is_printed_of_an_interval_holds_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, error = 10 ** rng.uniform(-4, 4), 10 ** rng.uniform(-6, 2)
    low, high = value - rng.uniform(0, 5) * error, value + rng.uniform(0, 5) * error
    shown, below, above = map(float, round_outwards(value, low, high, error))
    assert below <= low <= high <= above
    assert above - below <= high - low + 1.01 * error  # at most half of the error at each end
    assert abs(shown - value) <= 0.26 * error or error < 1e-8


def test_ends_that_have_no_digits_are_printed_short() -> None:
    assert round_outwards(1.5, 0.0, math.inf, 0.1) == ("1.5", "0", "inf")
    assert round_outwards(1e-12, 0.0, 2e-12, 1e-13) == ("1e-12", "0", "2e-12")
    assert round_outwards(1e20, 0.0, 2e20, 1e18) == ("1e+20", "0", "2e+20")
    assert round_outwards(1.23456789, 1.23456789, 1.23456789, 0.0) == ("1.23457", "1.23457", "1.23457")


@pytest.mark.parametrize("design", ["complete", "uniform:40", "bernoulli:0.4", "regular:4", "knn:3", "weighted"])
def test_the_distances_of_the_measured_pairs_are_kept(design: str) -> None:
    team, weighted = noisy_team(), gs.Graph(12, torch.tensor([[0, 3], [2, 7], [5, 6]]), torch.tensor([1.0, 0.5, 2.0]))
    estimate = gs.measure(team, design=weighted if design == "weighted" else design, positions=torch.randn(12, 2))
    loc = team.loc.double().numpy()
    truth = oracles.distances(12, 400, lambda o, i, j: oracles.euclidean(loc[o, i], loc[o, j]))
    matrix = estimate.matrix()
    assert matrix is not None
    measured = ~matrix.isnan()
    assert int(measured.sum()) == 12 + 2 * estimate.pairs_used
    np.testing.assert_allclose(matrix[measured], torch.from_numpy(truth)[measured], rtol=1e-6)
    torch.testing.assert_close(matrix[measured], gs.pairwise(team).double()[measured], rtol=1e-6, atol=0)


def test_distances_are_kept_of_policies_and_accumulators_and_of_no_more_than_65_536_pairs() -> None:
    team, observations = policies(), torch.randn(30, 3, dtype=torch.float64)
    expected = gs.pairwise(team.evaluate(observations)).detach()
    torch.testing.assert_close(gs.measure(team, observations).matrix(), expected, rtol=1e-12, atol=1e-15)
    graph, sums = gs.graphs.circulant(12, 4), gs.SndAccumulator(12, graph=gs.graphs.circulant(12, 4))
    for part in noisy_team().loc.split(150):
        sums.update(gs.Gaussian(part, torch.ones(2)))
    kept = sums.compute().pair_distances
    torch.testing.assert_close(kept, gs.pairwise(noisy_team(), graph=graph).double(), rtol=1e-6, atol=0)
    many = gs.Deterministic(torch.randn(1, 363, 1))
    for design in (None, "matching", gs.graphs.circulant(363, 362)):
        assert gs.measure(many, design=design).matrix() is None
    assert gs.measure(gs.Deterministic(torch.randn(1, 362, 1))).pair_distances.shape == (362 * 361 // 2,)
