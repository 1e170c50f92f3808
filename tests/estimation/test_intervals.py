from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.graphs.graph import Sampling
from tests.estimation.teams import REPETITIONS, inside, on_and_off

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
        e = gs.measure(team, design="ring:2", clusters=clusters, seed=seed)
        alone = gs.measure(team, design="ring:2", clusters=torch.arange(len(clusters)), seed=seed)
        assert e.population_interval is not None
        assert alone.population_interval is not None
        covered["clustered"] += inside(truth, e.population_interval)
        covered["blocks of one"] += inside(truth, alone.population_interval)
    assert covered["clustered"] / REPETITIONS >= 0.94 - 0.01
    assert covered["blocks of one"] / REPETITIONS < 0.7  # what ignoring the episodes costs


GRAPHS = {
    "bernoulli": lambda seed: gs.graphs.bernoulli(16, 0.2, seed=seed),
    "uniform": lambda seed: gs.graphs.uniform(16, 24, seed=seed),
    "regular": lambda seed: gs.graphs.random_regular(16, 3, seed=seed),
}


@pytest.mark.parametrize("draw", GRAPHS.values(), ids=GRAPHS.keys())
def test_one_graph_for_all_observations_covers_the_population_with_both_errors(
    draw: Callable[[int], gs.Graph],
) -> None:
    base = torch.linspace(0, 1, 16, dtype=torch.float64).view(1, 16, 1)
    truth, generator = float(gs.snd(gs.Deterministic(base))), torch.Generator().manual_seed(0)
    clusters, covered, either = torch.arange(40).repeat_interleave(2), 0, [0, 0]
    for seed in range(REPETITIONS):
        level = torch.rand(40, generator=generator, dtype=torch.float64).repeat_interleave(2) * 2
        team, graph = gs.Deterministic(level.view(-1, 1, 1) * base), draw(seed)
        e = gs.measure(team, design=graph, clusters=clusters)
        assert e.population_interval is not None
        assert e.observation_error is not None
        covered += inside(truth, e.population_interval)
        alone = math.sqrt(e.observation_error**2 - e.standard_error**2)
        for place, error in enumerate((e.standard_error, alone)):
            either[place] += abs(e.value - truth) <= 1.96 * error
        if seed < 3:
            stream = gs.SndAccumulator(16, graph=graph, clusters=True)
            stream.update(team, clusters)
            assert stream.compute().population_interval == pytest.approx(e.population_interval, rel=1e-6)
    assert covered / REPETITIONS >= 0.92
    assert max(either) / REPETITIONS < 0.88  # what one of the errors alone would cover


def test_an_unfinished_pass_keeps_its_error() -> None:
    from graphsnd.estimation.intervals import guaranteed_radius, standard_errors
    from graphsnd.estimation.moments import draw
    from graphsnd.estimation.source import as_source

    source, template = as_source(on_and_off(), None, None, "auto"), gs.designs.parse("matching").draw(16)
    truth, generator, misses = float(gs.snd(on_and_off())), torch.Generator().manual_seed(0), 0
    found = []
    for _ in range(60):
        index = torch.cat([torch.randperm(4000, generator=generator) for _ in range(2)])[:7200]
        sample = draw(source, template, index, generator)
        radius, _ = guaranteed_radius(sample, template, 16, 4000, math.sqrt(2), 0.05)
        misses += abs(sample.value() - truth) > radius
        found.append((sample.value() - truth, standard_errors(sample, template, 16, 4000)[0]))
    assert misses <= 3
    spread = math.sqrt(sum(off**2 for off, _ in found) / 60)
    assert spread == pytest.approx(found[0][1], rel=0.35)


@pytest.mark.parametrize(
    "graph", [None, gs.graphs.uniform(2, 1), gs.graphs.cliques([0, 0])], ids=["all", "drawn", "fixed"]
)
def test_observation_error_of_independent_observations(graph: gs.Graph | None) -> None:
    gaps = np.random.default_rng(3).exponential(size=6400)
    actions = torch.from_numpy(np.stack([np.zeros_like(gaps), gaps], 1)[..., None])
    error = gs.measure(gs.Deterministic(actions), design=graph).observation_error
    # Exponential: standard deviation 1. From 32 batches it is known to 1/sqrt(62), 13%.
    assert error == pytest.approx(1 / math.sqrt(6400), rel=0.4)


def test_observation_error_sees_that_neighbours_are_alike() -> None:
    gaps = np.repeat(np.random.default_rng(4).exponential(size=100), 64)
    actions = torch.from_numpy(np.stack([np.zeros_like(gaps), gaps], 1)[..., None])
    error = gs.measure(gs.Deterministic(actions)).observation_error
    assert error == pytest.approx(1 / math.sqrt(100), rel=0.4)


@pytest.mark.parametrize(("observations", "known"), [(1, False), (15, False), (16, True), (33, True)])
def test_observation_error_needs_observations(observations: int, known: bool) -> None:
    behavior = team(4, observations=observations)
    for graph in (None, gs.graphs.uniform(4, 3)):
        assert (gs.measure(behavior, design=graph).observation_error is not None) == known


def test_the_error_of_a_relabelled_star_is_not_too_small() -> None:
    # Agents that differ in how far they are from all others: over all centres, which are all relabellings, the squared
    # error is at least the variance. Edges of one star spread half as much as all pairs do.
    n = 8
    members = gs.Deterministic(torch.diag(torch.arange(1.0, n + 1)).expand(2, n, n))
    stars = [torch.tensor([[center, other] for other in range(n) if other != center]) for center in range(n)]
    drawn = [gs.Graph(n, star, inclusion=2 / n, sampling=Sampling.RELABELLED) for star in stars]
    estimates = [gs.measure(members, design=graph) for graph in drawn]
    values = np.array([one.value for one in estimates])
    assert values.mean() == pytest.approx(float(gs.snd(members)))
    assert np.mean([one.standard_error**2 for one in estimates]) > 0.98 * values.var()


def distances_team(distances: torch.Tensor) -> gs.Behavior:
    """Two agents with these distances, one for each observation."""
    return gs.Deterministic(torch.stack([torch.zeros_like(distances), distances], dim=-1).unsqueeze(-1))


@pytest.mark.parametrize("layout", ["time first", "environments first"])
@pytest.mark.parametrize(("environments", "least"), [(24, 0.92), (8, 0.90)])
def test_environments_are_found_whichever_axis_they_are(environments: int, least: float, layout: str) -> None:
    """Contiguous blocks of the flattened rows covered 12 to 43% where time comes first, and 68 to 85% otherwise."""
    generator, covered, named = torch.Generator().manual_seed(environments), 0, 0
    axis = 1 if layout == "time first" else 0
    for _ in range(2000):
        levels = 5 + 0.5 * torch.randn(environments, 1, generator=generator, dtype=torch.float64)
        values = levels + torch.randn(environments, 50, generator=generator, dtype=torch.float64)
        estimate = gs.measure(distances_team(values.T if axis else values))
        assert estimate.population_interval is not None
        covered += inside(5.0, estimate.population_interval)
        named += estimate.clusters == f"the {environments} entries of axis {axis}"
    assert covered >= least * 2000
    assert named > 1980


@pytest.mark.parametrize("environments", [24, 8])
def test_independent_observations_pay_little_for_their_axes(environments: int) -> None:
    generator, widths = torch.Generator().manual_seed(0), []
    for _ in range(300):
        values = 5 + torch.randn(50, environments, generator=generator, dtype=torch.float64)
        by_axis, by_block = (gs.measure(distances_team(each)) for each in (values, values.flatten()))
        assert by_block.clusters.startswith("assumes blocks of ")
        assert by_axis.population_interval is not None
        assert by_block.population_interval is not None
        widths.append([np.ptp(by_axis.population_interval), np.ptp(by_block.population_interval)])
    wide, narrow = np.mean(widths, axis=0)
    assert wide / narrow < 1.5


def test_the_agents_that_observed_are_no_sample() -> None:
    """What each agent observed differs from agent to agent; the moments are what was drawn."""
    policies = {name: (lambda o, k=k: k * o) for k, name in enumerate("abc")}
    seen = {name: 10 * k + torch.randn(200, 1, dtype=torch.float64) for k, name in enumerate("abc")}
    assert gs.measure(policies, seen).clusters == "assumes blocks of 18 rows are independent; pass clusters="
    by_moment = torch.arange(200).repeat_interleave(3) * 32 // 200
    pooled = torch.stack(list(seen.values()), dim=1).flatten(0, 1)
    expected = gs.measure(policies, pooled, clusters=by_moment).observation_error
    assert gs.measure(policies, seen).observation_error == pytest.approx(expected, rel=1e-12)
    seen = {name: rows.view(50, 4, 1) for name, rows in seen.items()}
    assert gs.measure(policies, seen).clusters in ("the 50 entries of axis 0", "the 4 entries of axis 1")


def test_given_clusters_are_named() -> None:
    team = distances_team(torch.rand(40, dtype=torch.float64))
    assert gs.measure(team, clusters=torch.arange(40) // 5).clusters == "8 clusters, as given"
    assert gs.measure(team, clusters=torch.zeros(40, dtype=torch.int64)).clusters.startswith("unknown")


def unequal_camps(n: int = 25, small: int = 3) -> gs.Behavior:
    generator = torch.Generator().manual_seed(0)
    actions = 0.1 * torch.randn(120, n, 2, generator=generator, dtype=torch.float64)
    actions[:, :small] += 3
    return gs.Deterministic(actions)


@pytest.mark.parametrize("design", ["uniform:5", "regular:4", "regular:8"])
def test_no_asymptotic_interval_where_nothing_is_large(design: str) -> None:
    """Five pairs, and a camp of three agents whose three pairs no graph of 100 shows often enough."""
    for seed in range(40):
        estimate = gs.measure(unequal_camps(), design=design, seed=seed)
        assert estimate.asymptotic_interval is None
        assert estimate.freedom < 30


def test_draws_where_few_observations_carry_the_diversity_have_no_asymptotic_interval() -> None:
    actions = torch.zeros(120, 25, 2, dtype=torch.float64)
    actions[[7, 50, 90]] = torch.randn(3, 25, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for design in ("matching", "ring:2", "agents:4"):
        for seed in range(20):
            assert gs.measure(gs.Deterministic(actions), design=design, seed=seed).asymptotic_interval is None


def test_a_tolerance_without_a_guarantee_needs_draws_that_tell() -> None:
    """Policies without a bound whose diversity is at 1% of observations: the first 256 draws missed it in 11 of 100."""
    generator = torch.Generator().manual_seed(2)
    actions = 0.05 * torch.randn(1, 40, 1, generator=generator, dtype=torch.float64).repeat(5000, 1, 1)
    actions[::100] = 5 * torch.randn(1, 40, 1, generator=generator, dtype=torch.float64)
    policies = [lambda seen, own=own: own[seen[:, 0].long()] for own in actions.unbind(1)]
    truth, index = float(gs.snd(gs.Deterministic(actions))), torch.arange(5000.0).unsqueeze(1)
    found = [gs.measure(policies, index, design="agents:4", rel_tol=0.2, seed=seed) for seed in range(100)]
    assert all(e.met and e.freedom >= 30 and not e.guaranteed for e in found)
    assert sum(abs(e.value - truth) > 0.2 * truth for e in found) == 0
    assert sum(inside(truth, e.interval) for e in found) >= 92
