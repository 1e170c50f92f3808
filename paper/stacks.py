"""Stacks of runs that are trained together on a GPU: read where they are, trained where they are not.

A study is a dictionary of stacks: the folder of a log in ``results/`` and the task that makes it. A stack that was
stopped goes on from its checkpoint, in the folder of cells; its log is copied to the results when it stops or ends. So
a study can be completed over several visits to a machine with a GPU, some stacks at a time, and every stack says which
commits trained it.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

import torch

from graphsnd.errors import InputError
from graphsnd.files import read_json, write_whole
from graphsnd.plots.provenance import collect_provenance
from graphsnd.plots.training import describe_grid
from graphsnd.rl import Task
from graphsnd.rl.checkpoint import DESCRIPTION, load_checkpoint
from graphsnd.rl.grid import Stack, connect, run_stacks
from graphsnd.rl.log import METRICS, read_rows
from paper.cells import Cells, date_provenance
from paper.control.actions import ACTIONS, write_actions
from paper.old_format import read_task
from paper.rows import decode
from paper.shared.rollouts import train_cell

T = TypeVar("T")
Stacks = Mapping[str, Task]
ABOUT = "about.json"


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What was measured, and where that was."""

    provenance: dict[str, Any]
    value: T


def gather_stacks(stacks: Stacks, cells: Cells) -> list[Path]:
    """Return the folders of those stacks that are there; a GPU here or on Ray trains the others first.

    Args:
        stacks: All of a study.
        cells: Where unfinished trainings and results are. With ``cells.again`` all stacks are trained.
    """
    train_stacks(stacks, stacks_to_train(stacks, cells), cells)
    return [folder for name, task in stacks.items() if (folder := _find(name, task, cells))]


def stacks_to_train(stacks: Stacks, cells: Cells) -> list[str]:
    """Return those that are missing, or all with ``cells.again``; none where there is no GPU to train them."""
    can = torch.cuda.is_available() or cells.ray is not None
    return [name for name in stacks if can and (cells.again or not _is_whole(stacks, name, cells))]


def files_to_measure(names: Sequence[str], cells: Cells) -> list[str]:
    """Return those that are missing, or all with ``cells.again``; none where there is no GPU to measure on."""
    can = torch.cuda.is_available()
    return [name for name in names if can and (cells.again or cells.find(name) is None)]


def train_stacks(stacks: Stacks, names: Sequence[str], cells: Cells, *, device: str = "cuda") -> None:
    """Train some stacks one after the other, or as tasks of Ray, and leave their logs in ``cells.out``.

    Raises:
        InputError: For a name that is not among the stacks, and on Ray for stacks that failed.
        KeyboardInterrupt: After Ctrl-C, once the training has saved where it was.
    """
    for name in names:
        if name not in stacks:
            raise InputError("--stacks", f"to be among {', '.join(stacks) or 'none'}", repr(name))
    if cells.ray is not None and names:
        _train_on_ray({name.replace("/", ","): stacks[name] for name in names}, cells, device)
        return
    for place, name in enumerate(names):
        more = sum(stacks[other].settings.iterations for other in names[place + 1 :])
        _train_stack(name, stacks[name], cells, name.replace("/", ","), device, more)


def _train_stack(name: str, task: Task, cells: Cells, cell: str, device: str, more: int = 0) -> None:
    """Train a stack in the folder of a cell."""
    try:
        train_cell(task, cells, cell, device=device, more=more)
        if task.target and not (cells.folder(cell) / ACTIONS).is_file():
            write_actions(cells.folder(cell), device=device)
    finally:
        _copy_log(task, cells, cell, name, device)


def _train_on_ray(stacks: Stacks, cells: Cells, device: str) -> None:
    """Train stacks, by the names of their cells, on the cluster ``cells.ray``."""
    begin, options = perf_counter(), {"clean": cells.clean, "results": cells.results.resolve()}

    def report(all_of_them: Sequence[Stack]) -> None:
        cells.step(describe_grid(all_of_them, perf_counter() - begin))

    work = partial(_work_on_ray, device=device, options=options | {"out": cells.out.resolve()})
    with connect(cells.ray):
        trained, stopped = run_stacks(stacks, cells.root, work, device=device, ray=cells.ray, again=True, report=report)
    for cell in stacks:
        cells.count(cell)
    if stopped:
        raise KeyboardInterrupt(stopped)
    if failed := [f"{each.name}: {each.error}" for each in trained if each.state == "failed"]:
        raise InputError("stacks", "to finish", "; ".join(failed))


def _work_on_ray(cell: str, task: Task, folder: Path, *, device: str, options: dict[str, Any]) -> int:
    """Train a stack in the folder of one attempt."""
    try:
        _train_stack(cell.replace(",", "/"), task, Cells(folder.parent, **options), folder.name, device)
    except KeyboardInterrupt as stop:
        return int(stop.args[0]) if stop.args else signal.SIGINT
    return 0


def _find(name: str, task: Task, cells: Cells) -> Path | None:
    """Return the folder of a stack's log, the newer one where there are two.

    Raises:
        InputError: For the log of another task.
    """
    for folder in (cells.out / name, cells.results / name):
        if (folder / METRICS).is_file():
            path = folder / DESCRIPTION
            if path.is_file() and read_task(path) != task:
                raise InputError("results", f"with the stack {name}", f"the log of another task in {folder}")
            return folder
    return None


def _is_whole(stacks: Stacks, name: str, cells: Cells) -> bool:
    task = stacks[name]
    folder = _find(name, task, cells)
    return folder is not None and read_rows(folder)[-1].iteration >= task.settings.iterations


def _copy_log(task: Task, cells: Cells, cell: str, name: str, device: str) -> None:
    """Copy what numbers need out of a training's folder, the log last, and say where it was made."""
    folder, target = cells.folder(cell), cells.out / name
    if not (folder / METRICS).is_file():
        return
    command = f"python -m paper train {cells.root.name} --stacks {name}"
    about = date_provenance(collect_provenance(command), cells.signatures(cell))
    saved = load_checkpoint(folder)
    about |= {"seeds": list(task.seeds), "device": device, "took_s": round(saved.seconds, 1)}
    about |= {"iterations": saved.iteration, "task": task.to_dict()}
    # Teams of independent policies are measured again; those of a controlled run would be too large to keep.
    teams = [] if task.target else [f"{name}/*" for name in task.run_names()]
    for pattern in (DESCRIPTION, ACTIONS, *teams, METRICS):
        for path in folder.glob(pattern):
            (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.relative_to(folder))
    write_whole(target / ABOUT, json.dumps(about, indent=1) + "\n")


def read_or_measure(
    name: str, make: Callable[[], T], kind: type[T], cells: Cells, *, here: bool, seeds: Sequence[int] = ()
) -> Measured[T] | None:
    """Return what ``results/<name>`` says; where it is missing, or with ``cells.again``, measure and write it.

    Args:
        name: Of a JSON file below the folder of results.
        make: Measures it, cell by cell.
        kind: Of what it returns.
        cells: Where results are.
        here: Whether this machine can measure it. If not, a file that is missing gives None.
        seeds: That it uses, for the file.
    """
    path = cells.find(name)
    if here and (cells.again or path is None):
        begun, spared, begin, value = len(cells.made), cells.spared, perf_counter(), make()
        command = f"python -m paper run {cells.root.name} --scale paper"
        about = date_provenance(collect_provenance(command), cells.made[begun:]) | {"seeds": list(seeds)}
        about["took_s"] = round(perf_counter() - begin + cells.spared - spared, 1)
        path = cells.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"provenance": about, "value": value}, default=asdict) + "\n")
    if path is None:
        return None
    read = decode(dict[str, Any], read_json(path, name))
    return Measured(read["provenance"], cast(T, decode(kind, read["value"])))
