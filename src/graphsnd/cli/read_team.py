"""Teams from files: tensors by name, and never a pickle that could run code."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.files import BEHAVIOR_KEYS, DESCRIPTION, OBSERVATIONS, build_behavior, read_tensors
from graphsnd.teams.team import Team

OBSERVATIONS_FIX = 'Write it: numpy.savez("obs.npz", observations=...), of shape (observations, features).'
EXTRAS = ("positions", "clusters")  # of a TeamFile, after its observations
KEYS = BEHAVIOR_KEYS.union(EXTRAS, ("observations",))


@dataclass(frozen=True, eq=False)
class TeamFile:
    """What a file or a folder holds."""

    team: Behavior | Team
    observations: Tensor | None = None  # [..., features], for policies
    positions: Tensor | None = None  # [agents, d] or [observations, agents, d], where the agents are
    clusters: Tensor | None = None  # [observations], episode or environment of each


def find_teams(paths: Sequence[Path]) -> list[Path]:
    """Return the saved teams among these paths and in their folders, by name; other paths as they are.

    Raises:
        InputError: For several paths of which one holds no saved team.
    """
    teams: list[Path] = []
    for path in paths:
        inside = sorted(file.parent for file in path.rglob(DESCRIPTION)) if path.is_dir() else []
        if len(paths) > 1 and not inside:
            fix = "State dicts of one team need --policy mymodule:make."
            raise InputError("files", "to hold saved teams where there are several", repr(str(path)), fix)
        teams += inside or [path]
    return list(dict.fromkeys(teams))


def read_checkpoints(paths: Sequence[Path], policy: str, entry: str | None, observations: Path | None) -> TeamFile:
    """Read one team from several state dicts, one agent each, and observations to show it.

    Args:
        paths: Files, or a folder of them.
        policy: ``module:name`` or ``file.py:name`` of a function that makes the module.
        entry: Name of the state dict in a file, as in :meth:`Team.load <graphsnd.Team.load>`.
        observations: A file with the key ``observations``.
    """
    if observations is None:
        raise InputError("observations", "with --policy", "no such option", OBSERVATIONS_FIX)
    tensors = _read_observations(observations)
    team = Team.load(paths, policy=import_function(policy), entry=entry)
    return TeamFile(team, tensors["observations"], *map(tensors.get, EXTRAS))


def import_function(text: str) -> Callable[..., Any]:
    """Import what ``--policy`` names: ``module:name``, also from the present folder, or ``file.py:name``."""
    module, colon, name = text.rpartition(":")
    if not colon or not module or not name:
        raise InputError("policy", "as module:function or file.py:function", repr(text))
    try:
        if module.endswith(".py"):
            held = runpy.run_path(module)
        else:
            # As `python -m` does: an installed command does not look where it is started.
            sys.path.insert(0, os.getcwd())
            held = vars(importlib.import_module(module))
    except (ImportError, FileNotFoundError) as error:
        raise InputError("policy", "to name a module that can be imported", f"{text!r}: {error}") from error
    if not callable(held.get(name)):
        raise InputError("policy", f"to name a function in {module}", repr(text))
    return held[name]


def read_team(path: Path, observations: Path | None = None) -> TeamFile:
    """Read a behaviour or a saved team, and positions and clusters where there are any.

    Args:
        path: A ``.npz``, ``.safetensors`` or ``.pt`` file of named tensors, of which other keys are ignored; or the
            folder of a saved team.
        observations: A file with the key ``observations``, for a saved team unless it lies beside it.

    Raises:
        InputError: For a file that is missing, unreadable, too large, pickled, or does not hold exactly one behaviour.
    """
    if path.is_dir():
        return _read_policies(path, observations)
    if observations is not None:
        raise InputError("observations", "with the folder of a saved team", f"{path.name!r}, a file")
    tensors = read_tensors(path, KEYS)
    return TeamFile(build_behavior(tensors), None, *map(tensors.get, EXTRAS))


def _read_policies(folder: Path, observations: Path | None) -> TeamFile:
    if not (folder / DESCRIPTION).is_file():
        raise InputError("files", f"to be a file, or a folder with {DESCRIPTION}", repr(str(folder)))
    path = observations or folder / OBSERVATIONS
    if observations is None and not path.is_file():
        raise InputError("observations", "with the folder of a saved team", "no such option")
    tensors = _read_observations(path)
    team = Team.load(folder)
    return TeamFile(team, tensors["observations"], *map(tensors.get, EXTRAS))


def _read_observations(path: Path) -> dict[str, Any]:
    try:
        tensors = read_tensors(path, KEYS)
    except InputError as error:
        error.name = "observations" if error.name == "path" else error.name
        raise
    if "observations" not in tensors:
        got = f"{path.name!r} without it"
        raise InputError("observations", "to be a file with the key `observations`", got, OBSERVATIONS_FIX)
    return tensors
