from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from graphsnd import bounds, graphs
from graphsnd.bounds.relabelling import paper_random_regular_bound
from graphsnd.metric import pairwise
from paper import theory
from paper.expanders import initial_team
from paper.expanders.comparison import Data as Ablation
from paper.expanders.comparison import Distances, TeamRows, compare, measure_small_graphs, summarise_graph
from paper.expanders.families import Family
from paper.experiment import Scale
from paper.rows import decode
from paper.runner import RESULTS, Cells, read_results, write_result
from tests.paper.committed import assert_same_numbers


@pytest.mark.parametrize(("n", "degree"), [(4, 3), (4, 2), (5, 2), (3, 2)])
def test_loops_pull_the_mean_of_configurations_down(n: int, degree: int) -> None:
    every, simple = theory.configuration_means(n, degree)
    assert every == pytest.approx((n * degree - degree) / (n * degree - 1), rel=1e-12)
    assert simple == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("n", "degree"), [(4, 2), (5, 2), (3, 4), (6, 2)])
def test_a_choice_moves_the_expectation_within_twice_the_largest_distance(n: int, degree: int) -> None:
    """The step of the mended proof, exactly: the mean sum over all matchings, by the partner of the first stub."""
    matchings, widest = list(theory.matchings(range(n * degree))), 0.0
    for seed in range(30):
        matrix = torch.rand(n, n, generator=torch.Generator().manual_seed(seed)).round().triu(1)
        distances = (matrix + matrix.T).tolist()
        sums: dict[int, list[float]] = {}
        for matching in matchings:
            whole = sum(distances[a // degree][b // degree] for a, b in matching)
            sums.setdefault(matching[0][1], []).append(whole)
        means = [sum(values) / len(values) for values in sums.values()]
        widest = max(widest, max(means) - min(means))
    assert 1 <= widest <= 2  # distances are at most 1


def test_the_mended_radius_is_the_sum_of_what_the_steps_cost() -> None:
    n, degree, delta = 100, 7, 0.1
    chance = 0.5 * math.exp(-(degree**2 - 1) / 4 - degree**3 / (12 * n))
    radius = theory.repaired_over_printed(n, degree) * paper_random_regular_bound(1.0, n, degree, delta) - 1 / n
    assert 2 * math.exp(-n * degree * radius**2 / 4) / chance == pytest.approx(delta)
    assert (degree - 1) / (n * degree - 1) < 1 / n  # what loops cost, of SND


def test_an_empty_graph_must_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = theory.measure_points

    def blind(graph: graphs.Graph, points: torch.Tensor) -> object:
        return SimpleNamespace(value=0.0) if not graph.m else measure(graph, points)

    monkeypatch.setattr(theory, "measure_points", blind)
    assert theory.fallback_bias() > 0.5  # at p = 0.1 half of the graphs are empty


def test_the_divergence_without_its_root_is_no_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theory, "pairwise", lambda *args: pairwise(*args) ** 2)
    assert theory.triangle_excess() > 0.01


@pytest.mark.parametrize("stubs", [0, 2, 4, 8])
def test_every_matching_once(stubs: int) -> None:
    made = [tuple(map(tuple, matching)) for matching in theory.matchings(range(stubs))]
    assert len(set(made)) == len(made) == math.prod(range(1, stubs, 2))
    assert all(sorted(itertools.chain(*matching)) == list(range(stubs)) for matching in made)


def test_lemma_16_would_notice_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    assert min(theory.uniformity_chances(1000)) * 20 > 0.01
    honest = graphs.bernoulli

    def crooked(n: int, p: float, *, seed: torch.Generator) -> graphs.Graph:
        graph = honest(n, p, seed=seed)
        return honest(n, p, seed=seed) if graph.m and graph.edges[0].tolist() == [0, 1] else graph

    monkeypatch.setattr(graphs, "bernoulli", crooked)
    assert min(theory.uniformity_chances(1000)) * 20 < 0.01


def test_bounds_of_a_row_are_those_of_the_library() -> None:
    n, degree = 30, 5
    graph = graphs.random_regular(n, degree, seed=0)
    distances = Distances.of(pairwise(initial_team(n, observations=64)))
    row = compare(distances, graph, summarise_graph(graph, Family.REGULAR, degree, seed=0, forwarding=False))
    (found,) = theory.read_bounds(Ablation((TeamRows(False, False, None, (row,)),), measure_small_graphs(), 64))
    largest = float(distances.matrix.max()) / distances.snd
    assert found.exact == pytest.approx(bounds.random_regular_bound(largest, n, degree, 0.1))
    assert found.probabilistic == paper_random_regular_bound(largest, n, degree, 0.1)
    spectrum = bounds.spectrum(graph)
    assert (found.ramanujan is not None) == (spectrum.second <= 2 * math.sqrt(degree - 1))
    if found.ramanujan is not None:
        assert found.error <= found.spectral <= found.ramanujan * (1 + 1e-9)


def test_a_bound_of_one_is_vacuous_and_a_breach_is_counted() -> None:
    row = theory.Bounded(50, 6, True, False, 0.5, 1.0, 1.2, 0.9, 0.1)
    rows = [row, replace(row, error=1.3, spectral=0.99, probabilistic=1.0)]
    data = theory.Data(10, [0.5, 0.01], 0.9, 1.0, rows, 0.0, 0.0, [])
    numbers = theory.summarise(data)
    assert numbers["conditional_uniformity_p"].value == 0.02
    assert numbers["ramanujan_violations"] is not None
    assert numbers["ramanujan_violations"].value == 1
    shares = (numbers["spectral_vacuous"], numbers["probabilistic_vacuous"], numbers["exact_vacuous"])
    assert [one.value for one in shares if one] == [0.5, 0.5, 0]
    assert numbers["vacuous_density"] is not None
    assert numbers["vacuous_density"].value == 36 / 50


def test_the_ablation_of_the_same_run_is_read(tmp_path: Path) -> None:
    # Results of another folder are not those of the committed one, which would be read in its place.
    committed = read_results(RESULTS, "expanders")[Scale.LAPTOP]
    few = replace(committed, data=committed.data | {"teams": committed.data["teams"][:1]})
    write_result(few, tmp_path / "out" / "expanders" / "laptop.json")
    outcome = theory.run(Scale.LAPTOP, Cells(tmp_path / "work", out=tmp_path / "out"))
    assert outcome.data.rows == theory.read_bounds(decode(Ablation, few.data))
    assert outcome.sources == ("results/expanders/laptop.json",)


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_committed_numbers_are_those_of_the_committed_ablation(scale: Scale) -> None:
    committed = read_results(RESULTS, "theory")[scale]
    data = decode(theory.Data, committed.data)
    assert_same_numbers(theory.summarise(data), committed.numbers)
    ablation = decode(Ablation, read_results(RESULTS, "expanders")[scale].data)
    assert theory.read_bounds(ablation) == data.rows
    theory.draw(data).canvas.draw()
