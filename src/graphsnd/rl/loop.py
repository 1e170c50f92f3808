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

from graphsnd.errors import InputError, check_choice, check_integer
from graphsnd.files import LOCK, hold_lock, remove_parts
from graphsnd.kernels.threads import limit_threads
from graphsnd.rl.checkpoint import STACKS, Checkpoint, has_checkpoint, load_checkpoint, save_checkpoint, save_teams
from graphsnd.rl.log import LOGGERS, METRICS, CsvLog, Row, RunLoggers
from graphsnd.rl.task import Task
from graphsnd.rl.trainer import Trainer, is_brief

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows lacks the last


@dataclass(frozen=True, eq=False)
class Trained:
    """Result of :func:`train`.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     task = Task("navigation", 2, settings=Settings(steps=4, environments=2, iterations=2))
        ...     trained = train(task, Path(folder))
        >>> trained.finished, trained.trainer.iteration, trained.trainer.team(0)
        (True, 2, StackedTeam(agents=2, observation_features=18))
    """

    trainer: Trainer  # after the last iteration
    finished: bool  # False if it was interrupted; the checkpoint has the last iteration
    seconds: float  # duration of the training, over all resumptions
    threads: int = 1  # torch's number of threads
    stopped: int = 0  # the signal that interrupted it


def train(
    task: Task,
    folder: Path,
    *,
    device: str = "cpu",
    resume: bool = False,
    checkpoint_every: int = 25,
    keep_teams: bool = False,
    loggers: Sequence[str] = (),
    on_row: Callable[[Sequence[Row]], None] = lambda rows: None,
    progress: Callable[[int], None] = lambda done: None,
) -> Trained:
    """Train a task and write ``metrics.csv``, checkpoints and the teams of its runs into a folder.

    Args:
        task: Task to train.
        folder: Made if need be.
        device: ``"cpu"`` or ``"cuda"``.
        resume: Go on from the folder's checkpoint, bit for bit as if there had been no interruption (on the same
            device), with the number of threads of the checkpoint.
        checkpoint_every: Iterations between two checkpoints; there is one at the end in any case.
        keep_teams: Whether each checkpoint leaves its teams in ``teams/iteration-*``: ``graphsnd measure FOLDER`` then
            gives diversity over training on the same observations.
        loggers: Names of further loggers, ``tensorboard`` or ``wandb``; each logs every run separately.
        on_row: Called with the rows of every iteration, one for each run.
        progress: Called with the number of gradient steps done in an iteration.

    Returns:
        The trainer, and whether it got to the end. Ctrl-C, SIGTERM and SIGHUP let the iteration finish and save a
        checkpoint.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed, or another process
            writes to it.
        OSError: For a file that cannot be written. The checkpoint before it stands, and training can be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> settings = Settings(steps=4, environments=2, iterations=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(Task("navigation", 2, settings=settings), Path(folder)).finished
        True
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(Task("dispersion", 3, target=0.1, settings=settings), Path(folder)).finished
        True
    """
    folder = Path(folder)
    check_integer("checkpoint_every", checkpoint_every, "to be an integer, at least 1", low=1)
    for kind in loggers:
        check_choice("loggers", kind, LOGGERS)
    with ExitStack() as cleanup:
        stop = cleanup.enter_context(interruptible())
        trainer = task.make_trainer(device)
        if resume and not has_checkpoint(folder):
            load_checkpoint(folder)  # refuses, before there is a folder
        folder.mkdir(parents=True, exist_ok=True)
        cleanup.enter_context(hold_lock(folder / LOCK))
        remove_parts(folder)
        saved = _resume(task, folder, trainer) if resume else None
        if not resume:
            check_free(folder)
        threads = (saved.threads if saved else 0) or choose_threads(trainer)
        cleanup.enter_context(limit_threads(threads))
        log = CsvLog(folder, after=trainer.iteration)
        cleanup.callback(log.close)
        others = RunLoggers(loggers, folder, task.run_names(), cleanup, after=trainer.iteration)
        before, start = saved.seconds if saved else 0.0, perf_counter()
        first, last = trainer.iteration, task.settings.iterations

        def save() -> None:
            log.flush()  # so that the log has every iteration of every checkpoint
            if keep_teams:  # before the checkpoint: a resumed training does not come back to this iteration
                save_teams(folder / "teams" / f"iteration-{trainer.iteration:06d}", trainer, observations=False)
            save_checkpoint(folder, task, trainer, seconds=before + perf_counter() - start, threads=threads)

        if not resume:
            save()  # from now on it can be resumed, whatever happens
        while trainer.iteration < last and not stop():
            rows = trainer.step(progress=progress)
            log.write(rows)
            try:
                others.write(rows)
            except Exception:
                save()  # --resume goes on from here
                raise
            if not stop():  # after SIGHUP there is no terminal to report to
                on_row(rows)
            if trainer.iteration % checkpoint_every == 0 and trainer.iteration < last:
                save()
        seconds = before + perf_counter() - start
        # Before the checkpoint, which says that all is done. Without an iteration there are no observations.
        save_teams(folder, trainer, observations=trainer.iteration > first)
        save()
    return Trained(trainer, trainer.iteration >= last, seconds, threads, stop())


def choose_threads(trainer: Trainer) -> int:
    """Return the number of torch's threads for a training: the setting, or one where it is 0 and operations are brief.

    An operation ends when its last thread does. If another program occupies a core, that is after the time slice of
    that program. So an operation shorter than a slice gains little from a second thread (a third of its time) and may
    lose a whole slice. There is therefore one thread if the largest product of a gradient step, runs x agents x
    minibatch x width x width, has fewer than ``BRIEF`` multiply-adds, and otherwise as many as torch has.
    """
    return trainer.settings.threads or (1 if is_brief(trainer) else torch.get_num_threads())


def _resume(task: Task, folder: Path, trainer: Trainer) -> Checkpoint:
    """Restore the trainer from the folder's checkpoint, and return the checkpoint."""
    saved = load_checkpoint(folder, logged=True)
    # More iterations are what a resumption is for; anything else would be another training.
    same = saved.task.with_iterations(task.settings.iterations)
    for part in dataclasses.fields(task):
        if getattr(same, part.name) != getattr(task, part.name):
            raise InputError("task", f"to be the one of the checkpoint in {folder}", f"another {part.name}")
    expected = f"to be at least {saved.iteration}, which are done"
    check_integer("iterations", task.settings.iterations, expected, low=saved.iteration)
    trainer.load(saved.tensors, saved.iteration)
    return saved


def check_free(folder: Path) -> None:
    """Refuse a folder that already holds a training, or the log of one."""
    if has_checkpoint(folder):
        fix = "Resume it (--resume), or choose another folder."
        raise InputError("folder", "without a checkpoint of another training", repr(str(folder)), fix)
    if (folder / STACKS).is_dir():
        raise InputError("folder", "without the stacks of another training", repr(str(folder)), "Resume it (--resume).")
    log = folder / METRICS
    if log.exists() and log.read_bytes().count(b"\n") > 1:
        raise InputError("folder", "without the log of another training", repr(str(log)), "Choose another folder.")


@contextmanager
def interruptible() -> Iterator[Callable[[], int]]:
    """Record signals that would end the program, so that it can stop between two iterations.

    They are Ctrl-C, SIGTERM and SIGHUP. A second Ctrl-C interrupts at once. Signals that the program already ignores
    (``nohup``) stay ignored.

    Yields:
        A function that returns the number of the first signal, 0 before there was one.
    """
    noted = 0
    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0  # signals reach the main thread only
        return

    def note(number: int, frame: FrameType | None) -> Any:
        nonlocal noted
        if noted and number == signal.SIGINT:
            raise KeyboardInterrupt
        noted = noted or number

    before = {each: signal.getsignal(each) for each in (getattr(signal, name, None) for name in SIGNALS) if each}
    taken = {each: handler for each, handler in before.items() if handler != signal.SIG_IGN and handler is not None}
    for each in taken:
        signal.signal(each, note)
    try:
        yield lambda: noted
    finally:
        for each, handler in taken.items():
            signal.signal(each, handler)
