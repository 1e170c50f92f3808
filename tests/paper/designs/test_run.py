from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import graphsnd as gs
from benchmarks.design_errors import design_name, measure_errors
from paper.cells import Cells
from paper.designs import run as designs
from paper.designs.benchmarks import read_benchmarks
from paper.designs.numbers import numbers
from paper.experiment import Scale
from paper.shared.expected import Redrawn

RESULTS = Path(__file__).parents[3] / "paper" / "results"


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    cells = Cells(tmp_path_factory.mktemp("designs"))
    return designs.run(Scale.SMOKE, cells), cells


def team(n: int = 20, observations: int = 200) -> gs.Gaussian:
    seeded = torch.Generator().manual_seed(0)
    loc = torch.randn(n, 2, generator=seeded) + 0.7 * torch.randn(observations, n, 2, generator=seeded)
    return gs.Gaussian(loc, torch.ones(2))


@pytest.mark.parametrize("n", [12, 50, 100, 500])
def test_redrawn_pairs_are_as_many_or_fewer(n: int) -> None:
    budget = 0.1 * math.comb(n, 2)
    found = designs.designs(n)
    assert found[0].pairs(n) == pytest.approx(budget)
    for design in found[1:4]:
        assert design.pairs(n) == pytest.approx(budget, rel=0.2)
    for design in found[4:] if n >= 50 else found[6:]:
        assert design.pairs(n) <= budget + 1


def test_the_cheapest_are_good_enough_and_no_cheaper_one_is() -> None:
    redrawn = Redrawn.of(team())
    wanted = redrawn.error(gs.FreshMatching(3)) * 1.001
    assert designs.fewest_pairs(redrawn, wanted).count == 3
    assert designs.fewest_pairs(redrawn, 1e-9).count == 10
    best = designs.fewest_agents(redrawn, wanted)
    assert redrawn.error(best.design, best.count) <= wanted
    spent = best.count * best.design.size
    for size in range(2, 20):
        count = next(t for t in range(2, 201) if t == 200 or redrawn.error(gs.AgentSubset(size), t) <= wanted)
        assert spent <= max(2, count) * size or redrawn.error(gs.AgentSubset(size), count) > wanted


def test_measured_errors_are_the_exact_ones() -> None:
    behavior = team(12, 40)
    distances, redrawn = gs.pairwise(behavior).double(), Redrawn.of(behavior)
    truth = float(gs.snd(behavior))
    contest = [*designs.designs(12), gs.ObservationSubset(15, gs.AgentSubset(4))]
    for design in contest:
        found = measure_errors(behavior, design, truth, draws=100, seed=0)
        exact = designs._expected(design, distances, redrawn)
        assert exact is not None
        low, high = found.rmse_interval
        assert 0.85 * low < exact / truth < 1.15 * high, design_name(design)
        assert abs(found.bias) < 4 * found.bias_error, design_name(design)


def test_the_smoke_run(outcome) -> None:  # type: ignore[no-untyped-def]
    found, cells = outcome
    yaml = pytest.importorskip("yaml")
    text = (Path(designs.__file__).parents[1] / "claims.yaml").read_text(encoding="utf-8")
    wanted = {claim["number"] for claim in yaml.safe_load(text) if claim["experiment"] == "designs"}
    assert wanted - set(found.numbers) == {"regular_over_bernoulli_rmse", "evaluation_share"}  # of 100 agents
    assert found.numbers["evaluations_of_graph"].value > 0.99
    steps: list[str] = []
    assert designs.run(Scale.SMOKE, Cells(cells.root, step=steps.append)) == found
    assert steps == []


def test_numbers(outcome) -> None:  # type: ignore[no-untyped-def]
    data = json.loads(json.dumps(outcome[0].data))
    row = {"rmse": 0.01, "bias": 0.0, "bias_error": 0.001, "exact": 0.01, "role": ""}
    data["teams"] = [
        {
            "team": "trained,n=100,seed=0",
            "n": 100,
            "observations": 10,
            "designs": [
                row | {"name": "fixed bernoulli:0.1"},
                row | {"name": "fixed regular:10", "rmse": 0.007},
                row | {"name": "fresh circulant of degree 8", "rmse": 0.001, "bias": 0.002},
                row | {"name": "fresh matching of 2 pairs", "role": "fewest distances", "distances": 20},
                row | {"name": "2 random agents", "role": "fewest evaluations", "evaluations": 12},
            ],
        }
    ]
    data["evaluations"] = {"n": 100, "seconds": {"answers": [3.0], "pairs": [1.0]}, "touched": [1.0, 0.98]}
    found = {key: one.value for key, one in numbers(data).items()}
    assert found["fresh_over_graph_rmse"] == pytest.approx(0.1)
    assert found["regular_over_bernoulli_rmse"] == pytest.approx(0.7)
    assert found["distances_needed"] == pytest.approx(20 / 49_500)
    assert found["evaluations_needed"] == pytest.approx(12 / 1000)
    assert found["largest_design_z"] == pytest.approx(2)
    assert found["evaluation_share"] == pytest.approx(0.75)
    assert found["evaluations_of_graph"] == pytest.approx(0.99)


@pytest.mark.skipif(not (RESULTS / "designs").is_dir(), reason="needs the results of the repository")
def test_committed_benchmarks(tmp_path: Path) -> None:
    rows, read = read_benchmarks(RESULTS)
    assert len(read) == 2
    assert {row["n"] for row in rows} >= {100}
    assert all(row["all_pairs_s"] > 0 and row["graph_s"] > 0 for row in rows)
    assert read_benchmarks(tmp_path) == ([], [])


def test_the_figure(outcome) -> None:  # type: ignore[no-untyped-def]
    figure = designs.EXPERIMENT.figure(json.loads(json.dumps(outcome[0].data)))
    assert len(figure.axes) == 2
    figure.canvas.draw()
