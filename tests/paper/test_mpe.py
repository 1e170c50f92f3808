from __future__ import annotations

from functools import partial

import pytest
import torch

import graphsnd as gs
from paper import mpe
from paper.experiment import Outcome, Scale
from paper.runner import Cells
from paper.shared.calls import all_pairs, loop_mean


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Cells]:
    cells = Cells(tmp_path_factory.mktemp("mpe"))
    return mpe.run(Scale.SMOKE, cells), cells


def test_the_loop_is_snd() -> None:
    probs = torch.rand(6, 10, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    team = gs.Categorical(probs / probs.sum(-1, keepdim=True))
    apart = partial(mpe.total_variation, team.probs.transpose(0, 1))
    assert loop_mean(apart, all_pairs(10).tolist()) == pytest.approx(float(gs.snd(team)))


def test_teams_are_measured_on_what_is_said(outcome: tuple[Outcome, Cells]) -> None:
    task = mpe.make_task(mpe.SIZES[Scale.SMOKE])
    trainer = task.make_trainer("cpu")
    counts = {protocol: mpe.answer(trainer, 0, protocol).observations for protocol in mpe.PROTOCOLS}
    assert counts == {"rollout": 25 * 4 * 10, "noise": 1}
    assert {row.regime for row in outcome[0].data.panel} == set(mpe.REGIMES)


def test_every_call_looks_at_its_pairs(outcome: tuple[Outcome, Cells]) -> None:
    times = outcome[0].data.times
    calls = mpe.make_calls(mpe.answer(mpe.make_task(mpe.SIZES[Scale.SMOKE]).make_trainer("cpu"), 0, "noise"))
    for way in ("loop", "fused"):
        assert times.rollout[f"{way}, all pairs"].speedup.value == times.noise[f"{way}, all pairs"].speedup.value == 1
        assert (calls[f"{way}, all pairs"](), calls[f"{way}, regular:2"]()) == (45, 10)
        assert 0 < sum(calls[f"{way}, bernoulli:0.25"]() for _ in range(20)) < 20 * 25
