"""Checkpoints of controlled training, written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.training.checkpoint import CHECKPOINT, DESCRIPTION, write_whole
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
    metadata = {"training": json.dumps({"task": task, "iteration": trainer.iteration, "seconds": seconds})}
    tensors = {name: part.detach().cpu().contiguous().clone() for name, part in trainer.tensors().items()}
    write_whole(folder / CHECKPOINT, lambda path: save_file(tensors, path, metadata=metadata))
    text = json.dumps(task, indent=2) + "\n"
    write_whole(folder / DESCRIPTION, lambda path: path.write_text(text, encoding="utf-8"))
    return folder / CHECKPOINT


def load_control(folder: Path) -> ControlCheckpoint:
    """Read a folder's checkpoint; nothing is unpickled.

    Raises:
        InputError: When there is none, or it is damaged or of another kind.
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
    task = ControlTask.from_dict(about.get("task"), path)
    return ControlCheckpoint(task, about["iteration"], about["seconds"], tensors)
