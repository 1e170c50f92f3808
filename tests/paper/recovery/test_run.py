"""Recovery against a loop, and the propositions against known groups and estimators that are wrong on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import graphsnd as gs
from paper.cells import Cells
from paper.experiment import Outcome, Scale
from paper.judging.claims import load_claims
from paper.recovery import propositions
from paper.recovery.propositions import RootCounter, automorphisms, clusters, random_team, symmetric_graphs
from paper.recovery.run import EXPERIMENT, hidden, numbers, recover


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells")))


def test_all_routes_against_a_loop() -> None:
    team = random_team(4, torch.Generator().manual_seed(0))
    points = torch.cat([team.loc, team.scale], -1).numpy()
    gaps = [np.linalg.norm(points[:, i] - points[:, j], axis=1).mean() for i in range(4) for j in range(i)]
    routes = recover(team)
    assert {(route["route"], route["kernel"]) for route in routes} >= {("matrix", "reference"), ("direct", "cpu")}
    for route in routes:
        assert route["snd"] == pytest.approx(np.mean(gaps), rel=1e-13)
        assert route["graph_snd"] == pytest.approx(np.mean(gaps), rel=1e-13)


def test_the_smoke_run_holds_together(outcome: Outcome) -> None:
    found = {name: number.value for name, number in outcome.numbers.items()}
    assert found["largest_error"] < 1e-15
    assert found["snd_growth"] > 1
    assert found["nonnegativity_failures"] == found["distances_beyond_edges"] == 0
    assert max(found["automorphism_error"], found["partition_error"]) < 1e-14
    assert 0.5 <= found["knn_edges_share"] <= 1
    assert outcome.data["propositions"]["renaming"]["other"] > 0.01


def test_every_claim_has_its_number(outcome: Outcome) -> None:
    pytest.importorskip("yaml")
    assert {claim.number for claim in load_claims() if claim.experiment == "recovery"} <= outcome.numbers.keys()


def test_an_error_on_any_route_is_the_largest(outcome: Outcome) -> None:
    data = json.loads(json.dumps(outcome.data))
    data["teams"][0]["routes"][-1]["graph_snd"] += 0.5
    assert numbers(data["teams"], data["propositions"])["largest_error"].value == pytest.approx(0.5)


def test_orders_of_automorphism_groups() -> None:
    found = {name: len(list(automorphisms(graph))) for name, graph in symmetric_graphs().items()}
    # Dihedral groups, products of symmetric groups, signed permutations.
    known = {"ring": 20, "complete bipartite": 144, "hypercube": 48, "cliques": 72, "alternating ring": 10}
    assert {name: found[name] for name in known} == known
    assert found["wheel, spokes heavier"] == 14
    assert found["circulant"] >= 24


@pytest.mark.parametrize("wrong", [-1e-9, 1e-9])
def test_a_wrong_sign_or_zero_is_found(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(*given: object, **options: object) -> torch.Tensor:
        value = gs.graph_snd(*given, **options)  # type: ignore[arg-type]
        return value + wrong if float(value) == 0 else value

    assert propositions.nonnegativity_failures(40, 3) == 0
    monkeypatch.setattr(propositions, "graph_snd", shifted)
    assert propositions.nonnegativity_failures(40, 3) > 5


def test_distances_are_really_counted() -> None:
    team = random_team(7, torch.Generator().manual_seed(1))
    with RootCounter() as roots:
        gs.pairwise(team, backend="reference")
    assert roots.count == propositions.OBSERVATIONS * 49  # the plain matrix takes every pair twice, and the diagonal


def test_two_clusters_are_hidden_from_edges_within() -> None:
    model = random_team(4, torch.Generator().manual_seed(2))
    team, labels = clusters(model, 6, 0)
    gap = gs.pairwise(team).numpy()
    same = labels[:, None] == labels[None]
    upper = np.triu(np.ones_like(gap, dtype=bool), 1)
    assert gap[upper & same.numpy()].max() < 0.05 * gap[upper & ~same.numpy()].min()
    assert gap[~same.numpy()].mean() == pytest.approx(gs.pairwise(model).max().item(), rel=0.05)
    found = hidden(model, 300)
    assert found["share"] < 0.1
    assert abs(found["sampled"] - 1) < 2 * found["half_width"] < 0.2


def test_the_figure_has_three_panels(outcome: Outcome, tmp_path: Path) -> None:
    figure = EXPERIMENT.figure(json.loads(json.dumps(outcome.data)))
    assert len(figure.axes) == 3
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
