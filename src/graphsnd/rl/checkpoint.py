"""Checkpoints: one file, which after a crash is either the old one or the new one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from graphsnd.errors import InputError, check_integer
from graphsnd.files import parse_json, read_json, write_whole
from graphsnd.rl.log import check_complete, run_folder
from graphsnd.rl.task import Task
from graphsnd.rl.trainer import Trainer
from graphsnd.teams.files import OBSERVATIONS

CHECKPOINT, DESCRIPTION = "checkpoint.safetensors", "settings.json"
STACKS = "stacks"  # folder in a grid's folder, with a folder for each stack of runs


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trainer between two iterations."""

    task: Task
    iteration: int
    seconds: float  # seconds of training so far
    tensors: dict[str, Tensor]
    threads: int = 0  # number of torch's threads; 0 if the file does not say


def save_checkpoint(folder: Path, task: Task, trainer: Trainer, *, seconds: float = 0.0, threads: int = 0) -> None:
    """Write ``checkpoint.safetensors``, and ``settings.json`` for people.

    Args:
        folder: Made if need be.
        task: Task of the trainer.
        trainer: Between two iterations.
        seconds: Seconds of training so far.
        threads: Number of threads of torch; training goes on with as many.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> task = Task("navigation", 2, settings=Settings(steps=4, environments=2))
        >>> trainer = task.make_trainer("cpu")
        >>> _ = trainer.step()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_checkpoint(Path(folder), task, trainer)
        ...     load_checkpoint(Path(folder)).iteration
        1
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / DESCRIPTION, json.dumps(task.to_dict(), indent=2) + "\n")
    about = {"task": task.to_dict(), "iteration": trainer.iteration, "seconds": seconds, "threads": threads}
    # Cloned because arms may share memory, which the format does not allow.
    tensors = {name: part.detach().cpu().contiguous().clone() for name, part in trainer.tensors().items()}
    write_whole(folder / CHECKPOINT, serialise(tensors, metadata={"training": json.dumps(about)}))


def load_checkpoint(folder: Path, *, logged: bool = False) -> Checkpoint:
    """Read a folder's checkpoint; nothing is unpickled.

    Args:
        folder: Folder of a training.
        logged: Whether all its iterations must be in the log, as for resuming.

    Raises:
        InputError: When there is none, or it is damaged, of another version or not logged.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings, train
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     task = Task("navigation", 2, settings=Settings(steps=4, environments=2, iterations=2))
        ...     _ = train(task, Path(folder))
        ...     saved = load_checkpoint(Path(folder))
        >>> saved.iteration, saved.task == task
        (2, True)
    """
    folder = Path(folder)
    if not has_checkpoint(folder):
        raise InputError("folder", f"to hold {CHECKPOINT}", repr(str(folder)), "Start without --resume.")
    found = _read_checkpoint(folder / CHECKPOINT)
    if logged and found.iteration:
        check_complete(folder, found.task.run_names(), found.iteration)
    return found


def has_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds a checkpoint."""
    return (folder / CHECKPOINT).is_file()


def _read_checkpoint(path: Path) -> Checkpoint:
    expected = f"to be an integer, at least 0, in {path}"
    try:
        with safe_open(path, framework="pt") as opened:
            about = parse_json(opened.metadata()["training"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
        iteration, threads = (check_integer(name, about[name], expected, low=0) for name in ("iteration", "threads"))
        return Checkpoint(Task.from_dict(about["task"], path), iteration, float(about["seconds"]), tensors, threads)
    except InputError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise InputError("checkpoint", f"to be whole in {path}", repr(error)) from None


def read_grid(folder: Path) -> tuple[Task, str, list[Task]]:
    """Return the task of a folder's grid, the kind of device it was cut for, and its stacks.

    Raises:
        InputError: When it has none.
    """
    path = folder / DESCRIPTION
    saved = read_json(path, DESCRIPTION) if path.is_file() else None
    if not isinstance(saved, dict) or not {"task", "device", STACKS} <= saved.keys():
        raise InputError("folder", "to hold a grid of stacks", repr(str(folder)), "Start without --resume.")
    task = Task.from_dict(saved["task"], path)
    return task, saved["device"], [Task.from_dict(part, path) for part in saved[STACKS]]


def save_teams(folder: Path, trainer: Trainer, *, observations: bool = True) -> None:
    """Write each run's team into a folder of its own, for :meth:`Team.load <graphsnd.Team.load>`.

    Independent actors go to ``seed-<seed>/``, controlled policies at their present scale to
    ``<arm>-target-<target>-seed-<seed>/``. Each is saved with the observations on which its diversity was last measured
    or audited (``observations``), and with the episode of each observation (``clusters``), which its error bars need.
    So ``graphsnd measure seed-0`` works without the world.

    Args:
        folder: Folder to write to.
        trainer: Between two iterations.
        observations: Whether to write the observations; a loaded trainer has none before its next iteration.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> task = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2))
        >>> trainer = task.make_trainer("cpu")
        >>> _ = trainer.step()
        >>> from graphsnd import Team
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_teams(Path(folder), trainer)
        ...     Team.load(Path(folder) / "seed-1")
        StackedTeam(agents=2, observation_features=18)
    """
    companion, buffer = trainer.companion, trainer.buffer
    chosen = [companion.choose(part).cpu() for part in (buffer.observations, buffer.episodes)] if observations else []
    for place, run in enumerate(companion.runs):
        own = vars(run) if run.arm else {"seed": run.seed}
        path = Path(folder) / run_folder(run)
        companion.team(place, about={"world": trainer.world.name, **own, "iteration": trainer.iteration}).save(path)
        if observations:
            seen, episodes = (part[place].contiguous() for part in chosen)
            held = {"observations": seen} | ({"clusters": episodes} if episodes.unique().numel() > 1 else {})
            write_whole(path / OBSERVATIONS, serialise(held))
