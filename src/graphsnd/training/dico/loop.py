"""Controlled training from start to end, with its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from graphsnd.errors import InputError, check_integer
from graphsnd.training.checkpoint import CHECKPOINT
from graphsnd.training.dico.checkpoint import load_control, save_control
from graphsnd.training.dico.log import ControlLog, ControlRow, run_folder
from graphsnd.training.dico.task import FORMAT, ControlTask
from graphsnd.training.dico.trainer import ControlTrainer
from graphsnd.training.log import TensorBoardLog
from graphsnd.training.loop import check_more, interruptible, taken


@dataclass(frozen=True, eq=False)
class Controlled:
    """What :func:`control` leaves behind."""

    trainer: ControlTrainer
    finished: bool  # False when it was interrupted; the checkpoint is where it stopped
    seconds: float  # of training, over all resumptions


def control(
    task: ControlTask,
    folder: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    checkpoint_every: int = 10,
    tensorboard: bool = False,
    capture: bool = True,
    report: Callable[[Sequence[ControlRow], ControlTrainer], None] = lambda rows, trainer: None,
    progress: Callable[[int], None] = lambda done: None,
) -> Controlled:
    """Train a task's runs and write ``metrics.csv`` and checkpoints into a folder.

    Args:
        task: What to train.
        folder: Made if need be.
        device: ``"cpu"`` or ``"cuda"``.
        resume: Go on from the folder's checkpoint, bit for bit on the same device with the same number of threads.
        checkpoint_every: Iterations between two checkpoints; there is one at the end in any case.
        tensorboard: Whether to write event files too.
        capture: Passed to :class:`~graphsnd.training.dico.ControlTrainer`.
        report: Called after every iteration.
        progress: Called with the number of optimiser steps done in an iteration.

    Returns:
        The trainer, and whether it got to the end. Ctrl-C lets the iteration finish and saves a checkpoint.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.training.dico import ControlSettings
        >>> settings = ControlSettings(environments=2, steps=4, passes=1, hidden=(8,), iterations=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     control(ControlTask(3, (0.1,), settings=settings), Path(folder)).finished
        True
    """
    check_integer("checkpoint_every", checkpoint_every, "to be an integer, at least 1", low=1)
    if not resume and (folder / CHECKPOINT).exists():
        raise taken(folder, FORMAT, "train")
    trainer = ControlTrainer(task, device, capture=capture)
    before = _resume(task, folder, trainer) if resume else 0.0
    folder.mkdir(parents=True, exist_ok=True)
    start, last = perf_counter(), task.settings.iterations
    with ExitStack() as stack:
        logs: list[ControlLog | TensorBoardLog] = [ControlLog(folder, after=trainer.iteration)]
        if tensorboard:
            logs.append(TensorBoardLog(folder / "tensorboard", after=trainer.iteration, place=run_folder))
        for log in logs:
            stack.callback(log.close)
        stop = stack.enter_context(interruptible())
        while trainer.iteration < last and not stop():
            rows = trainer.step(progress)
            for log in logs:
                log.write(rows)
            report(rows, trainer)
            if trainer.iteration % checkpoint_every == 0 and trainer.iteration < last:
                save_control(folder, trainer, seconds=before + perf_counter() - start)
        seconds = before + perf_counter() - start
        save_control(folder, trainer, seconds=seconds)
    return Controlled(trainer, trainer.iteration >= last, seconds)


def _resume(task: ControlTask, folder: Path, trainer: ControlTrainer) -> float:
    """Bring the trainer to where the folder's checkpoint is; the seconds it took to get there."""
    found = load_control(folder)
    # More iterations are what a resumption is for; anything else would be another training.
    same = dataclasses.replace(found.task, settings=found.task.settings.replace(iterations=task.settings.iterations))
    if same != task:
        old, new = same.to_dict(), task.to_dict()
        different = next(name for name in old if old[name] != new[name])
        raise InputError("task", f"to be the one of the checkpoint in {folder}", f"another {different}")
    check_more(task.settings.iterations, found.iteration)
    trainer.load(found.tensors, found.iteration)
    return found.seconds
