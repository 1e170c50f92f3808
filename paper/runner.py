"""Run an experiment cell by cell, train the stacks of runs that it reads, and keep its result.

A result is ``<out>/<experiment>/<scale>.json``, with its figure beside it. A stopped experiment resumes from its cells,
one file for each, in ``<work>/<scale>/<experiment>``.

A study is a dictionary of stacks of runs that are trained together on a GPU: from the folder of a log in ``results/``
to the task that makes it. A stopped stack resumes from its checkpoint. So a study can be completed over several visits
to a machine with a GPU, and every stack records the commits that trained it.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

import torch

from benchmarks.provenance import collect_provenance, find_commit, verify_commit
from graphsnd.errors import InputError
from graphsnd.files import hold_lock, parse_json, read_json, remove_parts, write_whole
from graphsnd.plots.style import png_bytes
from graphsnd.plots.training_tables import describe_grid
from graphsnd.rl import Task, Trainer, train
from graphsnd.rl.checkpoint import has_checkpoint, load_checkpoint
from graphsnd.rl.grid import Stack, connect, run_stacks
from graphsnd.rl.log import METRICS, read_rows
from paper.control.actions import ACTIONS, write_actions
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.old_format import read_task
from paper.rows import decode

T = TypeVar("T")
Stacks = Mapping[str, Task]
RESULTS = Path(__file__).parent / "results"  # committed, of this checkout
WORK = Path("runs/paper")
DPI = 90  # resolution of figures
ABOUT, SIGNATURES = "about.json", "made.json"
UNKNOWN, CHANGED = "unknown", ", changed"  # name of an unknown commit, and ending of a commit with changed sources


@dataclass(frozen=True)
class Result:
    """One experiment at one scale, as stored in its file."""

    experiment: str
    title: str
    scale: Scale
    provenance: dict[str, Any]  # command, date, commit, dirty, hardware, versions, seeds, took_s, and that of sources
    sources: tuple[str, ...]  # committed results that were read instead of running
    numbers: dict[str, Number]
    data: Any  # what the figure draws, as JSON


@dataclass(frozen=True)
class Cell:
    """A cell as stored in its file."""

    settings: Any
    value: Any
    commit: str = UNKNOWN
    seconds: float = 0.0


class Cells:
    """A folder with one file for each finished cell.

    Args:
        folder: Folder of this experiment at this scale. Made if need be.
        results: Folder of committed results, for experiments that read those of long GPU runs.
        out: Folder for logs and measurements that will be committed; ``results`` by default.
        step: Called with a cell's name as it begins.
        clean: Whether cells without a known commit are made again.
        again: Whether existing stacks are trained again.
        ray: Address of a Ray cluster that trains stacks of runs; None for this machine.
        command: Command that makes the results. None: the command of the experiment with the folder's name.

    Attributes:
        made: Commits of the requested cells.
        spared: Seconds that the already finished requested cells had taken.

    Example:
        >>> import tempfile
        >>> from paper.experiment import Number
        >>> cells = Cells(Path(tempfile.mkdtemp()))
        >>> cells.get("n=4", {"agents": 4}, lambda: Number(0.5), Number).value
        0.5
        >>> cells.get("n=4", {"agents": 4}, lambda: Number(0.7), Number).value  # already there, not repeated
        0.5
    """

    def __init__(
        self,
        folder: Path,
        *,
        results: Path = RESULTS,
        out: Path | None = None,
        step: Callable[[str], None] = lambda name: None,
        clean: bool = False,
        again: bool = False,
        ray: str | None = None,
        command: str | None = None,
    ) -> None:
        self.command = command or f"python -m paper run {folder.name} --scale paper"
        self.root, self.results, self.out, self.step = folder, results, out or results, step
        self.clean, self.again, self.ray = clean, again, ray
        self.fresh = False  # whether work of other commits is made again
        self.made: list[str] = []
        self.spared = 0.0

    def get(self, name: str, settings: dict[str, Any], make: Callable[[], T], kind: type[T]) -> T:
        """Return a cell's value: read from its file if that has the same settings, otherwise computed now.

        Args:
            name: A file name without its ending.
            settings: Everything the value depends on, ready for JSON; a cell with other settings is made again.
            make: Function that computes the value.
            kind: Type of the value, such as ``Row`` or ``list[Row]``; see :func:`~paper.rows.decode`.

        Returns:
            The value as read from JSON, so that a new one and a stored one are equal.
        """
        path, wanted = self.root / f"{name}.json", json.loads(json.dumps(settings))
        stored = _read_cell(path, kind)
        if stored is not None and stored.settings == wanted and self._accepts(stored.commit):
            self.made.append(stored.commit)
            self.spared += stored.seconds
            return cast(T, stored.value)
        self.step(name)
        begin = perf_counter()
        cell = Cell(wanted, make(), _describe_commit(), perf_counter() - begin)
        self.made.append(cell.commit)
        text = json.dumps(vars(cell), default=asdict)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        return cast(T, decode(kind, json.loads(text)["value"]))

    def find(self, name: str) -> Path | None:
        """Return the path of a file or folder of results: in ``out`` if it exists there, otherwise a committed one."""
        return next((path for root in (self.out, self.results) if (path := root / name).exists()), None)

    def earlier(self, kind: type[T]) -> T | None:
        """Return the data of this experiment's last result at paper scale; None where there is none."""
        path = self.find(f"{self.root.name}/{Scale.PAPER.value}.json")
        return None if path is None else cast(T, decode(kind, read_result(path).data))

    def folder(self, name: str) -> Path:
        """Return a folder for one cell, for work that keeps its own checkpoints, such as training."""
        path = self.root / name
        if not all(map(self._accepts, self.signatures(name) or [UNKNOWN] * path.is_dir())):
            shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def beside(self, name: str) -> Cells:
        """Return the cells of a sibling folder that several experiments share; their commits and seconds count here.

        If measurements are repeated, cells of other commits are not accepted.
        """
        shared = Cells(self.root.parent / name, results=self.results, step=self.step, clean=self.clean)
        shared.made, shared.fresh = self.made, self.again
        return shared

    def signatures(self, name: str) -> list[str]:
        """Return the commits that worked on a :meth:`folder`."""
        path = self.root / name / SIGNATURES
        return cast(list[str], decode(list[str], read_json(path, SIGNATURES) if path.is_file() else []))

    def _accepts(self, commit: str) -> bool:
        unknown = commit == UNKNOWN or commit.endswith(CHANGED)
        return not (self.clean and unknown) and not (self.fresh and commit != _describe_commit())


def run(
    experiment: Experiment,
    scale: Scale,
    *,
    out: Path = RESULTS,
    work: Path = WORK,
    again: bool = False,
    ray: str | None = None,
    step: Callable[[str], None] = lambda name: None,
) -> Result:
    """Run one experiment and write ``<out>/<name>/<scale>.json`` and its figure.

    A finished experiment is read, and only a missing figure is drawn. A stopped one continues from its cells. One that
    lacks trainings or measurements on a GPU continues on a machine that has a GPU.

    Args:
        experiment: Experiment to run, from :func:`~paper.experiment.find`.
        scale: Scale of the run.
        out: Folder of results.
        work: Folder of unfinished work.
        again: Repeat a finished experiment from the beginning. A stopped repetition continues.
        ray: Address of a Ray cluster that trains the missing stacks at paper scale.
        step: Called with the name of each cell as it begins.

    Raises:
        InputError: When another process runs it in the same folder, when a cell raises it, and at paper scale when the
            sources are not those of a commit.
    """
    path, folder = result_path(out, experiment.name, scale), work / scale.value / experiment.name
    clean = scale is Scale.PAPER
    cells = Cells(folder, results=RESULTS, out=out, step=step, clean=clean, again=again, ray=ray)
    if path.is_file() and not again and not (clean and _is_lacking(experiment, path, cells)):
        result = read_result(path)
        if not path.with_suffix(".png").is_file():
            draw(experiment, result, path)
        return result
    if clean:
        verify_commit("result", RESULTS.parents[1])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder.with_name(f"{folder.name}.lock")):
        remove_parts(folder)
        begin = perf_counter()
        about = collect_provenance(f"python -m paper run {experiment.name} --scale {scale.value}")
        outcome = experiment.run(scale, cells)
        if clean and find_commit()["tree"] != about["tree"]:
            # Modules that were imported late may come from other sources than those imported first.
            raise InputError("result", "to be made by the same sources from start to end", "sources that changed")
        about["took_s"] = round(perf_counter() - begin + cells.spared, 1)
        about = _tell_origin(about, cells.made, outcome, (out, RESULTS))
        data = json.loads(json.dumps(outcome.data, default=asdict))  # the figure gets the same data as a later reader
        numbers = {name: number for name, number in outcome.numbers.items() if number is not None}
        result = Result(experiment.name, experiment.title, scale, about, tuple(outcome.sources), numbers, data)
        path.with_suffix(".png").unlink(missing_ok=True)  # an outdated figure is worse than none
        write_result(result, path)
        shutil.rmtree(folder, ignore_errors=True)  # a repetition starts from scratch
        draw(experiment, result, path)
    return result


def _is_lacking(experiment: Experiment, path: Path, cells: Cells) -> bool:
    """Return whether this machine can add to a finished result: trainings, or the fields that need a GPU."""
    data = decode(experiment.data, read_result(path).data)
    unfilled = torch.cuda.is_available() and not all(getattr(data, name) for name in experiment.on_gpu)
    return unfilled or bool(stacks_to_train(experiment.stacks, cells))


def draw(experiment: Experiment, result: Result, path: Path) -> None:
    """Draw the figure of a result beside its JSON, as wide as the page; 128 colours take a fifth of the bytes."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png_bytes(experiment.figure(decode(experiment.data, result.data)), dpi=DPI))) as image:
        small = image.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(buffer, format="png", optimize=True)
    write_whole(path.with_suffix(".png"), buffer.getvalue())


def result_path(folder: Path, name: str, scale: Scale) -> Path:
    """Return the path of an experiment's JSON; its figure has the same name and ends in ``.png``."""
    return folder / name / f"{scale.value}.json"


def write_result(result: Result, path: Path) -> None:
    """Write a result atomically.

    Raises:
        InputError: For a number that is not finite, or whose interval is inconsistent.
    """
    for name, number in result.numbers.items():
        ends = [end for end in (number.low, number.value, number.high) if end is not None]
        crossed = number.low is not None and number.high is not None and number.low > number.high
        if crossed or not all(map(math.isfinite, ends)):
            raise InputError(f"{result.experiment}.{name}", "finite, with low at most high", repr(number))
    head = {"format": 1, **vars(result)}
    data = json.dumps(head.pop("data"), allow_nan=False)
    # The parts that people read have a line for each value; the data may be long and has one line.
    text = json.dumps(head, indent=1, allow_nan=False, default=_as_dict)[:-2] + ',\n "data": ' + data
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text + "\n}\n")


def _as_dict(row: Any) -> dict[str, Any]:
    """Return the fields of a row for JSON; a number's empty ends are left out, because most numbers have them."""
    return {name: value for name, value in vars(row).items() if name != "ends" or value}


def read_result(path: Path) -> Result:
    """Read what :func:`write_result` wrote.

    Raises:
        InputError: For a damaged file, or one that is no result.
    """
    fix = "Remove it and run the experiment again."
    try:
        return cast(Result, decode(Result, parse_json(path.read_bytes())))
    except (OSError, TypeError, ValueError) as error:
        raise InputError("FILE", "with the result of an experiment", f"{path}: {error!r}", fix) from None


def read_results(folder: Path, name: str) -> dict[Scale, Result]:
    """Return the results of one experiment by the scales at which it was run, the smallest first."""
    paths = {scale: result_path(folder, name, scale) for scale in Scale}
    return {scale: read_result(path) for scale, path in paths.items() if path.is_file()}


def train_cell(task: Task, cells: Cells, name: str, *, device: str = "cpu") -> Trainer:
    """Return the trainer at the end of a task: trained once, and continued from its checkpoint if it was killed.

    Args:
        task: Task to train.
        cells: Cells that hold its folder.
        name: Name of the folder.
        device: Device that trains.

    Raises:
        InputError: When the folder holds another training.
        KeyboardInterrupt: With the number of the signal that ended it, once the training has saved a checkpoint.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings
        >>> task = Task("navigation", 2, {}, (0,), settings=Settings(steps=4, environments=2, iterations=2))
        >>> cells = Cells(Path(tempfile.mkdtemp()))
        >>> train_cell(task, cells, "team").iteration, train_cell(task, cells, "team").iteration
        (2, 2)
    """
    folder, signed = cells.folder(name), cells.signatures(name)

    def report(rows: Sequence[Any]) -> None:
        if len(cells.signatures(name)) == len(signed):
            write_whole(folder / SIGNATURES, json.dumps([*signed, _describe_commit()]))
        cells.step(f"{name}, iteration {rows[0].iteration} of {task.settings.iterations}")

    outcome = train(task, folder, device=device, resume=has_checkpoint(folder), on_row=report)
    cells.made += cells.signatures(name)
    if not outcome.finished:
        raise KeyboardInterrupt(outcome.stopped)
    return outcome.trainer


def gather_stacks(stacks: Stacks, cells: Cells) -> list[Path]:
    """Return the folders of the finished stacks; a GPU on this machine or on Ray trains the missing ones first.

    Args:
        stacks: All stacks of a study.
        cells: Cells that hold unfinished trainings and results. With ``cells.again`` all stacks are trained.
    """
    train_stacks(stacks, stacks_to_train(stacks, cells), cells)
    return [folder for name, task in stacks.items() if (folder := _find_stack(name, task, cells))]


def stacks_to_train(stacks: Stacks, cells: Cells) -> list[str]:
    """Return the missing stacks, or all with ``cells.again``; none without a GPU to train them."""
    can = torch.cuda.is_available() or cells.ray is not None
    return [name for name, task in stacks.items() if can and (cells.again or not _is_whole(name, task, cells))]


def train_stacks(stacks: Stacks, names: Sequence[str], cells: Cells, *, device: str = "cuda") -> None:
    """Train some stacks one after the other, or as tasks of Ray, and leave their logs in ``cells.out``.

    Raises:
        InputError: When stacks failed on Ray.
        KeyboardInterrupt: After Ctrl-C, once the training has saved a checkpoint.
    """
    if cells.ray is None:
        for name in names:
            _train_stack(name, stacks[name], cells, name.replace("/", ","), device)
    elif names:
        _train_on_ray({name.replace("/", ","): stacks[name] for name in names}, cells, device)


def _train_stack(name: str, task: Task, cells: Cells, cell: str, device: str) -> None:
    """Train a stack in the folder of a cell."""
    try:
        train_cell(task, cells, cell, device=device)
        if task.target and not (cells.folder(cell) / ACTIONS).is_file():
            write_actions(cells.folder(cell), device=device)
    finally:
        _copy_log(task, cells, cell, name, device)


def _train_on_ray(stacks: Stacks, cells: Cells, device: str) -> None:
    """Train stacks, named by their cells, on the cluster ``cells.ray``."""
    begin, options = perf_counter(), {"clean": cells.clean, "results": cells.results.resolve()}

    def report(all_of_them: Sequence[Stack]) -> None:
        cells.step(describe_grid(all_of_them, perf_counter() - begin))

    work = partial(_work_on_ray, device=device, options=options | {"out": cells.out.resolve()})
    with connect(cells.ray):
        trained, stopped = run_stacks(stacks, cells.root, work, device=device, ray=cells.ray, again=True, report=report)
    cells.made += [commit for name in stacks for commit in cells.signatures(name)]
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


def _find_stack(name: str, task: Task, cells: Cells) -> Path | None:
    """Return the folder of a stack's log, the newer one if there are two.

    Raises:
        InputError: When the log is that of another task.
    """
    for folder in (cells.out / name, cells.results / name):
        if (folder / METRICS).is_file():
            path = folder / ABOUT
            if path.is_file() and read_task(read_json(path, ABOUT)["task"]) != task:
                raise InputError("results", f"with the stack {name}", f"the log of another task in {folder}")
            return folder
    return None


def _is_whole(name: str, task: Task, cells: Cells) -> bool:
    folder = _find_stack(name, task, cells)
    return folder is not None and read_rows(folder)[-1].iteration >= task.settings.iterations


def _copy_log(task: Task, cells: Cells, cell: str, name: str, device: str) -> None:
    """Copy the files that the numbers need from a training's folder, the log last, and record their origin."""
    folder, target = cells.folder(cell), cells.out / name
    if not (folder / METRICS).is_file():
        return
    about, saved = collect_provenance(cells.command), load_checkpoint(folder)
    about["cells"] = sorted(set(cells.signatures(cell)))
    about |= {"seeds": list(task.seeds), "device": device, "took_s": round(saved.seconds, 1)}
    about |= {"iterations": saved.iteration, "task": task.to_dict()}
    # Teams of independent policies are kept to be measured again; those of a controlled run would be too large.
    teams = [] if task.target else [f"{name}/*" for name in task.run_names()]
    for pattern in (ACTIONS, *teams, METRICS):
        for path in folder.glob(pattern):
            (target / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / path.relative_to(folder))
    write_whole(target / ABOUT, json.dumps(about, indent=1) + "\n")


def _read_cell(path: Path, kind: Any) -> Cell | None:
    """Return a cell; None if it is missing or damaged, so that it is made again."""
    try:
        cell: Cell = decode(Cell, parse_json(path.read_bytes()))
        return replace(cell, value=decode(kind, cell.value))
    except (FileNotFoundError, TypeError, ValueError):
        return None


@lru_cache(maxsize=1)
def _describe_commit() -> str:
    """Return the commit that runs, and whether sources were changed since then."""
    about = find_commit()
    return f"{about['commit'] or UNKNOWN}{CHANGED if about['dirty'] else ''}"


def _tell_origin(about: dict[str, Any], made: Sequence[str], outcome: Outcome, roots: Sequence[Path]) -> dict[str, Any]:
    """Return the provenance of a result: commits of its cells, seeds, and the provenance of results that it read."""
    del about["seed"]
    sources = {source: _origin_of(source, roots) for source in outcome.sources}
    about |= {"cells": sorted(set(made)), "seeds": [int(seed) for seed in outcome.seeds], "sources": sources}
    if not made:  # nothing was measured now
        origins = [origin for origin in sources.values() if origin and "commit" in origin]
        about["cells"] = sorted({origin["commit"] for origin in origins})
        about["took_s"] = round(sum(origin.get("took_s", 0.0) for origin in origins), 1)
    return about


def _origin_of(source: str, roots: Sequence[Path]) -> dict[str, Any] | None:
    """Return the provenance of a result that was read; None if it has none."""
    places = [root / source.removeprefix("results/") for root in roots]
    path = next((place for place in places if place.exists()), places[-1])
    path = path / ABOUT if path.is_dir() else path
    if path.suffix != ".json" or not path.is_file():
        return None
    about = decode(dict[str, Any], read_json(path, path.name))
    return {key: value for key, value in about.get("provenance", about).items() if key != "task"}
