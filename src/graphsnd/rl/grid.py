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
from typing import Any

import torch

from graphsnd.errors import InputError, check_choice, check_integer, require
from graphsnd.files import LOCK, hold_lock, remove_parts, write_whole
from graphsnd.rl.checkpoint import DESCRIPTION, STACKS, has_checkpoint, read_grid
from graphsnd.rl.cuda import check_cuda
from graphsnd.rl.log import METRICS, merge_logs
from graphsnd.rl.loop import check_free, interruptible, train
from graphsnd.rl.task import MOST, Task, cut_grid

RETRIES = 10  # losses of a stack's worker or node after which it has failed
SILENCE = 10.0  # seconds after which a cluster counts as absent
PATIENCE = 1.0  # seconds between two reports
TAIL = 4096  # bytes, longer than a row of a log
Report = Callable[[Sequence["Stack"]], None]
Work = Callable[[str, Task, Path], int]  # trains in a folder; returns the signal that stopped it, or 0


@dataclass(frozen=True)
class Stack:
    """Progress of a stack of runs.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> grid = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2, iterations=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stacks, stopped = train_grid(grid, Path(folder), stack=1, device="cpu")
        >>> [(stack.name, stack.task.seeds, stack.done, stack.state) for stack in stacks]
        [('0', (0,), 2, 'finished'), ('1', (1,), 2, 'finished')]
    """

    name: str  # name of its folder in stacks/
    task: Task  # task of its runs
    folder: Path  # folder of its last attempt, or the final one
    done: int = 0  # iterations in its log
    state: str = "waiting"  # "running", "finished" or "failed"
    error: str = ""  # why it failed


def train_grid(
    task: Task,
    folder: Path,
    *,
    device: str | None = None,
    stack: int = 0,
    ray: str | None = None,
    resume: bool = False,
    report: Report = lambda stacks: None,
    **options: Any,
) -> tuple[tuple[Stack, ...], int]:
    """Train a grid of runs stack by stack, and write one ``metrics.csv`` of all of them.

    The cut (:func:`cut_grid`) is written to ``settings.json`` and used again when the grid is resumed. Each stack has a
    folder of its own in ``stacks/``, as :func:`train` writes it. With the same cut every number but the seconds has
    the same bits in one process and on a cluster, whatever workers were lost.

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
        report: Called with all stacks about once a second; in one process after each stack.
        options: ``checkpoint_every``, ``keep_teams`` and ``loggers`` of :func:`train`.

    Returns:
        The stacks, and the signal that stopped them, or 0. On Ray one that fails does not end the others; in one
        process its error is raised. Ctrl-C, SIGTERM and SIGHUP let the iterations finish and save.

    Raises:
        InputError: When the folder holds another training, or none where it should be resumed.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> from graphsnd.rl.log import read_rows
        >>> grid = Task("navigation", 2, seeds=(0, 1), settings=Settings(steps=4, environments=2, iterations=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = train_grid(grid, Path(folder), stack=1, device="cpu")
        ...     [(row.iteration, row.seed) for row in read_rows(Path(folder))]
        [(1, 0), (1, 1), (2, 0), (2, 1)]
    """
    folder = Path(folder)
    if device is not None:
        check_choice("device", device, MOST)
    saved = read_grid(folder) if resume else None
    with connect(ray) as has_gpu:
        if device is None:
            device = saved[1] if saved else "cuda" if has_gpu else "cpu"
        if ray is None:
            check_cuda(device)
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / LOCK):
            remove_parts(folder)
            if saved is None:
                check_free(folder)
            parts = cut_grid(task, device, stack=stack) if saved is None else _check_same(task, saved[0], saved[2])
            about = {"device": device, STACKS: [part.to_dict() for part in parts]}
            write_whole(folder / DESCRIPTION, json.dumps({"task": task.to_dict()} | about, indent=1) + "\n")
            named = {f"{place:0{len(str(len(parts) - 1))}d}": part for place, part in enumerate(parts)}
            work = partial(_train_stack, options=options | {"device": device})
            stacks, stopped = run_stacks(named, folder / STACKS, work, device=device, ray=ray, report=report)
            merge_logs([each.folder for each in stacks if each.done], task.run_names(), folder)
    return stacks, stopped


def _check_same(task: Task, old: Task, parts: Sequence[Any]) -> list[Any]:
    """Return the stacks of a grid with the iterations of ``task``, which must be the same otherwise."""
    more, least = task.settings.iterations, old.settings.iterations
    if old.with_iterations(more) != task:
        raise InputError("task", "to be that of the folder, but for iterations", "another")
    check_integer("iterations", more, f"to be at least {least}, as before", low=least)
    return [part.with_iterations(more) for part in parts]


def _train_stack(name: str, task: Task, folder: Path, *, options: dict[str, Any]) -> int:
    return train(task, folder, resume=has_checkpoint(folder), **options).stopped


def run_stacks(
    stacks: Mapping[str, Task],
    root: Path,
    work: Work,
    *,
    device: str,
    ray: str | None = None,
    again: bool = False,
    report: Report = lambda stacks: None,
) -> tuple[tuple[Stack, ...], int]:
    """Train stacks one after the other or as tasks of Ray, and leave each in ``root/name``.

    Every attempt begins by giving the stack's folder a new name, ``name.1``, ``name.2``, ... A worker that was given up
    but still runs (its node was cut off) finds no folder under the name it knows, so it cannot write into the attempt
    that took over, whatever host it is on. Each attempt has its own lock, which workers of other attempts do not hold.

    Args:
        stacks: Stacks by the names of their folders.
        root: Made if need be. One process at a time may use it.
        work: Trains a stack in a folder, from the checkpoint that may be there.
        device: ``"cpu"`` or ``"cuda"``: the resource that a task requests from Ray.
        ray: None for this process; for an address, Ray must be connected already.
        again: Whether to train finished stacks too.
        report: Called with all stacks, as in :func:`train_grid`.

    Returns:
        The stacks, and the signal that stopped them, or 0.
    """
    root = root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    known = {name: _inspect(root, name, task) for name, task in stacks.items()}
    waiting = [name for name, each in known.items() if again or each.state != "finished"]
    report(list(known.values()))
    if ray is not None:
        return _run_on_ray(known, waiting, root, work, report, device=device)
    stopped = 0
    for name in waiting:
        stopped = _attempt(root, name, stacks[name], work)
        known[name] = _inspect(root, name, stacks[name])
        report(list(known.values()))
        if stopped:
            break
    return tuple(known.values()), stopped


def _run_on_ray(
    known: dict[str, Stack], waiting: Sequence[str], root: Path, work: Work, report: Report, *, device: str
) -> tuple[tuple[Stack, ...], int]:
    ray = require("ray", "ray")

    def submit(task: Task, name: str) -> Any:
        resources = {"num_cpus": task.settings.threads or 1, "num_gpus": int(device == "cuda")}
        # Ray starts a task again where its worker or node is lost.
        return ray.remote(max_retries=RETRIES, **resources)(_attempt).remote(root, name, task, work)

    with interruptible() as stop:
        pending = {submit(known[name].task, name): name for name in waiting}
        cancelled = False
        while pending:
            ready, _ = ray.wait(list(pending), timeout=PATIENCE)
            if stop() and not cancelled:
                cancelled = True
                for reference in pending:
                    ray.cancel(reference)  # as Ctrl-C would: the iteration finishes and is saved
            errors = {}
            for reference in ready:
                try:
                    ray.get(reference)
                except ray.exceptions.TaskCancelledError:
                    pass
                except ray.exceptions.RayTaskError as error:
                    errors[pending[reference]] = f"{type(error.cause).__name__}: {error.cause}"
                except ray.exceptions.RayError as error:  # of the worker, or of its node
                    errors[pending[reference]] = f"lost {RETRIES + 1} times: {error}"
            for name in pending.values():
                known[name] = _inspect(root, name, known[name].task, running=True)
            for reference in ready:
                name = pending.pop(reference)
                known[name] = _inspect(root, name, known[name].task)
                if name in errors:
                    known[name] = replace(known[name], state="failed", error=errors[name])
            report(list(known.values()))
        return tuple(known.values()), stop()


def _attempt(root: Path, name: str, task: Task, work: Work) -> int:
    """Work on a stack in a folder with the name of a new attempt, which gets the stack's own name at the end."""
    if not root.is_dir():
        raise InputError("folder", "on a path that every node shares", f"no {str(root)!r} on {platform.node()}")
    end, before = root / name, find_folder(root, name)
    folder = root / f"{name}.{max(_attempts(end), default=0) + 1}"
    if before.is_dir():
        before.rename(folder)
        (folder / LOCK).unlink(missing_ok=True)
    else:
        folder.mkdir()
    stopped = work(name, task, folder)
    if not stopped:
        folder.rename(end)
        for left in _attempts(end):  # by workers that were given up
            shutil.rmtree(root / f"{name}.{left}", ignore_errors=True)
    return stopped


@contextmanager
def connect(address: str | None) -> Iterator[bool]:
    """Connect to a Ray cluster, unless it is connected or ``address`` is None; yields whether there is a GPU."""
    if address is None:
        yield torch.cuda.is_available()
        return
    ray = require("ray", "ray")
    mine = not ray.is_initialized()
    if mine:
        host, colon, port = address.removeprefix("ray://").rpartition(":")
        try:
            if colon and "://" not in host:
                # Ray would wait for minutes for a cluster that does not answer.
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
    """Return the folder of a stack: the final one, which may not exist yet, or that of its last attempt."""
    last = max(_attempts(root / name), default=0)
    return root / f"{name}.{last}" if last and not (root / name).is_dir() else root / name


def _attempts(end: Path) -> list[int]:
    return [int(path.suffix[1:]) for path in end.parent.glob(f"{end.name}.*") if path.suffix[1:].isdigit()]


def _inspect(root: Path, name: str, task: Task, *, running: bool = False) -> Stack:
    """Return a stack with the iterations that its log has by now."""
    folder = find_folder(root, name)
    try:
        with (folder / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read().split(b"\n")[1:-1]  # the first may be cut, or names the columns; the last may be cut
    except OSError:
        lines = []
    text = lines[-1].partition(b",")[0] if lines else b""
    done = int(text) if text.isdigit() else 0
    finished = folder.name == name and done >= task.settings.iterations
    started = running and (folder / LOCK).exists()
    return Stack(name, task, folder, done, "finished" if finished else "running" if started else "waiting")
