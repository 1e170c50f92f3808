"""Training from start to end, with its files."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from graphsnd.errors import InputError, check_integer
from graphsnd.training.checkpoint import (
    CHECKPOINT,
    DESCRIPTION,
    FORMAT,
    Task,
    load_checkpoint,
    save_checkpoint,
    save_teams,
)
from graphsnd.training.log import CsvLog, Log, Row, TensorBoardLog
from graphsnd.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class Trained:
    """What :func:`train` leaves behind."""

    trainer: Trainer
    finished: bool  # False when it was interrupted; the checkpoint is where it stopped
    seconds: float  # of training, over all resumptions


def train(
    task: Task,
    folder: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    checkpoint_every: int = 25,
    tensorboard: bool = False,
    capture: bool = True,
    report: Callable[[Sequence[Row], Trainer], None] = lambda rows, trainer: None,
) -> Trained:
    """Train a task and write ``metrics.csv``, checkpoints and teams into a folder.

    Args:
        task: What to train.
        folder: Made if need be.
        device: ``"cpu"`` or ``"cuda"``.
        resume: Go on from the folder's checkpoint, bit for bit as if there had been no interruption (on the same
            device, with the same number of threads).
        checkpoint_every: Iterations between two checkpoints; there is one at the end in any case.
        tensorboard: Whether to write event files too.
        capture: Passed to :class:`~graphsnd.training.Trainer`.
        report: Called after every iteration.

    Returns:
        The trainer, and whether it got to the end. Ctrl-C lets the iteration finish and saves a checkpoint.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.training import Settings
        >>> settings = Settings(steps=4, environments=2, iterations=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(Task("navigation", 2, {}, (0,), settings), Path(folder)).finished
        True
    """
    check_integer("checkpoint_every", checkpoint_every, "to be an integer, at least 1", low=1)
    trainer = Trainer(task.make_world(device), task.settings, seeds=task.seeds, capture=capture)
    before = 0.0
    if resume:
        before = _resume(task, folder, trainer)
    elif (folder / CHECKPOINT).exists():
        raise taken(folder, FORMAT, "control")
    folder.mkdir(parents=True, exist_ok=True)
    start, begun = perf_counter(), trainer.iteration
    with ExitStack() as stack:
        logs: list[Log] = [CsvLog(folder, after=trainer.iteration)]
        if tensorboard:
            logs.append(TensorBoardLog(folder / "tensorboard", after=trainer.iteration))
        for log in logs:
            stack.callback(log.close)
        stop = stack.enter_context(interruptible())
        while trainer.iteration < task.settings.iterations and not stop():
            rows = trainer.step()
            for log in logs:
                log.write(rows)
            report(rows, trainer)
            if trainer.iteration % checkpoint_every == 0 and trainer.iteration < task.settings.iterations:
                save_checkpoint(folder, task, trainer, seconds=before + perf_counter() - start)
        seconds = before + perf_counter() - start
        # Teams first: they are there where the checkpoint says that all is done. Without an iteration nothing was seen.
        save_teams(folder, trainer, observations=trainer.iteration > begun)
        save_checkpoint(folder, task, trainer, seconds=seconds)
    return Trained(trainer, trainer.iteration >= task.settings.iterations, seconds)


def _resume(task: Task, folder: Path, trainer: Trainer) -> float:
    """Bring the trainer to where the folder's checkpoint is; the seconds it took to get there."""
    found = load_checkpoint(folder)
    # More iterations are what a resumption is for; anything else would be another training.
    same = found.task.settings.replace(iterations=task.settings.iterations)
    old, new = found.task.to_dict() | {"settings": same}, task.to_dict() | {"settings": task.settings}
    different = [name for name in old if old[name] != new[name]]
    if different:
        raise InputError("task", f"to be the one of the checkpoint in {folder}", f"another {different[0]}")
    check_more(task.settings.iterations, found.iteration)
    found.restore(trainer)
    return found.seconds


def check_more(iterations: int, done: int) -> None:
    """A training cannot be taken back: no fewer iterations than are done."""
    if iterations < done:
        raise InputError("iterations", f"to be at least {done}, which are done", iterations)


def taken(folder: Path, own: str, other: str) -> InputError:
    """What to say of a folder that holds a training already.

    Args:
        folder: Which.
        own: The format of those that could be resumed.
        other: The command that writes the other kind.
    """
    about = folder / DESCRIPTION
    alike = not about.is_file() or json.loads(about.read_text(encoding="utf-8")).get("format") == own
    resume = "Resume it (--resume), or choose another folder."
    fix = resume if alike else f"It holds a run of graphsnd {other}; choose another folder."
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
