"""Teams of the core checks: the paper's settings, pooled observations, and training that continues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.rl import train
from graphsnd.rl.checkpoint import load_checkpoint
from paper.experiment import Scale
from paper.runner import Cells
from paper.shared import navigation
from paper.shared.navigation import SETTINGS, Snapshot, checkpoints, snapshot, task

SMOKE = Scale.SMOKE


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Snapshot]:
    cells = Cells(tmp_path_factory.mktemp("cells") / "cells")
    before, after = (snapshot(SMOKE, cells, 3, iteration) for iteration in checkpoints(SMOKE))
    return before, after


def test_snd_by_hand_on_the_observations_of_all(pair: tuple[Snapshot, Snapshot]) -> None:
    for found in pair:
        assert found.observations.shape == (3 * SETTINGS[SMOKE].samples, 18)
        rows = found.observations.double().numpy()
        network, log_std = found.team.network, next(found.team.head.parameters()).detach().double().numpy()
        answers = []
        for agent in range(3):
            hidden = rows
            for weight, bias in zip(network.weights, network.biases, strict=True):
                # The last layer passes a tanh as well: means are squashed.
                hidden = np.tanh(
                    hidden @ weight[agent].detach().double().numpy() + bias[agent].detach().double().numpy()
                )
            scale = np.exp(log_std[agent].reshape(1, -1)).repeat(len(rows), 0)
            answers.append(np.concatenate([hidden, scale], 1))
        gaps = [np.linalg.norm(answers[i] - answers[j], axis=1).mean() for i, j in ((0, 1), (0, 2), (1, 2))]
        assert float(gs.snd(found.behavior())) == pytest.approx(np.mean(gaps), rel=1e-5)
        assert found.behavior().loc.dtype == torch.float64


def test_a_stopped_training_continues_to_the_same_team(pair: tuple[Snapshot, Snapshot], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    job = task(3, SMOKE)
    with navigation.one_thread():
        early = replace(job, settings=job.settings.replace(iterations=1))
        train(early, cells.beside("teams").folder("n=3"))
    found = snapshot(SMOKE, cells, 3, SETTINGS[SMOKE].iterations)
    assert load_checkpoint(cells.beside("teams").folder("n=3")).iteration == SETTINGS[SMOKE].iterations
    assert torch.equal(found.observations, pair[1].observations)
    assert torch.equal(found.behavior().loc, pair[1].behavior().loc)
