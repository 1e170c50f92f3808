from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphsnd.control import audit
from graphsnd.rl import train
from graphsnd.rl.checkpoint import CHECKPOINT
from graphsnd.rl.dico import DiversityControl
from paper.control.actions import measure_actions, read_actions, write_actions
from tests.training import control_settings, control_task

TINY = control_settings(
    environments=2, steps=10, epochs=2, minibatch=10, hidden=(8,), observations=20, audit_observations=30, iterations=3
)


def test_actions_are_less_diverse_than_their_means(tmp_path: Path) -> None:
    task = control_task(4, (0.1, "unconstrained"), ("complete",), settings=TINY)
    train(task, tmp_path)
    before = (tmp_path / CHECKPOINT).read_bytes()
    assert read_actions(tmp_path) == []
    actions = write_actions(tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert read_actions(tmp_path) == actions
    assert [(entry.arm, entry.target) for entry in actions] == [("complete", 0.1), ("unconstrained", None)]
    assert all(0 < entry.ratio < 1 for entry in actions)


def test_actions_agree_with_samples() -> None:
    """On the line, quantiles of the squashed actions are squashed quantiles, so W2 needs no more than sorted noise."""
    trainer = control_task(3, (0.5,), settings=TINY).make_trainer()
    trainer.step()
    control = trainer.companion
    assert isinstance(control, DiversityControl)
    entry = measure_actions(trainer)[0]
    seen = trainer.buffer.observations[0].flatten(0, 2)
    with torch.no_grad():
        behavior = control.team(0).evaluate(seen)
    levels = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    noise = torch.distributions.Normal(0.0, 1.0).icdf(levels)
    actions = torch.tanh(behavior.loc[..., None].double() + behavior.scale[..., None].double() * noise)
    i, j = torch.triu_indices(3, 3, offset=1)
    apart = (actions[:, i] - actions[:, j]).square().mean(-1).sum(-1).sqrt()
    assert entry.squashed == pytest.approx(float(apart.mean()), rel=0.01)
    assert entry.controlled == pytest.approx(float(audit(control.team(0), seen)), rel=1e-5)
