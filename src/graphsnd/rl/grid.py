"""Grids of runs that are trained stack by stack, in one process or on a Ray cluster, to the same bits."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from graphsnd.errors import InputError, check_choice, check_integer, require
from graphsnd.files import LOCK, hold_lock, remove_parts, write_whole
from graphsnd.rl.checkpoint import DESCRIPTION, STACKS, has_checkpoint, read_grid
from graphsnd.rl.log import METRICS, merge_logs
from graphsnd.rl.loop import check_free, interruptible, train
from graphsnd.rl.task import MOST, ControlTask, Task, cut_grid

RETRIES = 10  # losses in a row that brought no iteration
SILENCE = 10.0  # seconds after which a cluster counts as absent
PATIENCE = 1.0  # seconds between two looks at what is done
TAIL = 4096  # bytes, longer than a row of a log
Report = Callable[[Sequence["Stack"]], None]
Work = Callable[[str, Task | ControlTask, Path], int]  # trains in a folder; returns the signal that stopped it, or 0


@dataclass(frozen=True)
class Stack:
    """How far a stack of runs is.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> grid = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2, iterations=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stacks = train_grid(grid, Path(folder), stack=1, device="cpu").stacks
        >>> [(stack.name, stack.task.seeds, stack.done, stack.state) for stack in stacks]
        [('0', (0,), 2, 'finished'), ('1', (1,), 2, 'finished')]
    """

    name: str  # of its folder in stacks/
    task: Task | ControlTask  # of its runs
    folder: Path  # of its last attempt, or of its end
    done: int = 0  # iterations in its log
    state: str = "waiting"  # "running", "lost", "finished" or "failed"
    losses: int = 0  # workers or nodes that were lost with it
    error: str = ""  # why it failed


@dataclass(frozen=True)
class TrainedGrid:
    """What :func:`train_grid` leaves behind.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> grid = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2, iterations=1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = train_grid(grid, Path(folder), stack=1, device="cpu")
        >>> done.finished, len(done.stacks), done.device
        (True, 2, 'cpu')
    """

    stacks: tuple[Stack, ...]  # in the order of the grid
    seconds: float  # of this call
    device: str  # they were trained on
    stopped: int = 0  # the signal that interrupted it

    @property
    def finished(self) -> bool:
        """Whether every run got to its end."""
        return all(stack.state == "finished" for stack in self.stacks)


def train_grid(
    task: Task | ControlTask,
    folder: Path,
    *,
    device: str | None = None,
    stack: int = 0,
    ray: str | None = None,
    resume: bool = False,
    checkpoint_every: int = 25,
    keep_teams: bool = False,
    loggers: Sequence[str] = (),
    report: Report = lambda stacks: None,
) -> TrainedGrid:
    """Train a grid of runs stack by stack, and write one ``metrics.csv`` of all of them.

    The cut (:func:`cut_grid`) is written to ``settings.json`` and used again when the grid is resumed. Each stack has a
    folder of its own in ``stacks/``, as :func:`train` writes it. With the same cut every number but the seconds has
    the same bits in one process and on a cluster, whatever was lost meanwhile.

    Args:
        task: Task of all runs.
        folder: Made if need be; with Ray on a path that all nodes share.
        device: ``"cpu"`` or ``"cuda"``; None for a GPU where the cluster, or without Ray this machine, has one.
        stack: Runs of a stack; 0 for the rule of :func:`cut_grid`.
        ray: Address of a Ray cluster: ``"auto"``, ``"host:port"``, ``"ray://..."``, ``"local"`` for a new one, or
            ``"any"`` for the one that is there or else a new one. A stack is then a task with as many CPUs as threads,
            or one GPU; where its worker or node is lost it goes on from its last checkpoint elsewhere. None trains the
            stacks one after the other in this process.
        resume: Go on with the folder's grid and its cut; ``task`` may have more iterations.
        checkpoint_every: As for :func:`train`.
        keep_teams: As for :func:`train`.
        loggers: As for :func:`train`.
        report: Called with all stacks about once a second; in one process after each stack.

    Returns:
        The stacks. On Ray one that fails does not end the others; in one process its error is raised. Ctrl-C, SIGTERM
        and SIGHUP let the iterations finish and save.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> from graphsnd.rl.log import read_rows
        >>> grid = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2, iterations=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = train_grid(grid, Path(folder), stack=1, device="cpu")
        ...     done.finished, [(row.iteration, row.seed) for row in read_rows(Path(folder), grid.row)]
        (True, [(1, 0), (1, 1), (2, 0), (2, 1)])
    """
    folder = Path(folder)
    if device is not None:
        check_choice("device", device, MOST)
    start, saved = perf_counter(), read_grid(folder) if resume else None
    with connect(ray) as has_gpu:
        if device is None:
            device = saved[1] if saved else "cuda" if has_gpu else "cpu"
        if device == "cuda" and ray is None and not has_gpu:
            raise InputError("device", "that this machine has", "cuda", "Use cpu.")
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / LOCK):
            remove_parts(folder)
            if saved is None:
                check_free(folder, task)
            parts = cut_grid(task, device, stack=stack) if saved is None else _check_same(task, saved[0], saved[2])
            about = {"device": device, STACKS: [part.to_dict() for part in parts]}
            write_whole(folder / DESCRIPTION, json.dumps({"task": task.to_dict()} | about, indent=1) + "\n")
            named = {f"{place:0{len(str(len(parts) - 1))}d}": part for place, part in enumerate(parts)}
            options = {"device": device, "checkpoint_every": checkpoint_every, "keep_teams": keep_teams}
            work = partial(_train_stack, options=options | {"loggers": tuple(loggers)})
            stacks, stopped = run_stacks(named, folder / STACKS, work, device=device, ray=ray, report=report)
            merge_logs([each.folder for each in stacks if each.done], task.row, task.run_names(), folder)
    return TrainedGrid(stacks, perf_counter() - start, device, stopped)


def _check_same(task: Task | ControlTask, old: Task | ControlTask, parts: Sequence[Any]) -> list[Any]:
    """Return the stacks of a grid with the iterations of ``task``, which must be the same otherwise."""
    more, least = task.settings.iterations, old.settings.iterations
    if type(old) is not type(task) or old.with_iterations(more) != task:
        raise InputError("task", "to be that of the folder, but for iterations", "another")
    check_integer("iterations", more, f"to be at least {least}, as before", low=least)
    return [part.with_iterations(more) for part in parts]


def _train_stack(name: str, task: Task | ControlTask, folder: Path, *, options: dict[str, Any]) -> int:
    return train(task, folder, resume=has_checkpoint(folder), **options).stopped


def run_stacks(
    stacks: Mapping[str, Task | ControlTask],
    root: Path,
    work: Work,
    *,
    device: str,
    ray: str | None = None,
    again: bool = False,
    report: Report = lambda stacks: None,
) -> tuple[tuple[Stack, ...], int]:
    """Train stacks one after the other or as tasks of Ray, and leave each in ``root/name``.

    Before every attempt a stack's folder gets a new name, ``name.1``, ``name.2``, ... A worker that was given up and
    lives on (its node was cut off) finds no folder under the name it knows, so it cannot write into the attempt that
    took over, whatever host it is on. Each attempt makes its own lock, which a worker of another one does not hold.

    Args:
        stacks: By names of folders.
        root: Made if need be. One process at a time may use it.
        work: Trains a stack in a folder, from the checkpoint that may be there.
        device: ``"cpu"`` or ``"cuda"``: what a task asks of Ray.
        ray: None for this process; an address is connected already.
        again: Whether stacks that are finished are worked on too.
        report: As for :func:`train_grid`.

    Returns:
        The stacks, and the signal that stopped them, or 0.
    """
    root.mkdir(parents=True, exist_ok=True)
    known = {name: _look(Stack(name, task, find_folder(root.resolve(), name))) for name, task in stacks.items()}
    for name, each in known.items():
        known[name] = replace(each, state="waiting")  # the lock's file tells of an attempt, and this is before one
        if not again and each.folder.name == name and each.done >= each.task.settings.iterations:
            known[name] = replace(each, state="finished")
    run = _in_turn if ray is None else partial(_on_ray, device=device)
    report(list(known.values()))
    stopped = run(known, work, lambda: report(list(known.values())))
    return tuple(known.values()), stopped


def _in_turn(known: dict[str, Stack], work: Work, tell: Callable[[], None]) -> int:
    stopped = 0
    for stack in [each for each in known.values() if each.state != "finished"]:
        claimed = _claim(stack)
        stopped = work(stack.name, stack.task, claimed.folder)
        known[stack.name] = _finish(claimed, stopped)
        tell()
        if stopped:
            break
    return stopped


def _on_ray(known: dict[str, Stack], work: Work, tell: Callable[[], None], *, device: str) -> int:
    ray = require("ray", "ray")
    vain = dict.fromkeys(known, (0, 0))  # losses in a row that brought no iteration, and the most iterations before
    told = 0.0

    def submit(name: str) -> Any:
        stack = known[name] = _claim(known[name])
        resources = {"num_cpus": stack.task.settings.threads or 1, "num_gpus": int(device == "cuda")}
        # Ray itself is not to try again: it would give the folder of an attempt that may live on to the next one.
        return ray.remote(max_retries=0, **resources)(_attempt).remote(work, name, stack.task, stack.folder)

    def collect(name: str, reference: Any) -> Stack:
        stack = _look(known[name])
        try:
            return _finish(stack, ray.get(reference))
        except ray.exceptions.TaskCancelledError:
            return replace(stack, state="waiting")
        except ray.exceptions.RayTaskError as error:
            return replace(stack, state="failed", error=f"{type(error.cause).__name__}: {error.cause}")
        except ray.exceptions.RayError as error:  # of the worker, or of its node
            times, best = vain[name]
            vain[name] = times, best = (0, stack.done) if stack.done > best else (times + 1, best)
            text = f"lost {times} times without an iteration: {error}" if times > RETRIES else ""
            return replace(stack, state="failed" if text else "lost", losses=stack.losses + 1, error=text)

    with interruptible() as stop:
        pending = {submit(name): name for name, each in known.items() if each.state != "finished"}
        cancelled = False
        while pending:
            ready, _ = ray.wait(list(pending), timeout=PATIENCE)
            if stop() and not cancelled:
                cancelled = True
                for reference in pending:
                    ray.cancel(reference)  # as Ctrl-C would: the iteration finishes and is saved
            for reference in ready:
                name = pending.pop(reference)
                known[name] = collect(name, reference)
                if known[name].state == "lost" and not cancelled:
                    pending[submit(name)] = name
            if perf_counter() - told > PATIENCE or not pending:
                known |= {name: _look(known[name]) for name in pending.values()}
                tell()
                told = perf_counter()
        return stop()


def _attempt(work: Work, name: str, task: Task | ControlTask, folder: Path) -> int:
    if not folder.is_dir():
        raise InputError("folder", "on a path that every node shares", f"no {str(folder)!r} on {platform.node()}")
    return work(name, task, folder)


@contextmanager
def connect(address: str | None) -> Iterator[bool]:
    """Connect to a Ray cluster, unless this process is or ``address`` is None; yields whether there is a GPU."""
    if address is None:
        yield torch.cuda.is_available()
        return
    ray = require("ray", "ray")
    mine = not ray.is_initialized()
    if mine:
        host, colon, port = address.removeprefix("ray://").rpartition(":")
        try:
            if colon and "://" not in host:
                # Ray would wait for minutes for one that does not answer.
                socket.create_connection((host, int(port)), timeout=SILENCE).close()
            ray.init(address=None if address == "any" else address, logging_level="ERROR", log_to_driver=False)
        except (OSError, OverflowError, ValueError) as error:
            raise InputError("ray", "to be the address of a cluster", f"{address!r} ({error})") from None
    try:
        yield ray.cluster_resources().get("GPU", 0) >= 1
    finally:
        if mine:
            ray.shutdown()


def find_folder(root: Path, name: str) -> Path:
    """Return the folder of a stack: that of its end, which may not be there yet, or of its last attempt."""
    last = max(_attempts(root / name), default=0)
    return root / f"{name}.{last}" if last and not (root / name).is_dir() else root / name


def _attempts(end: Path) -> list[int]:
    return [int(path.suffix[1:]) for path in end.parent.glob(f"{end.name}.*") if path.suffix[1:].isdigit()]


def _claim(stack: Stack) -> Stack:
    """Return a stack whose folder has the name of a new attempt."""
    end = stack.folder.with_name(stack.name)
    folder = end.with_name(f"{stack.name}.{max(_attempts(end), default=0) + 1}")
    if stack.folder.is_dir():
        stack.folder.rename(folder)
        (folder / LOCK).unlink(missing_ok=True)
    else:
        folder.mkdir()
    return replace(stack, folder=folder)


def _finish(stack: Stack, stopped: int) -> Stack:
    """Return a stack whose worker has returned; where it is done, its folder gets its own name."""
    stack = _look(stack)
    if stopped:
        return replace(stack, state="waiting")
    end = stack.folder.rename(stack.folder.with_name(stack.name))
    for left in _attempts(end):  # by workers that were given up
        shutil.rmtree(end.with_name(f"{stack.name}.{left}"), ignore_errors=True)
    return replace(stack, folder=end, state="finished")


def _look(stack: Stack) -> Stack:
    """Return a stack with the iterations that its log has by now."""
    try:
        with (stack.folder / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read().split(b"\n")[1:-1]  # the first may be cut, or names the columns; the last may be cut
    except OSError:
        lines = []
    text = lines[-1].partition(b",")[0] if lines else b""
    state = "running" if (stack.folder / LOCK).exists() else "waiting"
    return replace(stack, done=int(text) if text.isdigit() else 0, state=state)
