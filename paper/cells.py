"""Cells of an experiment, kept as they are finished, so that a killed run continues where it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from graphsnd.errors import InputError
from graphsnd.plots.provenance import find_commit
from graphsnd.storage import parse_json, write_whole
from paper.rows import decode
from paper.store import RESULTS

T = TypeVar("T")
NAME = re.compile(r"[\w.,=-]+")


@dataclass(frozen=True)
class Cell:
    """A cell as its file has it."""

    settings: Any
    value: Any
    commit: str = "unknown"
    seconds: float = 0.0


class Cells:
    """A folder with one file for each finished cell.

    Args:
        folder: Of this experiment at this scale. Made if need be.
        results: Where committed results are, for experiments that read those of long GPU runs.
        step: Called with a cell's name as it begins.

    Attributes:
        commits: Of the code that made the requested cells, ``"unknown"`` for those that do not say.
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
        self, folder: Path, *, results: Path = RESULTS, step: Callable[[str], None] = lambda name: None
    ) -> None:
        self.root, self.results, self.step = folder, results, step
        self.commits: set[str] = set()
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
        if stored is not None and stored.settings == wanted:
            self.commits.add(stored.commit)
            self.spared += stored.seconds
            return cast(T, stored.value)
        self.step(name)
        self.commits.add(_describe_commit())
        begin = perf_counter()
        cell = {"settings": wanted, "commit": _describe_commit(), "value": make(), "seconds": perf_counter() - begin}
        text = json.dumps(cell, default=asdict)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        return cast(T, decode(kind, json.loads(text)["value"]))

    def folder(self, name: str) -> Path:
        """A folder of a cell's own, for work that keeps checkpoints by itself, such as training."""
        path = self._path(name)
        path.mkdir(parents=True, exist_ok=True)
        return path

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


@lru_cache(maxsize=1)
def _describe_commit() -> str:
    """The commit that runs, and whether files were changed since."""
    about = find_commit()
    return f"{about['commit'] or 'unknown'}{', changed' if about['dirty'] else ''}"
