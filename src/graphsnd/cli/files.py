"""Teams from files: tensors by name, and never a pickle that could run code."""

from __future__ import annotations

import json
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphsnd.behavior import Behavior, Categorical, Deterministic, Gaussian, MultivariateGaussian
from graphsnd.errors import InputError
from graphsnd.teams import Team
from graphsnd.teams.files import DESCRIPTION, OBSERVATIONS

# The keys of every family; a file must hold exactly one of these sets.
FAMILIES: dict[tuple[str, ...], Callable[..., Behavior]] = {
    ("loc", "scale"): Gaussian,
    ("loc", "covariance"): MultivariateGaussian,
    ("probs",): Categorical,
    ("logits",): Categorical,
    ("actions",): Deterministic,
}
OPTIONAL = ("mask", "positions", "observations", "clusters", "names")
KEYS = frozenset(key for keys in FAMILIES for key in keys) | frozenset(OPTIONAL)
# What readers raise on files that are truncated, empty or something else altogether, besides UnpicklingError.
BROKEN = (OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)
DAMAGE = (*BROKEN, struct.error, zipfile.BadZipFile, zlib.error, SafetensorError)
FORMS = "loc + scale, loc + covariance, probs, logits (+ mask), or actions"


@dataclass(frozen=True, eq=False)
class TeamFile:
    """What a file or a folder holds."""

    team: Behavior | Team
    observations: Tensor | None = None  # [..., features], for policies
    positions: Tensor | None = None  # [agents, d], where the agents are
    clusters: Tensor | None = None  # [observations], episode or environment of each

    @torch.no_grad()
    def evaluate(self) -> Behavior:
        """Return the behaviour of all agents on all observations."""
        if isinstance(self.team, Behavior):
            return self.team
        assert self.observations is not None  # read_team reads them with the policies
        return self.team.evaluate(self.observations)


def read_team(path: Path, observations: Path | None = None) -> TeamFile:
    """Read a behaviour or a saved team, and positions and clusters where there are any.

    Args:
        path: A ``.npz``, ``.safetensors`` or ``.pt`` file of named tensors, of which other keys are ignored; or the
            folder of a saved team.
        observations: A file with the key ``observations``, for a saved team unless it lies beside it.

    Raises:
        InputError: For a file that is missing, unreadable, pickled, or does not hold exactly one behaviour.
    """
    if path.is_dir():
        return _read_policies(path, observations)
    if observations is not None:
        raise InputError("--observations", "with the folder of a saved team", f"{path.name!r}, a file")
    return _team(_tensors(path))


def _read_policies(folder: Path, observations: Path | None) -> TeamFile:
    if not (folder / DESCRIPTION).is_file():
        inside = sorted(path.parent for path in folder.glob(f"*/{DESCRIPTION}"))
        fix = f"Name one of its teams: {', '.join(map(str, inside[:3]))}." if inside else ""
        raise InputError("FILE", f"to be a file, or a folder with {DESCRIPTION}", repr(str(folder)), fix)
    path = observations or folder / OBSERVATIONS
    if observations is None and not path.is_file():
        raise InputError("--observations", "with the folder of a saved team", "no such option")
    tensors = _tensors(path)
    if "observations" not in tensors:
        raise InputError("--observations", "to be a file with the key `observations`", f"{path.name!r} without it")
    return TeamFile(Team.load(folder), tensors["observations"], tensors.get("positions"), tensors.get("clusters"))


def _tensors(path: Path) -> dict[str, Any]:
    readers = {".npz": _npz, ".safetensors": _safetensors, ".pt": _pt, ".pth": _pt}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        got = f"{path.name!r}"
        raise InputError("FILE", "to end in .npz, .safetensors or .pt", got, "Save with numpy.savez or torch.save.")
    if not path.is_file():
        raise InputError("FILE", "to exist", f"no file {str(path)!r}" if not path.exists() else "a folder")
    try:
        return reader(path)
    except InputError:
        raise
    except pickle.UnpicklingError:
        fix = "It may hold pickled objects, which are never loaded: save a dict of tensors, torch.save({'loc': ...})."
        raise InputError("FILE", "to be tensors only", f"{path.name!r}, which is not", fix) from None
    except DAMAGE as error:
        raise _unreadable(path, error) from None


def _team(tensors: dict[str, Any]) -> TeamFile:
    # A lone `loc` fits no family, and loc with scale and covariance fits two; both are named for what they are.
    held = [keys for keys in FAMILIES if set(keys) <= set(tensors)]
    named = ", ".join(sorted(set(tensors) & KEYS)) or "none of these keys"
    if not held:
        raise InputError("FILE", f"to hold {FORMS}", named)
    if len(held) > 1:
        raise InputError("FILE", f"to hold only one of {FORMS}", named, "Save the one that should be compared.")
    keys = held[0]
    arguments = {key: tensors[key] for key in keys}
    if "mask" in tensors:
        if keys != ("logits",):
            raise InputError("mask", "only together with `logits`", f"{' + '.join(keys)} and mask")
        arguments["mask"] = tensors["mask"]
    behavior = FAMILIES[keys](**arguments)
    behavior = behavior.with_names(tensors["names"]) if "names" in tensors else behavior
    return TeamFile(behavior, None, tensors.get("positions"), tensors.get("clusters"))


def _npz(path: Path) -> dict[str, Any]:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError("FILE", "to be an .npz archive of named arrays", "a single array", "Use numpy.savez.")
    with archive:
        # Arrays are read one by one: a key that is not ours is never opened.
        return {key: _tensor(key, archive[key]) for key in archive.files if key in KEYS}


def _tensor(key: str, array: np.ndarray) -> Tensor | list[str]:  # type: ignore[type-arg]
    if key == "names" and array.dtype.kind == "U":
        return [str(name) for name in array.reshape(-1)]
    if array.dtype.kind not in "fiub":
        raise InputError(key, "to be an array of numbers", f"dtype {array.dtype}")
    # torch knows neither foreign byte orders nor long doubles.
    native = array.astype(np.float64) if array.dtype.itemsize > 8 else array.astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(native)


def _safetensors(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as archive:
        tensors = {key: archive.get_tensor(key) for key in archive.keys() if key in KEYS}  # noqa: SIM118
        # The format has no strings but those of its metadata.
        names = (archive.metadata() or {}).get("names")
        return tensors if names is None else {**tensors, "names": json.loads(names)}


def _pt(path: Path) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch remarks on foreign pickles before it refuses them
        held = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(held, dict):
        raise InputError("FILE", "to hold a dict of tensors by name", f"a {type(held).__name__}")
    named = {key: value for key, value in held.items() if key in KEYS}
    for key, value in named.items():
        if not isinstance(value, Tensor) and key != "names":
            raise InputError(str(key), "to be a tensor", f"a {type(value).__name__}")
    return named


def _unreadable(path: Path, error: BaseException) -> InputError:
    # Readers explain at length and over several lines; the first sentence of the first one says what is wrong.
    why = str(error).strip().splitlines()[0][:160].rstrip(". ") if str(error).strip() else type(error).__name__
    fix = "Pickled objects are never loaded: save plain arrays of numbers." if "pickle" in why.lower() else ""
    return InputError("FILE", f"to be a readable {path.suffix} file of tensors", f"{path.name!r} ({why})", fix)
