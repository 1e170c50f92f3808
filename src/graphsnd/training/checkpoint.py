"""Checkpoints: one file that is either the old one or the new one, whenever the machine stops."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.teams.files import OBSERVATIONS, write_whole
from graphsnd.training.settings import Settings
from graphsnd.training.trainer import Trainer
from graphsnd.worlds import World, parse_world

CHECKPOINT, DESCRIPTION = "checkpoint.safetensors", "settings.json"
FORMAT, VERSION = "graphsnd-training", 1


@dataclass(frozen=True)
class Task:
    """Everything that a training is made from, as JSON can say it."""

    world: str  # what parse_world reads
    agents: int | None
    options: dict[str, Any]  # of the world
    seeds: tuple[int, ...]
    settings: Settings

    def make_world(self, device: str) -> World:
        """The world, on ``device``."""
        environments = self.settings.environments
        return parse_world(self.world, self.agents, environments, device=device, **self.options)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        settings = json.loads(self.settings.to_json())
        parts = {"world": self.world, "agents": self.agents, "options": self.options, "seeds": list(self.seeds)}
        return {"format": FORMAT, "version": VERSION, **parts, "settings": settings}

    @classmethod
    def from_dict(cls, found: Any, where: Path) -> Task:
        """What :meth:`to_dict` gave.

        Raises:
            InputError: When it is something else, or of another version.
        """
        if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
            raise InputError("checkpoint", f"of format {FORMAT!r}, version {VERSION}", f"another in {where}")
        settings = Settings.from_json(json.dumps(found["settings"]))
        return cls(found["world"], found["agents"], found["options"], tuple(found["seeds"]), settings)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trainer between two iterations."""

    task: Task
    iteration: int
    seconds: float  # of training so far
    tensors: dict[str, Tensor]

    def restore(self, trainer: Trainer) -> None:
        """Bring a trainer of the same task to this point."""
        trainer.load(self.tensors, self.iteration)


def save_checkpoint(folder: Path, task: Task, trainer: Trainer, *, seconds: float = 0.0) -> Path:
    """Write ``checkpoint.safetensors``, and ``settings.json`` for people.

    The file is written under another name, flushed to the disk and renamed. Until then the previous one stands.

    Args:
        folder: Made if need be.
        task: What the trainer was made from.
        trainer: Between two iterations.
        seconds: Of training so far.

    Returns:
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {**task.to_dict(), "iteration": trainer.iteration, "seconds": seconds}
    tensors = {name: part.detach().cpu().contiguous() for name, part in trainer.tensors().items()}
    return write_tensors(folder, tensors, about, task.to_dict())


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a folder's checkpoint; nothing is unpickled.

    Raises:
        InputError: When there is none, or it is damaged or of another version.
    """
    about, tensors = read_tensors(folder)
    task = Task.from_dict(about, folder / CHECKPOINT)
    return Checkpoint(task, about["iteration"], about["seconds"], tensors)


def write_tensors(folder: Path, tensors: dict[str, Tensor], about: object, description: object) -> Path:
    """Write a checkpoint and a description for people, each whole or not at all."""
    metadata = {"training": json.dumps(about)}
    write_whole(folder / CHECKPOINT, lambda path: save_file(tensors, path, metadata=metadata))
    text = json.dumps(description, indent=2) + "\n"
    write_whole(folder / DESCRIPTION, lambda path: path.write_text(text, encoding="utf-8"))
    return folder / CHECKPOINT


def read_tensors(folder: Path) -> tuple[Any, dict[str, Tensor]]:
    """What :func:`write_tensors` said about a checkpoint, and its tensors.

    Raises:
        InputError: When there is none, or it is damaged.
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
    return about, tensors


def save_teams(folder: Path, trainer: Trainer, *, observations: bool = True) -> list[Path]:
    """Write each run's actors into ``seed-<seed>/``, for :meth:`Team.load <graphsnd.teams.Team.load>`.

    Beside each lie the observations on which its diversity was measured last, under the key ``observations``, so that
    ``graphsnd measure seed-0`` works without the world.

    Args:
        folder: Where.
        trainer: Whose.
        observations: Whether to write those; a trainer that was loaded and not stepped has seen none.
    """
    written = []
    for run, seed in enumerate(trainer.seeds):
        trainer.team(seed).save(folder / f"seed-{seed}")
        if observations:
            seen = {"observations": trainer.observations(run).cpu().contiguous()}
            write_whole(folder / f"seed-{seed}" / OBSERVATIONS, partial(save_file, seen))
        written.append(folder / f"seed-{seed}" / "team.safetensors")
    return written
