r"""How diverse the actions are that the environment receives, beside the means that are controlled.

Agents act by :math:`\tanh(\mathrm{Normal}(\mu_i, \sigma))`. Held at the target is the mean distance between the
:math:`\mu_i`, before the tanh. Here both are measured on the same observations and over all pairs, the second as the
2-Wasserstein distance between the distributions of the squashed actions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from graphsnd.control import audit
from graphsnd.training.dico import ControlTrainer, load_control
from paper.shared.rollouts import pooled

ACTIONS = "actions.json"
OBSERVATIONS = 1024


def write_actions(folder: Path, *, device: str = "cpu") -> list[dict[str, Any]]:
    """Measure the teams of a folder's checkpoint and write what was found to its ``actions.json``.

    One more iteration is trained, for its rollout; the checkpoint is left as it was.

    Args:
        folder: Of a controlled training.
        device: Where to act and measure.

    Returns:
        For every run ``arm``, ``target``, ``seed``, ``controlled`` and ``squashed`` diversity, and their ``ratio``.
    """
    kept = load_control(folder)
    trainer = ControlTrainer(kept.task, device)
    trainer.load(kept.tensors, kept.iteration)
    trainer.step()
    found = measure_actions(trainer)
    (folder / ACTIONS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


@torch.no_grad()
def measure_actions(trainer: ControlTrainer) -> list[dict[str, Any]]:
    """Measure a trainer's present teams on observations of its last rollout, as :func:`write_actions` returns it."""
    found, scale = [], trainer.learner.scale()
    for place, run in enumerate(trainer.runs):
        seen = pooled(trainer.memory.observations[place], OBSERVATIONS, seed=run.seed)
        teams = [trainer.learner.policy.team(place, scale[place], squashed=squashed) for squashed in (False, True)]
        controlled, squashed = (float(audit(team, seen)) for team in teams)
        about = {"arm": run.arm, "target": run.target, "seed": run.seed}
        found.append({**about, "controlled": controlled, "squashed": squashed, "ratio": squashed / controlled})
    return found


def read_actions(folder: Path) -> list[dict[str, Any]]:
    """What :func:`write_actions` left in a folder; nothing where there is no such file."""
    path = folder / ACTIONS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
