"""Groups of agents with different spaces: their numbers one by one, and the total over the pairs within them."""

from __future__ import annotations

import json
import math
from itertools import combinations

import pytest
import torch
from scipy.stats import binom

import graphsnd as gs
from graphsnd.teams import as_team

GENERATOR = torch.Generator().manual_seed(0)
ACTIONS = {
    "predators": torch.randn(60, 5, 2, generator=GENERATOR),
    "prey": 3 * torch.randn(40, 3, 4, generator=GENERATOR),
    "tree": torch.randn(30, 1, 1, generator=GENERATOR),
}
TEAMS = {name: gs.Deterministic(actions) for name, actions in ACTIONS.items()}


def distances(actions: torch.Tensor) -> list[float]:
    """Return the distances of all pairs, by a loop in double precision."""
    rows = actions.tolist()
    pairs = combinations(range(actions.shape[1]), 2)
    return [sum(math.dist(row[i], row[j]) for row in rows) / len(rows) for i, j in pairs]


def test_the_total_is_the_mean_over_all_pairs_within_groups() -> None:
    result = gs.measure(TEAMS)
    found = {name: distances(actions) for name, actions in ACTIONS.items()}
    for name in ("predators", "prey"):
        assert result[name].value == pytest.approx(sum(found[name]) / len(found[name]), rel=1e-6)
        assert result[name].exact
    pairs = [value for values in found.values() for value in values]
    assert len(pairs) == result.pairs_total == result.total.pairs_total == 13
    assert float(result) == result.total.value == pytest.approx(sum(pairs) / 13, rel=1e-6)
    assert result.exact
    assert (result.interval, result.standard_error, result.agents) == ((result.value, result.value), 0.0, 9)
    assert f"{result:.3f}" == f"{result.total:.3f}" == f"{sum(pairs) / 13:.3f}"


def test_a_group_of_one_has_no_pair() -> None:
    tree = gs.measure(TEAMS)["tree"]
    assert (tree.value, tree.pairs_total, tree.interval, tree.observations) == (0.0, 0, (0.0, 0.0), 30)
    assert tree.exact
    assert str(tree) == "SND 0 (exact: one agent has no pair)"
    alone = gs.measure({"tree": TEAMS["tree"], "rock": [torch.nn.Linear(2, 1)]}, torch.randn(9, 2), rel_tol=0.1)
    assert (alone.value, alone.pairs_total, alone.met, alone.exact) == (0.0, 0, None, True)


def test_it_prints_every_group_the_total_and_why_there_is_nothing_between() -> None:
    *groups, total = str(gs.measure(TEAMS)).splitlines()
    assert [line.split(":")[0] for line in groups] == list(TEAMS)
    assert total.startswith("total: SND within groups ")
    assert total.endswith("agents of different groups, whose spaces differ, have no distance")


def test_json_has_the_groups() -> None:
    result = gs.measure(TEAMS, design="uniform:2")
    read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert read["value"] == result.value
    assert {name: group["value"] for name, group in read["groups"].items()} == {
        name: result[name].value for name in TEAMS
    }
    assert read["groups"]["prey"]["groups"] == {}
    assert len({result, result.total, result}) == 2


def test_policies_are_shown_the_observations_of_their_group() -> None:
    teams = {
        "predators": [torch.nn.Linear(4, 2) for _ in range(3)],
        "prey": {"a": torch.nn.Linear(3, 1), "b": torch.nn.Linear(3, 1)},
        "birds": as_team(lambda seen: gs.Deterministic(seen.unsqueeze(-2) * torch.arange(3.0).view(3, 1))),
    }
    observations = {"birds": torch.randn(8, 2), "prey": torch.randn(20, 3), "predators": torch.randn(30, 4)}
    result = gs.measure(teams, observations)
    total, pairs = 0.0, 0
    for name, team in teams.items():
        behavior = gs.evaluate(team, observations[name])  # type: ignore[arg-type]
        assert isinstance(behavior, gs.Deterministic)
        found = distances(behavior.actions.detach())
        assert result[name].value == pytest.approx(sum(found) / len(found), rel=1e-5)
        total, pairs = total + sum(found), pairs + len(found)
    assert result.value == pytest.approx(total / pairs, rel=1e-5)
    assert result["prey"].names == ("a", "b")


def test_groups_have_seeds_of_their_own_that_repeat() -> None:
    twins = {"one": gs.Deterministic(torch.randn(50, 20, 2)), "two": gs.Deterministic(torch.zeros(50, 20, 2))}
    twins["two"] = twins["one"]
    first, again, other = (gs.measure(twins, design="uniform:10", seed=seed) for seed in (3, 3, 4))
    assert first["one"].value != first["two"].value
    assert first.value == again.value != other.value
    generator = torch.Generator().manual_seed(3)
    drawn = gs.measure(twins, design="uniform:10", seed=generator)
    assert drawn.value == first.value
    assert gs.measure(twins, design="uniform:10", seed=generator).value != first.value


@pytest.mark.parametrize("design", ["uniform:8", "matching", "agents:3"])
def test_intervals_cover_the_total(design: str) -> None:
    actions = [torch.randn(40, n, 2, generator=GENERATOR) * torch.rand(n, 1, generator=GENERATOR) for n in (12, 6)]
    found = [distances(part) for part in actions]
    truth = sum(map(sum, found)) / sum(map(len, found))
    teams = {str(at): gs.Deterministic(part) for at, part in enumerate(actions)}
    draws, covered, covered_asymptotically, together = 200, 0, 0, 0
    for seed in range(draws):
        result = gs.measure(teams, design=design, seed=seed, confidence=0.9, max_observations=None)
        low, high = result.asymptotic_interval
        covered_asymptotically += low <= truth <= high
        covered += result.interval[0] <= truth <= result.interval[1]
        assert result["0"].confidence == result["1"].confidence == pytest.approx(0.95)
        inside = (result[str(at)].interval for at in range(2))
        together += all(low <= sum(f) / len(f) <= high for (low, high), f in zip(inside, found, strict=True))
    least = binom.ppf(1e-4, draws, 0.9)
    assert covered >= least
    assert together >= least
    assert covered_asymptotically >= least - 0.05 * draws  # of samples that are not large


def test_a_tolerance_of_each_group_is_one_of_the_total() -> None:
    sizes = {"a": 40, "b": 9}
    teams = {name: gs.Deterministic(torch.randn(4000, n, 2, generator=GENERATOR)) for name, n in sizes.items()}
    result = gs.measure(teams, design="matching", rel_tol=0.05)
    assert result["a"].met
    assert result["b"].met
    assert result.met
    low, high = result.interval
    assert 0 < high - low <= 2 * 0.05 * low
    assert low <= float(780 * gs.snd(teams["a"]) + 36 * gs.snd(teams["b"])) / 816 <= high
    missed = gs.measure(teams, design="matching", rel_tol=1e-6, budget="1e4")
    assert missed.met is False


def test_standard_errors_add_as_variances_and_those_over_observations_as_they_are() -> None:
    result = gs.measure(TEAMS, design="uniform:2")
    ten, three = result["predators"], result["prey"]
    assert result.standard_error == pytest.approx(math.hypot(10 * ten.standard_error, 3 * three.standard_error) / 13)
    assert ten.observation_error is not None
    assert three.observation_error is not None
    assert result.observation_error == pytest.approx((10 * ten.observation_error + 3 * three.observation_error) / 13)


def test_options_by_group() -> None:
    squads = {"predators": gs.graphs.cliques([0, 0, 0, 1, 1]), "prey": "radius:1.5", "tree": None}
    places = {"predators": None, "prey": torch.tensor([[0.0], [1.0], [9.0]]), "tree": None}
    clusters = {"predators": torch.arange(60) // 2, "prey": None, "tree": None}
    result = gs.measure(TEAMS, design=squads, positions=places, clusters=clusters)
    found = {name: distances(actions) for name, actions in ACTIONS.items()}
    near = [found["predators"][at] for at in (0, 1, 4, 9)]  # 01 02 03 04 12 13 14 23 24 34
    assert result["predators"].value == pytest.approx(sum(near) / 4, rel=1e-6)
    assert result["prey"].value == pytest.approx(found["prey"][0], rel=1e-6)
    assert result.target == "Graph-SND within groups"
    assert (
        result["predators"].observation_error
        == gs.measure(TEAMS["predators"], design=squads["predators"], clusters=clusters["predators"]).observation_error
    )


def test_distances_in_other_units_have_no_total() -> None:
    teams = {**TEAMS, "traders": gs.Categorical(logits=torch.randn(30, 3, 4))}
    result = gs.measure(teams)
    assert math.isnan(float(result))
    assert "no total: wasserstein and total-variation have different units" in str(result)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["value"] is None
    assert result["traders"].value == pytest.approx(float(gs.snd(teams["traders"])))


def test_errors_say_how_to_measure_groups() -> None:
    why = r"Agents with different spaces have no distance. Measure them by group: gs.measure\({'predators'"
    with pytest.raises(gs.InputError, match=why):
        gs.evaluate([torch.nn.Linear(4, 2), torch.nn.Linear(4, 3)], torch.randn(5, 4))
    with pytest.raises(gs.InputError, match=why):
        gs.Gaussian({"a": torch.randn(5, 2), "b": torch.randn(5, 3)}, 1.0)
    families = [torch.nn.Linear(4, 2), lambda seen: gs.Categorical(logits=seen)]
    with pytest.raises(gs.InputError, match="Measure them by group"):
        gs.evaluate(families, torch.randn(5, 4))


def test_what_cannot_be_groups() -> None:
    with pytest.raises(gs.InputError, match="of groups, or of policies, got both"):
        gs.measure({"a": TEAMS["prey"], "b": torch.nn.Linear(4, 2)}, torch.randn(5, 4))
    with pytest.raises(gs.InputError, match="`observations` by the names predators, prey, got prey"):
        gs.measure({"predators": [torch.nn.Linear(4, 2)] * 2, "prey": TEAMS["prey"]}, {"prey": torch.randn(5, 4)})
    with pytest.raises(gs.InputError, match="whose names differ as strings, got 1, '1'"):
        gs.measure({1: TEAMS["prey"], "1": TEAMS["prey"]})  # type: ignore[dict-item]
    with pytest.raises(gs.InputError, match="`confidence`"):
        gs.measure(TEAMS, confidence=2.0)
    with pytest.raises(gs.InputError, match="`seed`"):
        gs.measure(TEAMS, seed="0")  # type: ignore[arg-type]


def test_modules_in_a_module_dict_of_lists_are_groups() -> None:
    lists = {name: torch.nn.ModuleList(torch.nn.Linear(4, 2) for _ in range(3)) for name in ("a", "b")}
    observations = torch.randn(10, 4)
    assert gs.measure(torch.nn.ModuleDict(lists), observations).value == gs.measure(lists, observations).value


def test_a_total_without_pairs_says_so() -> None:
    assert "total: SND within groups 0 (no group has a pair" in str(gs.measure({"tree": TEAMS["tree"]}))
