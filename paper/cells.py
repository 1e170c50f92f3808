"""Cells of an experiment, kept as they are finished, so that a killed run continues where it was."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from graphsnd.errors import InputError
from graphsnd.files import parse_json, read_json, write_whole
from graphsnd.plots.provenance import describe_hardware, find_commit
from paper.rows import decode
from paper.store import RESULTS

T = TypeVar("T")
UNKNOWN, CHANGED = "unknown", ", changed"  # what a commit is called, or ends in
SIGNATURES = "made.json"
NAME = re.compile(r"[\w.,=-]+")


@dataclass(frozen=True)
class Cell:
    """A cell as its file has it."""

    settings: Any
    value: Any
    commit: str = UNKNOWN
    seconds: float = 0.0
    date: str = ""  # of its beginning
    load: float | None = None  # of the machine then


class Cells:
    """A folder with one file for each finished cell.

    Args:
        folder: Of this experiment at this scale. Made if need be.
        results: Where committed results are, for experiments that read those of long GPU runs.
        step: Called with a cell's name as it begins.
        clean: Whether cells that were made by no known commit are made again.
        out: Where logs of trainings go that will be committed; ``results`` by default.
        again: Whether committed results are measured again where this machine can.
        ray: Address of a Ray cluster that trains stacks of runs; None for this machine.

    Attributes:
        made: The requested cells without their values: commit, seconds, date and load of each.
        spared: Seconds that the requested cells took which were already there.

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
        step: Callable[[str], None] = lambda name: None,
        clean: bool = False,
        out: Path | None = None,
        again: bool = False,
        ray: str | None = None,
    ) -> None:
        self.root, self.results, self.step, self.clean = folder, results, step, clean
        self.out, self.again, self.ray = out or results, again, ray
        self.fresh = False  # whether work of other commits is made again
        self.made: list[Cell] = []
        self.spared = 0.0

    def get(self, name: str, settings: dict[str, Any], make: Callable[[], T], kind: type[T]) -> T:
        """Return a cell's value, from its file where it was made with the same settings, else made now.

        Args:
            name: Letters, digits and ``.,=-_``.
            settings: Everything the value depends on, ready for JSON; a cell with other settings is made again.
            make: Computes the value.
            kind: Its type, such as ``Row`` or ``list[Row]``; see :func:`~paper.rows.decode`.

        Returns:
            The value as it is read from JSON, so that a new one and a stored one are alike.
        """
        path = self._path(name).with_name(f"{name}.json")
        wanted = json.loads(json.dumps(settings))
        stored = _read_cell(path, kind)
        if stored is not None and stored.settings == wanted and self._accepts(stored.commit):
            self.made.append(replace(stored, settings=None, value=None))
            self.spared += stored.seconds
            return cast(T, stored.value)
        self.step(name)
        about, begin = sign(), perf_counter()
        cell = replace(about, settings=wanted, value=make(), seconds=perf_counter() - begin)
        self.made.append(about)
        text = json.dumps(vars(cell), default=asdict)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        return cast(T, decode(kind, json.loads(text)["value"]))

    def find(self, name: str) -> Path | None:
        """Return where a file or folder of results is: in ``out`` where that has it, else among the committed ones."""
        return next((path for root in (self.out, self.results) if (path := root / name).exists()), None)

    def folder(self, name: str) -> Path:
        """Return a folder of a cell's own, for work that keeps checkpoints by itself, such as training."""
        path = self._path(name)
        unsigned = [Cell(None, None)] * path.is_dir()
        if not all(self._accepts(cell.commit) for cell in self.signatures(name) or unsigned):
            shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def beside(self, name: str) -> Cells:
        """Return the cells of another folder beside this one, which several experiments share; their work counts here.

        Where measurements are repeated, work of other commits is not accepted.
        """
        shared = Cells(
            self.root.parent / name, results=self.results, step=self.step, clean=self.clean, again=self.again
        )
        shared.made, shared.fresh = self.made, self.again
        return shared

    def sign(self, name: str) -> None:
        """Note in a :meth:`folder` that work on it goes on now."""
        text = json.dumps([*self.signatures(name), sign()], default=asdict)
        write_whole(self._path(name) / SIGNATURES, text)

    def count(self, name: str) -> None:
        """Count a :meth:`folder` among what was :attr:`made`, as it was signed."""
        self.made += self.signatures(name)

    def signatures(self, name: str) -> list[Cell]:
        """Return who worked on a :meth:`folder`: empty cells with commit, date and load."""
        path = self._path(name) / SIGNATURES
        return cast(list[Cell], decode(list[Cell], read_json(path, SIGNATURES) if path.is_file() else []))

    def _accepts(self, commit: str) -> bool:
        unknown = commit == UNKNOWN or commit.endswith(CHANGED)
        return not (self.clean and unknown) and not (self.fresh and commit != _describe_commit())

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise InputError("name", "of letters, digits and .,=-_", repr(name))
        return self.root / name


def _read_cell(path: Path, kind: Any) -> Cell | None:
    """Return a cell; None where there is none, or a damaged one, which is made again."""
    try:
        cell: Cell = decode(Cell, parse_json(path.read_bytes()))
        return replace(cell, value=decode(kind, cell.value))
    except (FileNotFoundError, ValueError):
        return None


def sign() -> Cell:
    """Return an empty cell of now: commit, date and load."""
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Cell(None, None, _describe_commit(), date=date, load=describe_hardware()["load"])


def date_provenance(about: dict[str, Any], made: Sequence[Cell]) -> dict[str, Any]:
    """Say when cells were measured, on how busy a machine, and by which commits: a resumed run may have several."""
    dates, loads = [cell.date for cell in made if cell.date], [cell.load for cell in made if cell.load is not None]
    hardware = about["hardware"] | {"load": max(loads, default=about["hardware"]["load"])}
    dated = {"date": min([about["date"], *dates]), "hardware": hardware, "cells": sorted({one.commit for one in made})}
    return about | dated


@lru_cache(maxsize=1)
def _describe_commit() -> str:
    """Return the commit that runs, and whether sources were changed since."""
    about = find_commit()
    return f"{about['commit'] or UNKNOWN}{CHANGED if about['dirty'] else ''}"
