"""Checkpoints: one file that is either the old one or the new one, whenever the machine stops."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.storage import write_whole
from graphsnd.teams.files import OBSERVATIONS
from graphsnd.training.diversity import pool_observations
from graphsnd.training.settings import Settings
from graphsnd.training.task import ControlTask, Task
from graphsnd.training.trainer import Trainer

CHECKPOINT, DESCRIPTION = "checkpoint.safetensors", "settings.json"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trainer between two iterations."""

    task: Task | ControlTask
    iteration: int
    seconds: float  # of training so far
    tensors: dict[str, Tensor]


def save_checkpoint(folder: Path, task: Task | ControlTask, trainer: Trainer, *, seconds: float = 0.0) -> None:
    """Write ``checkpoint.safetensors``, and ``settings.json`` for people.

    The file is written under another name, flushed to the disk and renamed. Until then the previous one stands.

    Args:
        folder: Made if need be.
        task: What the trainer was made from.
        trainer: Between two iterations.
        seconds: Of training so far.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {"task": task.to_dict(), "iteration": trainer.iteration, "seconds": seconds}
    metadata = {"training": json.dumps(about)}
    # Cloned because arms may share memory, which the format does not allow.
    tensors = {name: part.detach().cpu().contiguous().clone() for name, part in trainer.tensors().items()}
    write_whole(folder / CHECKPOINT, serialise(tensors, metadata=metadata))
    write_whole(folder / DESCRIPTION, json.dumps(task.to_dict(), indent=2) + "\n")


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a folder's checkpoint, of either kind of training; nothing is unpickled.

    Raises:
        InputError: When there is none, or it is damaged or of another version.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise InputError("folder", f"to hold {CHECKPOINT}", repr(str(folder)), "Start without --resume.")
    try:
        with safe_open(path, framework="pt") as opened:
            about = json.loads((opened.metadata() or {}).get("training", "null"))
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, ValueError) as error:
        raise InputError("checkpoint", f"to be whole in {path}", str(error)) from None
    about = about if isinstance(about, dict) else {}
    saved = about.get("task")
    controlled = isinstance(saved, dict) and saved.get("format") == ControlTask.format
    task = (ControlTask if controlled else Task).from_dict(saved, path)
    return Checkpoint(task, about["iteration"], about["seconds"], tensors)


def save_teams(folder: Path, trainer: Trainer, *, observations: bool = True) -> None:
    """Write each run's independent actors into ``seed-<seed>/``, for :meth:`Team.load <graphsnd.teams.Team.load>`.

    Beside each lie the observations on which its diversity was measured last, under the key ``observations``, so that
    ``graphsnd measure seed-0`` works without the world.

    Args:
        folder: Where.
        trainer: Of independent policies.
        observations: Whether to write those; a trainer that was loaded and not stepped has none.
    """
    assert isinstance(trainer.settings, Settings)
    for run, seed in enumerate(trainer.seeds):
        trainer.team(seed).save(folder / f"seed-{seed}")
        if observations:
            pooled = pool_observations(trainer.buffer.observations[run], trainer.settings.diversity_observations)
            data = serialise({"observations": pooled.cpu().contiguous()})
            write_whole(folder / f"seed-{seed}" / OBSERVATIONS, data)
