from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import pytest
import torch

import graphsnd as gs
from paper.cells import Cells
from paper.experiment import Scale
from paper.mpe import panel as mpe_panel
from paper.mpe import run as mpe
from paper.mpe import times as mpe_times
from paper.mpe.panel import ESTIMATORS, draw, matrix, summarise
from paper.shared.pairloop import all_pairs

PAIRS = list(itertools.combinations(range(10), 2))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    cells = Cells(tmp_path_factory.mktemp("mpe"))
    return mpe.run(Scale.SMOKE, cells), cells


def test_an_estimator_against_a_plain_loop() -> None:
    distances = torch.rand(45, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    estimator = ESTIMATORS[0]
    chosen = draw(estimator, 10, 300, 7)
    found = summarise(estimator, chosen, distances)
    exact = float(distances.mean())
    errors, convention, beyond = [], [], 0
    for row in chosen.tolist():
        kept = [float(d) for d, keep in zip(distances, row, strict=True) if keep]
        convention.append((sum(kept) / len(kept) if kept else 0.0) - exact)
        if kept:
            errors.append(sum(kept) / len(kept) - exact)
            beyond += abs(errors[-1]) >= gs.bounds.hoeffding(1.0, len(kept), 0.1)
    assert found["empty"] == 300 - len(errors) > 0
    assert found["bias"] == pytest.approx(sum(errors) / len(errors))
    assert found["bias_empty_as_zero"] == pytest.approx(sum(convention) / 300)
    assert found["violations"] == pytest.approx(sum(abs(e) > 0.05 for e in errors) / len(errors))
    assert found["hoeffding_violations"] == pytest.approx(beyond / len(errors))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.name)
def test_errors_are_the_exact_ones(estimator: mpe_panel.Estimator) -> None:
    distances = torch.rand(45, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = summarise(estimator, draw(estimator, 10, 1200, 0), distances)
    assert found["rmse"] == pytest.approx(found["exact_rmse"], rel=0.09)
    assert abs(found["bias"]) < 4 * found["bias_error"]


def test_matrix_and_pieces() -> None:
    distances = torch.arange(45.0)
    full = matrix(distances)
    assert [float(full[i, j]) for i, j in PAIRS] == distances.tolist()
    chosen = draw(ESTIMATORS[2], 10, 50, 3)
    apart = 0
    for row in chosen.tolist():
        graph = nx.empty_graph(10)
        graph.add_edges_from(pair for pair, keep in zip(PAIRS, row, strict=True) if keep)
        assert all(degree == 2 for _, degree in graph.degree())
        apart += not nx.is_connected(graph)
    assert mpe_panel.disconnected(chosen) == pytest.approx(apart / 50)


def test_the_loop_is_snd() -> None:
    probs = torch.rand(6, 10, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    team = gs.Categorical(probs / probs.sum(-1, keepdim=True))
    assert mpe_times.loop_mean(team.probs.transpose(0, 1), all_pairs(10).tolist()) == pytest.approx(float(gs.snd(team)))


def test_numbers_of_all_claims(outcome) -> None:  # type: ignore[no-untyped-def]
    yaml = pytest.importorskip("yaml")
    text = (Path(mpe.__file__).parents[1] / "claims.yaml").read_text(encoding="utf-8")
    wanted = {claim["number"] for claim in yaml.safe_load(text) if claim["experiment"] == "mpe"}
    # Policies that hardly differ have no draw beyond 0.05, and no ratio of such shares.
    assert wanted - set(outcome[0].numbers) <= {"real_over_noise_violation"}


def test_teams_are_measured_on_what_is_said(outcome) -> None:  # type: ignore[no-untyped-def]
    data = outcome[0].data
    counts = {row["protocol"]: row["observations"] for row in data["teams"]}
    assert counts == {"rollout": 25 * 4 * 10, "noise": 1}
    assert {row["regime"] for row in data["panel"]} == set(mpe.REGIMES)
    for row in data["teams"]:
        assert row["snd"] == pytest.approx(sum(row["distances"]) / 45)


def test_a_second_run_repeats_nothing(outcome) -> None:  # type: ignore[no-untyped-def]
    first, cells = outcome
    steps: list[str] = []
    again = mpe.run(Scale.SMOKE, Cells(cells.root, step=steps.append))
    assert steps == []
    assert again == first


def test_the_figure(outcome) -> None:  # type: ignore[no-untyped-def]
    figure = mpe.EXPERIMENT.figure(json.loads(json.dumps(outcome[0].data)))
    assert len(figure.axes) == 3
    figure.canvas.draw()


def test_every_call_says_how_many_pairs_it_took(outcome) -> None:  # type: ignore[no-untyped-def]
    times = outcome[0].data["times"]
    for protocol in mpe.PROTOCOLS:
        for way in ("loop", "fused"):
            assert times[protocol][f"{way}, all pairs"]["mean_pairs"] == 45
            assert times[protocol][f"{way}, all pairs"]["speedup"]["value"] == 1
            assert times[protocol][f"{way}, regular_2"]["mean_pairs"] == 10
            assert 0 < times[protocol][f"{way}, bernoulli_025"]["mean_pairs"] < 25
