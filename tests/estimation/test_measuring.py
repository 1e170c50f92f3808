from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam, as_team

REPETITIONS = 300


def behavior(observations: int = 64, n: int = 12, seed: int = 0) -> gs.Behavior:
    """Three roles, and situations in which they differ more or less."""
    generator = torch.Generator().manual_seed(seed)
    roles = (torch.arange(n) % 3).double().view(1, n, 1)
    size = torch.rand(observations, 1, 1, generator=generator, dtype=torch.float64) + 0.5
    return gs.Deterministic(size * roles + 0.1 * torch.randn(observations, n, 2, generator=generator).double())


def policies(n: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64) -> StackedTeam:
    generator = torch.Generator().manual_seed(seed)
    network = StackedMLP.create((n,), (3, 8, 4), init="linear", generator=generator)
    return StackedTeam(network.to(dtype), GaussianHead(2, mean="tanh", scale="network"))


def inside(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] <= value <= interval[1]


def at_least(hits: int, share: float) -> bool:
    """Not significantly below ``share`` over the repetitions."""
    return hits / REPETITIONS >= share - 3 * math.sqrt(share * (1 - share) / REPETITIONS)


FRESH = [gs.designs.Matching(), gs.designs.Ring(2), gs.designs.Agents(4), gs.designs.Agents(2)]
PARTLY = [gs.designs.Agents(4), gs.designs.Matching()]  # at 24 observations


@pytest.mark.parametrize(
    ("design", "count"), [*((design, None) for design in FRESH), *((design, 24) for design in PARTLY)], ids=str
)
def test_intervals_cover_on_the_given_observations(design: gs.designs.Design, count: int | None) -> None:
    team = behavior()
    truth = float(gs.snd(team))
    found = [gs.measure(team, design=design, max_observations=count, seed=seed) for seed in range(REPETITIONS)]
    assert at_least(sum(inside(truth, e.interval) for e in found), 0.95)
    assert sum(inside(truth, e.asymptotic_interval) for e in found) / REPETITIONS >= 0.94
    # A tenth of the asymptotic width does not cover, so the tests above could have failed.
    assert sum(abs(e.value - truth) < 0.2 * e.standard_error for e in found) / REPETITIONS < 0.9
    spread = torch.tensor([e.value for e in found], dtype=torch.float64).std()
    errors = torch.tensor([e.standard_error for e in found], dtype=torch.float64)
    if design in (gs.designs.Ring(2), gs.designs.Agents(4)):  # the others only bound it from above
        assert float(errors.square().mean().sqrt()) == pytest.approx(float(spread), rel=0.1)
    assert float(errors.square().mean().sqrt()) > 0.9 * float(spread)
    assert all(e.pair_error <= e.standard_error + 1e-15 for e in found)


@pytest.mark.parametrize("design", [gs.designs.Agents(4), gs.designs.Ring(2)], ids=str)
def test_intervals_cover_under_optional_stopping(design: gs.designs.Design) -> None:
    team = behavior(observations=256)
    truth = float(gs.snd(team))
    found = [gs.measure(team, design=design, rel_tol=0.1, seed=seed) for seed in range(REPETITIONS)]
    assert at_least(sum(inside(truth, e.interval) for e in found), 0.95)
    assert all(e.met for e in found)
    assert all(abs(e.value - truth) <= 0.1 * truth for e in found if inside(truth, e.interval))
    assert not any(e.exact for e in found)


def test_asymptotic_stopping_covers_where_no_bound_is_known() -> None:
    observations = torch.randn(400, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    team = policies()
    truth = float(gs.snd(team.evaluate(observations)).detach())
    heads = [lambda o, i=i: _one(team, o, i) for i in range(team.agents)]
    found = []
    for seed in range(60):
        e = gs.measure(heads, observations, design=gs.designs.Agents(4), rel_tol=0.08, seed=seed)
        assert "asymptotic" in e.method
        assert e.met
        found.append(inside(truth, e.interval))
    assert sum(found) / 60 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 60)


def _one(team: StackedTeam, observations: torch.Tensor, agent: int) -> gs.Gaussian:
    rows = observations.flatten(0, -2)
    one = team.partial(rows, torch.full((len(rows), 1), agent))
    assert isinstance(one, gs.Gaussian)
    shape = (*observations.shape[:-1], 2)
    return gs.Gaussian(one.loc.reshape(shape), one.scale.reshape(shape))


def test_clustered_intervals_cover_the_population() -> None:
    """Episodes have a level of their own: steps of one are no independent observations."""
    episodes, steps, n = 40, 12, 8
    clusters = torch.arange(episodes).repeat_interleave(steps)
    base = torch.arange(n, dtype=torch.float64).view(1, n, 1) / n
    truth = float(gs.snd(gs.Deterministic(base)))
    generator = torch.Generator().manual_seed(0)
    covered = {"clustered": 0, "blocks of one": 0}
    for seed in range(REPETITIONS):
        level = torch.rand(episodes, generator=generator, dtype=torch.float64).repeat_interleave(steps) * 2
        team = gs.Deterministic(level.view(-1, 1, 1) * base)
        e = gs.measure(team, design=gs.designs.Ring(2), clusters=clusters, seed=seed)
        alone = gs.measure(team, design=gs.designs.Ring(2), clusters=torch.arange(len(clusters)), seed=seed)
        assert e.population_interval is not None
        assert alone.population_interval is not None
        covered["clustered"] += inside(truth, e.population_interval)
        covered["blocks of one"] += inside(truth, alone.population_interval)
    assert covered["clustered"] / REPETITIONS >= 0.94 - 0.01
    assert covered["blocks of one"] / REPETITIONS < 0.7  # what ignoring the episodes costs


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
    partly = [(design, 24) for design in (*PARTLY, gs.designs.Complete())]
    for design, count in (*((d, None) for d in (*FRESH, gs.designs.Uniform(10), gs.designs.Complete())), *partly):
        by_team = gs.measure(team, observations, design=design, max_observations=count, seed=3)
        by_behavior = gs.measure(team.evaluate(observations), design=design, max_observations=count, seed=3)
        assert by_team.value == pytest.approx(by_behavior.value, rel=1e-9)
        assert by_team.standard_error == pytest.approx(by_behavior.standard_error, rel=1e-6)


def test_counts_what_it_spends() -> None:
    observations = torch.randn(20_000, 3, dtype=torch.float64)
    asked = []

    class Counting(StackedTeam):
        def _partial(self, inputs: torch.Tensor, agents: torch.Tensor) -> gs.Behavior:
            asked.append(agents.numel())
            return super()._partial(inputs, agents)

    team = policies()
    counting = Counting(team.network, team.head)
    e = gs.measure(counting, observations, design=gs.designs.Agents(3), rel_tol=0.1, seed=0)
    assert not e.exact
    assert e.policy_evaluations == sum(asked) - 2  # two tell the family of the answers
    assert e.distances == e.policy_evaluations  # three agents, three pairs


@pytest.mark.parametrize("limit", [{"distances": 900}, {"evaluations": 700}])
def test_a_budget_is_kept_and_spent(limit: dict[str, int]) -> None:
    observations = torch.randn(1000, 3, dtype=torch.float64)
    for tolerance in ({}, {"rel_tol": 1e-6}):
        e = gs.measure(policies(), observations, design=gs.designs.Agents(4), budget=gs.Budget(**limit), **tolerance)
        used = e.distances if "distances" in limit else e.policy_evaluations
        allowed = next(iter(limit.values()))
        assert 0.9 * allowed < used <= allowed
        assert e.met is (False if tolerance else None)
        assert ("not met" in str(e)) is bool(tolerance)


def test_a_budget_of_distances_chooses_the_design() -> None:
    team = behavior(observations=100, n=20)
    for distances, name in [(100 * 45, "ring:4"), (100 * 12, "matching"), (100 * 7, "pairs:7"), (60, "pairs:8")]:
        e = gs.measure(team, budget=gs.Budget(distances=distances))
        assert name == e.design
        assert e.distances <= distances
    assert gs.measure(team, budget=gs.Budget(distances=100 * 190)).exact


def test_a_budget_for_everything_buys_everything() -> None:
    observations = torch.randn(60, 3, dtype=torch.float64)
    asked = gs.measure(policies(), observations, design=gs.designs.Agents(4), budget=gs.Budget(distances=10**12))
    assert asked.distances <= 60 * 66
    source = gs.estimation.source.BehaviorSource(behavior(), None)
    plan = gs.estimation.costs.choose(source, gs.Budget(distances=64 * 66), tolerance=False)
    assert plan.design == gs.designs.Complete()


def test_one_observation_is_enough_for_a_number() -> None:
    team = behavior(observations=1)
    e = gs.measure(team, design=gs.designs.Ring(2))
    assert math.isfinite(e.standard_error)
    assert e.observation_error is None
    assert e.interval[0] <= float(gs.snd(team)) <= e.interval[1]


def test_a_budget_of_seconds_stops() -> None:
    team = behavior(observations=4000, n=50)
    e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=0.001), rel_tol=1e-9)
    assert e.met is False
    assert math.isfinite(e.standard_error)
    e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=0.05))
    assert e.met is None
    assert e.distances > 0


def test_goes_exact_when_the_tolerance_is_dearer_than_everything() -> None:
    e = gs.measure(behavior(), design=gs.designs.Agents(4), rel_tol=1e-9)
    assert e.exact
    assert e.met
    assert "as much work as all pairs" in e.why


def test_identical_agents_have_no_diversity_and_no_doubt() -> None:
    team = gs.Deterministic(torch.ones(50, 10, 2))
    e = gs.measure(team, design=gs.designs.Matching(), rel_tol=0.01)
    assert (e.value, e.interval) == (0.0, (0.0, 0.0))


def test_calls_back_at_every_look() -> None:
    seen: list[gs.Estimate] = []
    e = gs.measure(behavior(500), design=gs.designs.Agents(4), rel_tol=0.05, callback=seen.append)
    assert [s.looks for s in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].value == e.value
    assert [s.met for s in seen] == [False] * (len(seen) - 1) + [True]


def test_a_known_bound_gives_a_guarantee_and_a_smaller_one_a_narrower_interval() -> None:
    observations = torch.randn(300, 3, dtype=torch.float64)
    heads = [lambda o, i=i: _one(policies(), o, i) for i in range(12)]
    widths = []
    for d_max in (5.0, 10.0):
        e = gs.measure(heads, observations, design="agents:4", max_observations=200, d_max=d_max)
        assert "asymptotic" not in e.method
        widths.append(e.interval[1] - e.interval[0])
    assert widths[0] < widths[1]


def test_horvitz_thompson_and_normalised_stand_side_by_side() -> None:
    team = behavior()
    normal = gs.designs.Bernoulli(0.3)
    sums = {"design": normal, "weighting": "horvitz-thompson"}
    graph = normal.draw(12, torch.Generator().manual_seed(4))
    assert gs.measure(team, design=normal, seed=4).value == pytest.approx(float(gs.graph_snd(team, graph)))
    assert gs.measure(team, seed=4, **sums).value == pytest.approx(float(gs.horvitz_thompson(team, graph)))
    truth = float(gs.snd(team))
    found = [gs.measure(team, seed=seed, **sums) for seed in range(300)]
    assert sum(inside(truth, e.interval) for e in found) / 300 >= 0.95
    spread = float(torch.tensor([e.value for e in found]).std())
    assert sum(e.standard_error for e in found) / 300 == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tol": 0.0}, "tol"),
        ({"rel_tol": -1.0}, "rel_tol"),
        ({"rel_tol": math.nan}, "rel_tol"),
        ({"confidence": 1.0}, "confidence"),
        ({"d_max": -1.0}, "d_max"),
        ({"clusters": torch.zeros(3)}, "clusters"),
        ({"clusters": torch.zeros(3, dtype=torch.int64)}, "clusters"),
        ({"observations": torch.zeros(4, 3)}, "observations"),
        ({"design": gs.designs.Uniform(3), "max_observations": 4}, "max_observations"),
        ({"max_observations": 1}, "max_observations"),
        ({"weighting": "sum"}, "weighting"),
        ({"design": "matching", "weighting": "horvitz-thompson"}, "weighting"),
        ({"design": "knn:3"}, "positions"),
        ({"design": "star"}, "design"),
        ({"budget": "soon"}, "budget"),
        ({"design": gs.designs.Matching(), "budget": gs.Budget(distances=3)}, "budget"),
    ],
)
def test_bad_input_names_the_argument(change: dict[str, object], word: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{word}`"):
        gs.measure(behavior(), **change)


def test_more_bad_input() -> None:
    with pytest.raises(gs.InputError, match="observations"):
        gs.measure(policies())
    with pytest.raises(gs.InputError, match="team"):
        gs.measure(policies(n=1), torch.zeros(4, 3, dtype=torch.float64))
    for bad in ({}, {"distances": 0}, {"seconds": -1.0}):
        with pytest.raises(gs.InputError, match="budget"):
            gs.Budget(**bad)


def test_a_seed_repeats_and_a_generator_advances() -> None:
    team = behavior()
    one, two = (gs.measure(team, design=gs.designs.Matching(), seed=8).value for _ in range(2))
    assert one == two
    generator = torch.Generator().manual_seed(0)
    first, second = (gs.measure(team, design=gs.designs.Matching(), seed=generator).value for _ in range(2))
    assert first != second


def on_and_off(observations: int = 4000, n: int = 16) -> gs.Behavior:
    """Agents that differ at every other observation: which observations are seen is all that matters."""
    on = (torch.arange(observations) % 2).double().view(-1, 1, 1)
    return gs.Deterministic(on * torch.eye(n, dtype=torch.float64))


@pytest.mark.parametrize("tolerance", [{}, {"rel_tol": 1e-9}])
def test_the_clock_stops_after_whole_passes(tolerance: dict[str, float]) -> None:
    """Observations of a pass that ended early would count twice, and nothing would cover that."""
    team = on_and_off()
    truth = float(gs.snd(team))
    for seconds in (0.001, 0.02, 0.1):
        e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=seconds), seed=1, **tolerance)
        assert e.interval[0] - 1e-12 <= truth <= e.interval[1] + 1e-12


def test_time_is_spent_in_whole_passes() -> None:
    from graphsnd.estimation.sampling import _fitting

    class Stream:
        draws = 100

        class task:
            class source:
                observations = 300

            @staticmethod
            def seconds_left() -> float:
                return Stream.left

    for left, draws in [(50.0, 50), (199.0, 199), (200.0, 200), (450.0, 200), (801.0, 800), (0.5, 0), (-1.0, 0)]:
        Stream.left = left
        assert _fitting(Stream(), 1.0) == draws


def test_an_unfinished_pass_keeps_its_error() -> None:
    from graphsnd.estimation.intervals import errors, guaranteed_radius
    from graphsnd.estimation.sample import draw
    from graphsnd.estimation.source import BehaviorSource

    source, template = BehaviorSource(on_and_off(), None), gs.designs.Matching().template(16)
    truth, generator, misses = float(gs.snd(on_and_off())), torch.Generator().manual_seed(0), 0
    found = []
    for _ in range(60):
        index = torch.cat([torch.randperm(4000, generator=generator) for _ in range(2)])[:7200]
        sample = draw(source, template, index, generator)
        radius, _ = guaranteed_radius(sample, template, 16, 4000, math.sqrt(2), 0.05)
        misses += abs(sample.value() - truth) > radius
        found.append((sample.value() - truth, errors(sample, template, 16, 4000)[0]))
    assert misses <= 3
    spread = math.sqrt(sum(off**2 for off, _ in found) / 60)
    assert spread == pytest.approx(found[0][1], rel=0.35)


def test_looks_never_run_past_a_whole_pass() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    heads = [lambda o, i=i: points[o[..., 0].long(), i] for i in range(6)]
    observations = torch.arange(3.0, dtype=torch.float64).view(3, 1)
    truth = float(gs.snd(gs.Deterministic(points)))
    for seed in range(40):
        e = gs.measure(heads, observations, design=gs.designs.Agents(6), tol=0.3, seed=seed)
        if e.standard_error == 0:
            assert e.value == pytest.approx(truth)


def test_draws_that_are_all_alike_prove_nothing() -> None:
    rare = [lambda o, i=i: (o[..., :1] > 3.2) * float(i) for i in range(10)]
    observations = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(3))
    e = gs.measure(rare, observations, rel_tol=0.01, design=gs.designs.Agents(3), budget=gs.Budget(evaluations=3000))
    assert not e.exact
    assert not e.guaranteed
    assert e.met is False


def test_time_to_spare_does_not_make_small_teams_worse() -> None:
    team = gs.Deterministic(torch.randn(100, 10, 2))
    for tolerance in ({}, {"rel_tol": 0.01}):
        assert gs.measure(team, budget=gs.Budget(seconds=5), **tolerance).exact
    assert gs.measure(team, design=gs.designs.Agents(4), rel_tol=1e-9, budget=gs.Budget(seconds=5)).exact


def test_a_bound_that_does_not_hold_is_refused() -> None:
    team = behavior()
    for d_max in (0.0, 0.1):
        with pytest.raises(gs.InputError, match="d_max"):
            gs.measure(team, design=gs.designs.Agents(4), d_max=d_max)
    with pytest.raises(gs.InputError, match="d_max"):
        gs.measure(team, d_max=math.inf)
    certified = gs.measure(team, design=gs.designs.Agents(4))
    assert gs.measure(team, design=gs.designs.Agents(4), d_max=1e6).interval == certified.interval


@pytest.mark.parametrize("design", [gs.designs.Bernoulli(0.5), gs.designs.Projections(4)], ids=str)
def test_designs_that_cannot_stop_refuse_a_budget(design: gs.designs.Design) -> None:
    with pytest.raises(gs.InputError, match="budget"):
        gs.measure(behavior(), design=design, budget=gs.Budget(distances=10))


def test_budgets_may_be_written_as_floats() -> None:
    assert gs.Budget(distances=1e5).distances == 100_000
    e = gs.measure(behavior(1000, 20), design=gs.designs.Agents(4), budget=gs.Budget(distances=1e3))
    assert e.distances <= 1000
    with pytest.raises(gs.InputError, match="distances"):
        gs.Budget(distances=math.inf)


@pytest.mark.parametrize("distances", [12, 18, 40])
def test_small_budgets_hold_with_a_tolerance(distances: int) -> None:
    e = gs.measure(behavior(), design=gs.designs.Agents(4), rel_tol=0.01, budget=gs.Budget(distances=distances))
    assert e.distances <= distances
    assert e.met is False


def test_a_subset_of_more_observations_than_there_are_is_all_of_them() -> None:
    e = gs.measure(behavior(50), design="matching", max_observations=5000, rel_tol=1e-9)
    assert e.distances <= 6 * (50 + 12)


def test_joint_modules_count_everybody() -> None:
    def joint(observations: torch.Tensor) -> torch.Tensor:
        return observations[..., :1].unsqueeze(-2) * torch.arange(20.0).view(20, 1)

    e = gs.measure(as_team(joint), torch.randn(300, 2), design=gs.designs.Agents(2))
    assert e.policy_evaluations == 20 * 300
    assert e.agents == 20


def test_one_look_calls_back_too() -> None:
    seen: list[gs.Estimate] = []
    gs.measure(behavior(), design=gs.designs.Matching(), callback=seen.append)
    assert len(seen) == 1


@pytest.mark.parametrize(("n", "observations"), [(2, 1), (3, 1), (4, 1), (3, 2), (5, 3)])
def test_every_estimate_is_json(n: int, observations: int) -> None:
    team = gs.Deterministic(torch.randn(observations, n, 2, generator=torch.Generator().manual_seed(n)))
    for design in (*FRESH, gs.designs.Complete(), gs.designs.Projections(1), gs.designs.Uniform(1)):
        json.dumps(gs.measure(team, design=design).to_dict(), allow_nan=False)


@pytest.mark.parametrize("options", [{"design": 5}, {"budget": 100}])
def test_words_and_numbers_are_not_designs_or_budgets(options: dict[str, object]) -> None:
    with pytest.raises(gs.InputError, match="gs\\."):
        gs.measure(behavior(), **options)  # type: ignore[arg-type]


def test_strings_are_read_as_at_the_command_line() -> None:
    team = behavior()
    for text in ("bernoulli:0.3", "matching", "agents:4"):
        by_text, by_value = (gs.measure(team, design=d, seed=2) for d in (text, gs.designs.parse(text)))
        assert by_text.value == by_value.value
        assert by_text.design == text
    limited = gs.measure(team, design="agents:4", budget="120")
    assert limited.value == gs.measure(team, design="agents:4", budget=gs.Budget(distances=120)).value


@pytest.mark.parametrize("second", [gs.graphs.complete(12), gs.designs.Matching(), "bernoulli:0.1"], ids=type)
def test_which_pairs_is_not_an_observation(second: object) -> None:
    with pytest.raises(gs.InputError, match=r"`observations`.*design="):
        gs.measure(behavior(), second)  # type: ignore[arg-type]


def test_positions_make_a_local_measure() -> None:
    team, positions = behavior(), torch.rand(12, 2, generator=torch.Generator().manual_seed(0))
    for text, graph in (("knn:3", gs.graphs.knn(positions, 3)), ("radius:0.4", gs.graphs.radius(positions, 0.4))):
        e = gs.measure(team, design=text, positions=positions)
        assert (e.target, e.design) == ("Graph-SND", text)
        assert e.value == gs.measure(team, design=graph).value


def test_an_exact_measurement_that_takes_long_says_what_a_tolerance_would_cost(monkeypatch) -> None:
    team = behavior()
    monkeypatch.setattr("graphsnd.estimation.measuring.SLOW", 0.0)
    with pytest.warns(gs.estimation.SlowMeasurementWarning, match=r"All pairs take about .* rel_tol=0\.01 would take"):
        assert gs.measure(team).exact
    for asked in ({"rel_tol": 0.1}, {"design": "complete"}, {"budget": "1e9"}, {"max_observations": 9}):
        gs.measure(team, **asked)  # warnings are errors here


BASELINES = Path(__file__).parents[1] / "baselines" / "measure-demo.json"
CASES = json.loads(BASELINES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_the_demo_team_has_the_numbers_of_the_baseline(case: str) -> None:
    """The same draws, summed in the same order; the last digit of an interval may depend on the number of threads."""
    from graphsnd.plots import example_team

    first, _, rest = case.partition(", ")
    design = {"nothing": None, "horvitz-thompson bernoulli:0.1": "bernoulli:0.1"}.get(first, first)
    options: dict[str, object] = {"weighting": "horvitz-thompson"} if first.startswith("horvitz") else {}
    if rest.startswith("rel_tol"):
        options["rel_tol"] = float(rest.removeprefix("rel_tol "))
    elif rest:
        options["max_observations"] = int(rest.removesuffix(" observations"))
    team = example_team()
    e = gs.measure(team.behavior, design=design, positions=team.positions, **options).to_dict()
    for name, value in CASES[case].items():
        assert e[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-13)), name
