"""Training from start to end, with its files."""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from graphsnd.errors import InputError, check_integer
from graphsnd.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint, save_teams
from graphsnd.training.log import CsvLog, TensorBoardLog
from graphsnd.training.task import ControlTask, Task
from graphsnd.training.trainer import Trainer

BRIEF = 2**25  # multiply-adds of a product that take a core about 2 ms, no more than a time slice of the scheduler


@dataclass(frozen=True, eq=False)
class Trained:
    """What :func:`train` leaves behind."""

    trainer: Trainer
    finished: bool  # False when it was interrupted; the checkpoint is where it stopped
    seconds: float  # of training, over all resumptions


def train(
    task: Task | ControlTask,
    folder: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    checkpoint_every: int = 25,
    tensorboard: bool = False,
    capture: bool = True,
    report: Callable[[Sequence[Any]], None] = lambda rows: None,
    progress: Callable[[int], None] = lambda done: None,
) -> Trained:
    """Train a task and write ``metrics.csv`` and checkpoints into a folder, and teams of independent policies.

    Args:
        task: What to train.
        folder: Made if need be.
        device: ``"cpu"`` or ``"cuda"``.
        resume: Go on from the folder's checkpoint, bit for bit as if there had been no interruption (on the same
            device, with the same number of threads).
        checkpoint_every: Iterations between two checkpoints; there is one at the end in any case.
        tensorboard: Whether to write event files too.
        capture: Passed to :class:`~graphsnd.training.Trainer`.
        report: Called with the rows of every iteration.
        progress: Called with the number of gradient steps done in an iteration.

    Returns:
        The trainer, and whether it got to the end. Ctrl-C lets the iteration finish and saves a checkpoint.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.training import ControlSettings, Settings
        >>> settings = Settings(steps=4, environments=2, iterations=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(Task("navigation", 2, settings=settings), Path(folder)).finished
        True
        >>> settings = ControlSettings(environments=2, steps=4, epochs=1, hidden=(8,), iterations=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(ControlTask(3, (0.1,), settings=settings), Path(folder)).finished
        True
    """
    check_integer("checkpoint_every", checkpoint_every, "to be an integer, at least 1", low=1)
    if not resume and (folder / CHECKPOINT).exists():
        raise _occupied(folder, task)
    trainer = task.make_trainer(device, capture=capture)
    before = _resume(task, folder, trainer) if resume else 0.0
    folder.mkdir(parents=True, exist_ok=True)
    start, begun, last = perf_counter(), trainer.iteration, task.settings.iterations
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(choose_threads(trainer))
        logs: list[CsvLog | TensorBoardLog] = [CsvLog(folder, task.row, after=trainer.iteration)]
        if tensorboard:
            logs.append(TensorBoardLog(folder / "tensorboard", after=trainer.iteration))
        for log in logs:
            stack.callback(log.close)
        stop = stack.enter_context(interruptible())
        while trainer.iteration < last and not stop():
            rows = trainer.step(progress=progress)
            for log in logs:
                log.write(rows)
            report(rows)
            if trainer.iteration % checkpoint_every == 0 and trainer.iteration < last:
                save_checkpoint(folder, task, trainer, seconds=before + perf_counter() - start)
        seconds = before + perf_counter() - start
        if isinstance(task, Task):
            # Before the checkpoint, which says that all is done. Without an iteration there are no observations.
            save_teams(folder, trainer, observations=trainer.iteration > begun)
        save_checkpoint(folder, task, trainer, seconds=seconds)
    return Trained(trainer, trainer.iteration >= last, seconds)


def choose_threads(trainer: Trainer) -> int:
    """Return the number of torch's threads for a training: the setting, or one where it is 0 and operations are brief.

    An operation ends when its last thread does. Where another program has a core, that is after that program's time
    slice; an operation that takes no longer than a slice by itself has little to win from a second thread (a third of
    its time) and that slice to lose. So there is one thread where the largest product of a gradient step, runs x agents
    x minibatch x width x width, has fewer than ``BRIEF`` multiply-adds, and as many as torch has elsewhere.
    """
    settings = trainer.settings
    rows = len(trainer.seeds) * trainer.world.agents * min(settings.minibatch, settings.samples)
    brief = trainer.world.device.type == "cpu" and rows * max(settings.hidden, default=1) ** 2 < BRIEF
    return settings.threads or (1 if brief else torch.get_num_threads())


def _resume(task: Task | ControlTask, folder: Path, trainer: Trainer) -> float:
    """Bring the trainer to the folder's checkpoint and return the seconds it took to get there."""
    saved = load_checkpoint(folder)
    if type(saved.task) is not type(task):
        raise InputError("task", f"to be the one of the checkpoint in {folder}", "another format")
    # More iterations are what a resumption is for; anything else would be another training.
    same = saved.task.with_iterations(task.settings.iterations)
    for part in dataclasses.fields(task):
        if getattr(same, part.name) != getattr(task, part.name):
            raise InputError("task", f"to be the one of the checkpoint in {folder}", f"another {part.name}")
    if task.settings.iterations < saved.iteration:
        expected = f"to be at least {saved.iteration}, which are done"
        raise InputError("iterations", expected, task.settings.iterations)
    trainer.load(saved.tensors, saved.iteration)
    return saved.seconds


def _occupied(folder: Path, task: Task | ControlTask) -> InputError:
    """Return what to say of a folder that holds a training already."""
    saved = load_checkpoint(folder).task
    fix = "Resume it (--resume), or choose another folder."
    if type(saved) is not type(task):
        fix = f"It holds a run of graphsnd {saved.command}; choose another folder."
    return InputError("folder", "without a checkpoint of another training", repr(str(folder)), fix)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C only be noted, so that work can end between two iterations; the second one interrupts."""
    noted = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals reach the main thread only
        return

    def note(number: int, frame: FrameType | None) -> Any:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, before)
