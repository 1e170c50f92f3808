from __future__ import annotations

import pytest
import torch

from benchmarks import speed
from benchmarks.timing import Clock, Options
from graphsnd.kernels import reference

CPU = torch.device("cpu")


def test_contestants_compute_the_same_snd() -> None:
    points, clock = speed.example_points(9, 33, CPU, 0), Clock(CPU)
    truth = reference.pair_totals(points)
    loop, cdist = speed.pair_loop(points, clock, 100.0, 0), speed.cdist(points, clock, 100.0)
    fused, backward = speed.fused(points)
    assert loop.share == cdist.share == 1.0
    assert loop.call() == pytest.approx(float(truth.mean()), rel=1e-5)
    torch.testing.assert_close(cdist.call().double(), truth, rtol=1e-5, atol=0)
    torch.testing.assert_close(fused.call(), truth, rtol=1e-6, atol=0)
    assert backward.call()[0].shape == points.values.shape


def test_a_small_budget_times_a_part_and_says_which() -> None:
    points, clock = speed.example_points(60, 256, CPU, 0), Clock(CPU)
    loop = speed.pair_loop(points, clock, 1e-3, 0)
    assert 0 < loop.share < 1
    assert loop.notes["pairs_timed"] == pytest.approx(loop.share * 60 * 59 / 2)


def test_the_kept_graph_stays_and_the_fresh_one_changes() -> None:
    kept, fresh = speed.sparse(speed.example_points(40, 8, CPU, 0), 0)
    assert torch.equal(kept.call(), kept.call())
    assert not torch.equal(fresh.call(), fresh.call())
    assert kept.notes["edges"] > 0


@pytest.mark.gpu
def test_a_small_team_on_a_gpu_reaches_part_of_the_limit() -> None:
    row = speed.compare(16, Options(torch.device("cuda", 0), quick=True))
    assert 0 < row["fraction_of_limit"] < 1
    assert row["contestants"].keys() >= {"pair_loop", "cdist", "fused", "fused_backward", "sparse", "sparse_fresh"}
