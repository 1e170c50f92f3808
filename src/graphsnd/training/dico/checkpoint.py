"""Checkpoints of controlled training, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from graphsnd.training.checkpoint import CHECKPOINT, read_tensors, write_tensors
from graphsnd.training.dico.task import ControlTask
from graphsnd.training.dico.trainer import ControlTrainer


@dataclass(frozen=True, eq=False)
class ControlCheckpoint:
    """A trainer between two iterations."""

    task: ControlTask
    iteration: int
    seconds: float  # of training so far
    tensors: dict[str, Tensor]


def save_control(folder: Path, trainer: ControlTrainer, *, seconds: float = 0.0) -> Path:
    """Write ``checkpoint.safetensors``, and ``settings.json`` for people.

    Args:
        folder: Made if need be.
        trainer: Between two iterations.
        seconds: Of training so far.

    Returns:
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    task = trainer.task.to_dict()
    about = {"task": task, "iteration": trainer.iteration, "seconds": seconds}
    tensors = {name: part.detach().cpu().contiguous().clone() for name, part in trainer.tensors().items()}
    return write_tensors(folder, tensors, about, task)


def load_control(folder: Path) -> ControlCheckpoint:
    """Read a folder's checkpoint; nothing is unpickled.

    Raises:
        InputError: When there is none, or it is damaged or of another kind.
    """
    about, tensors = read_tensors(folder)
    about = about if isinstance(about, dict) else {}
    task = ControlTask.from_dict(about.get("task"), folder / CHECKPOINT)
    return ControlCheckpoint(task, about["iteration"], about["seconds"], tensors)
