from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.behavior.behavior import as_distance
from graphsnd.teams import StackedTeam, as_team
from tests.cases import Case, each
from tests.estimation.teams import REPETITIONS, at_least, behavior, evaluate_one, inside, policies
from tests.estimation.test_intervals import team as make_team

FRESH = ["matching", "ring:2", "agents:4", "agents:2"]


@pytest.mark.parametrize("design", FRESH)
def test_intervals_cover_on_the_given_observations(design: str) -> None:
    team = behavior()
    truth = float(gs.snd(team))
    found = [gs.measure(team, design=design, seed=seed) for seed in range(REPETITIONS)]
    assert at_least(sum(inside(truth, e.interval) for e in found), 0.95)
    known = [e.asymptotic_interval for e in found if e.asymptotic_interval is not None]
    assert sum(inside(truth, interval) for interval in known) >= 0.94 * len(known)
    assert len(known) == REPETITIONS
    # A tenth of the asymptotic width does not cover, so the tests above could have failed.
    assert sum(abs(e.value - truth) < 0.2 * e.standard_error for e in found) / REPETITIONS < 0.9
    spread = torch.tensor([e.value for e in found], dtype=torch.float64).std()
    errors = torch.tensor([e.standard_error for e in found], dtype=torch.float64)
    if design in ("ring:2", "agents:4"):  # the others only bound it from above
        assert float(errors.square().mean().sqrt()) == pytest.approx(float(spread), rel=0.1)
    assert float(errors.square().mean().sqrt()) > 0.9 * float(spread)
    assert all(e.pair_error <= e.standard_error + 1e-15 for e in found)


def test_exact_when_cheap_and_says_so() -> None:
    team = behavior()
    e = gs.measure(team, rel_tol=0.01)
    assert e.exact
    assert e.value == pytest.approx(float(gs.snd(team)), rel=1e-12)
    assert "about a second" in e.why
    assert e.met is True
    assert gs.measure(team).met is None
    observations = torch.randn(30, 3, dtype=torch.float64)
    e = gs.measure(policies(), observations)
    assert e.exact
    assert e.value == pytest.approx(float(gs.snd(policies().evaluate(observations)).detach()), rel=1e-12)
    assert e.policy_evaluations == 12 * 30


def test_a_team_and_its_behaviour_give_the_same_draws() -> None:
    observations = torch.randn(5, 40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    team = policies()
    for design in (*FRESH, "uniform:10", "complete"):
        by_team = gs.measure(team, observations, design=design, seed=3)
        by_behavior = gs.measure(team.evaluate(observations), design=design, seed=3)
        assert by_team.value == pytest.approx(by_behavior.value, rel=1e-9)
        assert by_team.standard_error == pytest.approx(by_behavior.standard_error, rel=1e-6)


def test_one_observation_is_enough_for_a_number() -> None:
    team = behavior(observations=1)
    e = gs.measure(team, design="ring:2")
    assert math.isfinite(e.standard_error)
    assert e.observation_error is None
    assert e.interval[0] <= float(gs.snd(team)) <= e.interval[1]


def test_identical_agents_have_no_diversity_and_no_doubt() -> None:
    team = gs.Deterministic(torch.ones(50, 10, 2))
    e = gs.measure(team, design="matching", rel_tol=0.01)
    assert (e.value, e.interval) == (0.0, (0.0, 0.0))


def test_a_known_bound_gives_a_guarantee_and_a_smaller_one_a_narrower_interval() -> None:
    observations = torch.randn(300, 3, dtype=torch.float64)
    heads = [lambda o, i=i: evaluate_one(policies(), o, i) for i in range(12)]
    widths = []
    for d_max in (5.0, 10.0):
        e = gs.measure(heads, observations, design="agents:4", d_max=d_max)
        assert "asymptotic" not in e.method
        widths.append(e.interval[1] - e.interval[0])
    assert widths[0] < widths[1]


def test_a_seed_repeats_and_a_generator_advances() -> None:
    team = behavior()
    one, two = (gs.measure(team, design="matching", seed=8).value for _ in range(2))
    assert one == two
    generator = torch.Generator().manual_seed(0)
    first, second = (gs.measure(team, design="matching", seed=generator).value for _ in range(2))
    assert first != second


def test_a_bound_that_does_not_hold_is_refused() -> None:
    team = behavior()
    for d_max in (0.0, 0.1):
        with pytest.raises(gs.InputError, match="d_max"):
            gs.measure(team, design="agents:4", d_max=d_max)
    certified = gs.measure(team, design="agents:4")
    assert gs.measure(team, design="agents:4", d_max=1e6).interval == certified.interval


@pytest.mark.parametrize("d_max", [1e154, 1e155, 1e200, 1e308])
@pytest.mark.parametrize("design", ["ring:2", "agents:3", "matching"])
def test_a_bound_whose_square_overflows_leaves_wide_intervals(design: str, d_max: float) -> None:
    policies = [torch.nn.Linear(3, 2) for _ in range(5)]
    found = gs.measure(policies, torch.randn(20, 3), design=design, d_max=d_max)
    assert found.guaranteed
    assert found.interval[0] == 0
    assert found.value < found.interval[1] <= d_max


def test_options_of_a_team_may_be_given_beside_policies() -> None:
    networks = [torch.nn.Linear(4, 2) for _ in range(3)]
    observations = torch.randn(6, 5, 4)
    logits = gs.evaluate([lambda o, n=n: gs.Categorical(logits=n(o)) for n in networks], observations)
    for outputs in ("logits", ["logits"]):
        assert gs.measure(networks, observations, outputs=outputs).value == gs.measure(logits).value
    found = gs.measure(networks, observations, outputs="logits", distance="hellinger")
    assert found.value == pytest.approx(float(gs.snd(logits, "hellinger").detach()), rel=1e-6)
    grus = [torch.nn.GRU(4, 2) for _ in range(3)]
    whole = gs.measure(grus, observations, whole=True, outputs="action, state")
    assert whole.value == gs.measure(as_team([lambda o, g=g: g(o)[0] for g in grus], whole=True), observations).value
    for made in (as_team(networks), logits):
        with pytest.raises(gs.InputError, match=r"`whole` only beside policies, got a .* which has settled it"):
            gs.measure(made, None if made is logits else observations, whole=True)
    with pytest.raises(TypeError, match=r"measure.. got an unexpected keyword argument 'desing'"):
        gs.measure(logits, desing="agents:2")  # type: ignore[call-arg]


def test_joint_modules_count_everybody() -> None:
    def joint(observations: torch.Tensor) -> torch.Tensor:
        return observations[..., :1].unsqueeze(-2) * torch.arange(20.0).view(20, 1)

    e = gs.measure(as_team(joint), torch.randn(300, 2), design="agents:2")
    assert e.policy_evaluations == 20 * 300
    assert e.agents == 20


@pytest.mark.parametrize(("n", "observations"), [(2, 1), (3, 1), (4, 1), (3, 2), (5, 3)])
def test_every_estimate_is_json(n: int, observations: int) -> None:
    team = gs.Deterministic(torch.randn(observations, n, 2, generator=torch.Generator().manual_seed(n)))
    for design in (*FRESH, "complete", "uniform:1"):
        json.dumps(gs.measure(team, design=design).to_dict(), allow_nan=False)


def test_positions_make_a_local_measure() -> None:
    team, positions = behavior(), torch.rand(12, 2, generator=torch.Generator().manual_seed(0))
    for text, graph in (("knn:3", gs.graphs.knn(positions, 3)), ("radius:0.4", gs.graphs.radius(positions, 0.4))):
        e = gs.measure(team, design=text, positions=positions)
        assert (e.target, e.design) == ("Graph-SND", text)
        assert e.value == gs.measure(team, design=graph).value


def test_positions_at_each_observation_make_a_graph_for_each() -> None:
    team = behavior()
    positions = torch.rand(team.observations, 12, 2, generator=torch.Generator().manual_seed(0))
    for text in ("knn:3", "radius:0.04"):
        graph = gs.designs.parse(text).draw(12, positions=positions)
        e = gs.measure(team, design=text, positions=positions)
        assert (e.target, e.design, e.exact, e.distances) == ("Graph-SND", text, True, graph.m)
        assert e.pairs_used == round(graph.m / team.observations)
        assert e.value == pytest.approx(float(gs.graph_snd(team, graph)), rel=1e-6)
        assert gs.measure(team, design=graph).value == e.value
        assert e.empty_share == float((graph.starts.diff() == 0).double().mean())
        assert ("count 0" in e.method) == (e.empty_share > 0) == (text != "knn:3")


def test_moving_graphs_of_policies_are_measured_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.randn(5, 3, generator=torch.Generator().manual_seed(4))
    policies = [lambda seen, w=w: seen * w for w in weights]
    seen = torch.randn(21, 3, generator=torch.Generator().manual_seed(5))
    positions = torch.rand(21, 5, 2, generator=torch.Generator().manual_seed(6))
    whole = gs.measure(policies, seen, design="radius:0.3", positions=positions)
    monkeypatch.setattr("graphsnd.estimation.source.BLOCK", 60)  # four observations of five agents
    parts = gs.measure(policies, seen, design="radius:0.3", positions=positions.view(3, 7, 5, 2))
    assert parts.value == pytest.approx(whole.value, rel=1e-6)
    assert parts.empty_share == whole.empty_share


BASELINES = Path(__file__).parents[1] / "baselines" / "measure-demo.json"
CASES = json.loads(BASELINES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_the_demo_team_has_the_numbers_of_the_baseline(case: str) -> None:
    """The same draws of a team in single precision, whose digits after the eighth depend on the order of a sum."""
    from graphsnd.plots import example_team

    design = None if case == "nothing" else case
    team = example_team()
    e = gs.measure(team.behavior, design=design, positions=team.positions).to_dict()
    for name, value in CASES[case].items():
        assert e[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-8)), name


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda ids: torch.tensor(ids).view(4, 10)])
def test_clusters_may_be_a_list(form: Any, tmp_path: Path) -> None:
    team = gs.Deterministic(torch.randn(40, 3, 2, generator=torch.Generator().manual_seed(0)))
    ids = [at // 4 for at in range(40)]
    accumulator = gs.SndAccumulator(3, clusters=True)
    accumulator.update(team, form(ids))
    sums = gs.metric.by_observation(team).view(10, 4).sum(1)  # of clusters of 4
    error = float((sums / 4).std() / 10**0.5)
    assert gs.measure(team, clusters=form(ids)).observation_error == pytest.approx(error, rel=1e-6)
    assert accumulator.compute().observation_error == pytest.approx(error, rel=1e-6)
    gs.save_behavior(team, tmp_path / "team.npz", clusters=form(ids))
    assert np.load(tmp_path / "team.npz")["clusters"].tolist() == ids


@pytest.mark.parametrize("kind", ["behaviour", "policies", "images", "recurrent"])
def test_labels_and_positions_of_another_layout_are_refused(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    actions, labels = torch.randn(6, 5, 4, 2, generator=generator), torch.arange(5).expand(6, 5)
    places, seen = torch.randn(6, 5, 4, 2, generator=generator), torch.randn(6, 5, 3, 2, 2, generator=generator)
    policies = [lambda o, k=k: (k + 1) * o.flatten(-3)[..., :2] for k in range(4)]
    if kind == "images":
        team = (gs.teams.as_team(policies, feature_dims=3), seen)
    else:
        linear = [lambda o, k=k: (k + 1) * o[..., :2] for k in range(4)]
        whole = gs.teams.as_team(linear, whole=kind == "recurrent")
        team = (gs.Deterministic(actions),) if kind == "behaviour" else (whole, seen[..., 0, 0])
    for name, given, part in (("clusters", labels, "observation_error"), ("positions", places, "value")):
        options = {"design": "knn:1"} if name == "positions" else {}
        forms = (given, given.flatten(0, 1), given.unsqueeze(1), given.unflatten(0, (2, 3)))
        values = [getattr(gs.measure(*team, **options, **{name: form}), part) for form in forms]  # type: ignore[arg-type]
        assert values == values[:1] * 4
        with pytest.raises(gs.InputError, match=rf"`{name}` laid out as the observations, \(6, 5\), got \(5, 6\)"):
            gs.measure(*team, **options, **{name: given.transpose(0, 1)})  # type: ignore[arg-type]


def test_the_layout_of_a_dict_of_observations_ends_with_its_agents() -> None:
    seen = {name: torch.randn(6, 3, generator=torch.Generator().manual_seed(k)) for k, name in enumerate("ab")}
    policies = {"a": torch.nn.Linear(3, 2), "b": torch.nn.Linear(3, 2)}
    gs.measure(policies, seen, clusters=torch.arange(6).unsqueeze(1).expand(6, 2))
    with pytest.raises(gs.InputError, match=r"`clusters` .*\(6, 2\), got \(2, 6\)"):
        gs.measure(policies, seen, clusters=torch.arange(6).expand(2, 6))


@each
def test_without_a_graph_it_is_snd(case: Case) -> None:
    behavior = case.behavior(observations=20)
    for graph in (None, gs.graphs.complete(4), gs.graphs.bernoulli(4, 1.0), gs.graphs.uniform(4, 6)):
        estimate = gs.measure(behavior, design=graph, distance=case.distance)
        assert estimate.value == pytest.approx(float(gs.snd(behavior, case.distance)), rel=1e-12)
        assert estimate.interval == estimate.asymptotic_interval == (estimate.value, estimate.value)
        assert (estimate.target, estimate.standard_error) == ("SND", 0.0)
        assert estimate.method.startswith("exact")
        assert (estimate.pairs_total, estimate.pairs_used) == (6, 6)
        assert (estimate.agents, estimate.observations, estimate.policy_evaluations) == (4, 20, 80)
        assert estimate.distance == as_distance(behavior, case.distance).name


def test_an_empty_fixed_graph_is_zero() -> None:
    estimate = gs.measure(make_team(4), design=gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64)))
    assert (estimate.value, estimate.target, estimate.interval) == (0.0, "Graph-SND", (0.0, 0.0))


def test_policies_are_asked_once_at_each_observation() -> None:
    asked: list[int] = []

    class Counted(StackedTeam):
        def evaluate(self, observations: torch.Tensor) -> gs.Behavior:
            asked.append(len(observations))
            return super().evaluate(observations)

    made, seen = policies(), torch.randn(500, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    counted = Counted(made.network, made.head)
    once = gs.measure(made.evaluate(seen), design="bernoulli:0.3", seed=1)
    estimate = gs.measure(counted, seen, design="bernoulli:0.3", seed=1)
    assert sum(asked) == 500
    assert estimate.interval == pytest.approx(once.interval, rel=1e-9)


def test_blocks_of_observations_stand_for_clusters() -> None:
    values = torch.randn(100, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    blocks = torch.arange(100) * 32 // 100  # of 3 or 4
    by_block, plain = (
        gs.measure(gs.Deterministic(values), design="bernoulli:0.5", clusters=each) for each in (blocks, None)
    )
    assert plain.observation_error == pytest.approx(by_block.observation_error, rel=1e-12)
