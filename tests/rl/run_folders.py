"""Whether two run folders hold the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from graphsnd.errors import InputError
from graphsnd.rl.checkpoint import DESCRIPTION, load_checkpoint
from graphsnd.rl.log import read_rows
from graphsnd.teams.files import OBSERVATIONS, TENSORS


def differences(folder: Path, reference: Path) -> list[str]:
    """Return in what a run folder differs from that of an undisturbed run; nothing when all bits are the same.

    Seconds are left out.
    """
    files, expected = _files(folder), _files(reference)
    if files != expected:
        return [f"files {sorted(files ^ expected)}"]
    try:
        found, wanted = load_checkpoint(folder, logged=True), load_checkpoint(reference)
        rows = [numbers(path) for path in (folder, reference)]
    except InputError as error:
        return [f"unreadable: {error}"]
    wrong = [name for name, part in wanted.tensors.items() if not torch.equal(part, found.tensors[name])]
    state = [(each.task, each.iteration, each.threads) for each in (found, wanted)]
    wrong += ["state"] * (state[0] != state[1]) + ["metrics.csv"] * (rows[0] != rows[1])
    whole = (TENSORS, OBSERVATIONS, DESCRIPTION, "team.json")
    return wrong + [str(name) for name in files if name.name in whole and _read(folder, name) != _read(reference, name)]


def _files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def _read(folder: Path, name: Path) -> bytes:
    return (folder / name).read_bytes()


def numbers(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a log without the seconds."""
    rows = [dataclasses.asdict(row) for row in read_rows(folder)]
    return [{key: row[key] for key in row if not key.endswith("_seconds")} for row in rows]
