from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from benchmarks import calls
from benchmarks.timing import Options

CPU = Options(torch.device("cpu"), quick=True)


def test_a_case_with_its_contestants() -> None:
    row = calls.compare(calls.Case(6, 8), 16, CPU)
    assert row["contestants"].keys() == {"one_call", "repeated", "queued", "cdist"}
    assert row["contestants"]["one_call"]["repeats"] == 1
    assert row["contestants"]["queued"]["repeats"] > 1
    assert row["fraction_of_limit"] is None


def test_a_distance_without_points_has_no_cdist() -> None:
    row = calls.compare(calls.Case(6, 8, gs.JensenShannon()), 16, CPU)
    assert row["case"] == "jensen-shannon"
    assert "cdist" not in row["contestants"]


def test_full_covariances() -> None:
    case = calls.Case(6, 3, correlated=True)
    behavior = calls.example(case, 16, CPU.device, 0)
    assert isinstance(behavior, gs.MultivariateGaussian)
    assert float(calls.calls(case, behavior)()) == float(gs.snd(behavior)) > 0  # type: ignore[arg-type]
    row = calls.compare(case, 16, CPU)
    assert row["case"] == "wasserstein of covariances"
    assert "cdist" not in row["contestants"]


def test_the_first_call_of_a_process() -> None:
    assert 0 < calls.time_first() < 60


def test_gradients_are_those_of_snd() -> None:
    case = calls.Case(6, gradient=True)
    behavior = calls.example(case, 16, CPU.device, 0)
    assert isinstance(behavior, gs.Gaussian)
    gs.snd(behavior).backward()
    timed = calls.calls(case, behavior)()
    assert isinstance(timed, tuple)
    assert torch.equal(timed[0], behavior.loc.grad)
    assert torch.equal(timed[1], behavior.scale.grad)


def test_part_of_the_pairs() -> None:
    row = calls.compare_sampled(12, 16, CPU)
    assert row["contestants"].keys() == {"snd", "kept_graph", "new_graph", *calls.DESIGNS}
    assert row["over_snd"]["snd"] == 1
    _, (table, columns) = calls.tables({"calls": [], "sampled": [row]}).values()
    assert table == [row]
    assert "over_snd.new_graph" in columns


@pytest.mark.gpu
def test_a_case_on_a_gpu_reaches_part_of_the_limit() -> None:
    row = calls.compare(calls.Case(50, 8), 256, Options(torch.device("cuda", 0), quick=True))
    assert 0 < row["fraction_of_limit"] < 1
    assert row["peak_bytes"] >= 256 * 50 * 8 * 4
