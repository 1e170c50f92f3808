"""Cells of an experiment, kept as they are finished, so that a killed run continues where it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphsnd.errors import InputError
from graphsnd.teams.files import write_whole
from paper.store import RESULTS

NAME = re.compile(r"[\w.,=-]+")


class Cells:
    """A folder with one file for each finished cell.

    Args:
        folder: Of this experiment at this scale. Made if need be.
        results: Where committed results are, for experiments that read those of long GPU runs.
        step: Called with a cell's name as it begins.

    Attributes:
        commits: Of the code that made the cells that were asked for, ``"unknown"`` for those that do not say.

    Example:
        >>> import tempfile
        >>> cells = Cells(Path(tempfile.mkdtemp()))
        >>> cells.get("n=4", {"agents": 4}, lambda: {"snd": 0.5})
        {'snd': 0.5}
        >>> cells.get("n=4", {"agents": 4}, lambda: {"snd": 0.7})  # already there, not repeated
        {'snd': 0.5}
    """

    def __init__(
        self, folder: Path, *, results: Path = RESULTS, step: Callable[[str], None] = lambda name: None
    ) -> None:
        self.root, self.results, self.step = folder, results, step
        self.commits: set[str] = set()

    def get(self, name: str, settings: dict[str, Any], make: Callable[[], Any]) -> Any:
        """A cell's value, from its file where it was made with the same settings, else made now.

        Args:
            name: Letters, digits and ``.,=-_``.
            settings: Everything the value depends on, ready for JSON; a cell with other settings is made again.
            make: Gives something ready for JSON.

        Returns:
            The value as JSON reads it, so that a new one and a stored one are alike.
        """
        path = self._path(name).with_name(f"{name}.json")
        wanted = json.loads(json.dumps(settings))
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["settings"] == wanted:
                self.commits.add(found.get("commit", "unknown"))
                return found["value"]
        self.step(name)
        made = _code()
        self.commits.add(made)
        text = json.dumps({"settings": wanted, "commit": made, "value": make()})
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
        return json.loads(text)["value"]

    def folder(self, name: str) -> Path:
        """A folder of a cell's own, for work that keeps checkpoints by itself, such as training."""
        path = self._path(name)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise InputError("name", "of letters, digits and .,=-_", repr(name))
        return self.root / name


@lru_cache(maxsize=1)
def _code() -> str:
    """The commit that runs, and whether files were changed since."""
    from graphsnd.plots.origin import commit

    found = commit()
    return f"{found['commit'] or 'unknown'}{', changed' if found['dirty'] else ''}"
