r"""The diversity of the actions that the environment receives, beside that of the controlled means.

Agents act by :math:`\tanh(\mathrm{Normal}(\mu_i, \sigma))`. The controller holds the mean distance between the
:math:`\mu_i`, before the tanh, at the target. Here the diversity before and after the tanh is measured on the same
observations and over all pairs. After the tanh it is the 2-Wasserstein distance between the squashed distributions.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import torch

from graphsnd.control import audit
from graphsnd.files import read_json, write_whole
from graphsnd.rl import Trainer
from graphsnd.rl.checkpoint import load_checkpoint
from graphsnd.rl.dico import DiversityControl
from paper.rows import decode
from paper.shared.rollouts import pooled

ACTIONS = "actions.json"
OBSERVATIONS = 1024


@dataclass(frozen=True)
class ActionDiversity:
    """SND of one trained team before and after the tanh."""

    arm: str
    target: float | None
    seed: int
    controlled: float  # SND of the means
    squashed: float  # SND of the actions that the environment receives
    ratio: float


def write_actions(folder: Path, *, device: str = "cpu") -> list[ActionDiversity]:
    """Measure the teams of a folder's checkpoint and write the result to its ``actions.json``.

    One more iteration is trained, for its rollout; the checkpoint is left as it was.

    Args:
        folder: Folder of a controlled training.
        device: Device that acts and measures.
    """
    kept = load_checkpoint(folder)
    trainer = kept.task.make_trainer(device)
    trainer.load(kept.tensors, kept.iteration)
    trainer.step()
    actions = measure_actions(trainer)
    write_whole(folder / ACTIONS, json.dumps(actions, indent=1, default=asdict) + "\n")
    return actions


@torch.no_grad()
def measure_actions(trainer: Trainer) -> list[ActionDiversity]:
    """Measure a trainer's present teams on its last rollout; teams without any diversity are left out."""
    actions, control = [], trainer.companion
    assert isinstance(control, DiversityControl)
    for place, run in enumerate(control.runs):
        observations = pooled(trainer.buffer.observations[place], OBSERVATIONS, seed=run.seed)
        teams = [control.team(place, squashed=squashed) for squashed in (False, True)]
        controlled, squashed = (float(audit(team, observations)) for team in teams)
        if controlled:
            actions.append(ActionDiversity(run.arm, run.target, run.seed, controlled, squashed, squashed / controlled))
    return actions


def read_actions(folder: Path) -> list[ActionDiversity]:
    """Return what :func:`write_actions` wrote to a folder; an empty list if the file is missing."""
    path = folder / ACTIONS
    rows = read_json(path, ACTIONS) if path.is_file() else []
    return cast(list[ActionDiversity], decode(list[ActionDiversity], rows))
