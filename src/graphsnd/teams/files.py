"""Behaviours and weights from files; nothing is unpickled."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, check_clusters, describe
from graphsnd.files import parse_json, write_whole
from graphsnd.teams.answers import FAMILIES, FIELDS

MAX_BYTES = 2**33  # memory limit for the tensors of a file; far above teams that a machine measures in minutes
NAMES = "names"  # the key of the agents' names
FORMS = "loc + scale, loc + covariance, probs, logits (+ mask), actions, values, or samples"
BEHAVIOR_KEYS = frozenset(key for keys in FAMILIES for key in keys) | {"mask", NAMES}
DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
ENDINGS = (".pt", ".pth", ".safetensors")


def save_behavior(
    behavior: Behavior, path: str | os.PathLike[str], *, clusters: Tensor | Sequence[int] | None = None
) -> None:
    """Write what agents would do on shared observations to a file for :func:`load_behavior` and ``graphsnd measure``.

    float64 stays float64, all else becomes float32. Observations keep their leading shape, clusters are written flat.

    Args:
        behavior: A behaviour of one part.
        path: Ends in ``.npz``.
        clusters: Episode or environment of each observation, integers, in their shape or flat.

    Raises:
        InputError: For actions of several parts, another ending, and clusters that are not an integer per observation.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_behavior(gs.Deterministic(torch.zeros(8, 3, 2)), f"{folder}/team.npz")
    """
    if type(behavior) not in FIELDS:
        raise InputError("behavior", "of one part", type(behavior).__name__, "Save the parts of a Joint one by one.")
    if Path(path).suffix != ".npz":
        fix = "The other formats are only read, so write them with their own libraries."
        raise InputError("path", "to end in .npz", repr(Path(path).name), fix)
    tensors = {name: getattr(behavior, name) for name, _ in FIELDS[type(behavior)]}
    tensors = {name: part if part.dtype == torch.float64 else part.float() for name, part in tensors.items()}
    arrays = {name: part.detach().cpu().numpy() for name, part in tensors.items()}
    groups = check_clusters(clusters, behavior.batch_shape)
    if groups is not None:
        arrays["clusters"] = groups.numpy()
    content = io.BytesIO()
    np.savez(content, names=np.array(behavior.names), **arrays)
    write_whole(path, content.getvalue())


def load_behavior(path: str | os.PathLike[str]) -> Behavior:
    """Read a behaviour that :func:`save_behavior` or another program wrote; nothing is unpickled.

    Args:
        path: A ``.npz``, ``.safetensors`` or ``.pt`` file of named tensors (``docs/files.md``); others are ignored.

    Raises:
        InputError: For a file that is missing, unreadable, too large, pickled, or does not hold exactly one behaviour.

    Example:
        >>> import tempfile, torch, graphsnd as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_behavior(gs.Deterministic(torch.zeros(8, 3, 2)), f"{folder}/team.npz")
        ...     load_behavior(f"{folder}/team.npz")
        Deterministic(agents=3, observations=8)
    """
    return build_behavior(read_tensors(Path(path), BEHAVIOR_KEYS))


def build_behavior(tensors: dict[str, Any]) -> Behavior:
    """Return the one behaviour among the tensors of a file."""
    # A lone `loc` fits no family, and loc with scale and covariance fits two; both are named for what they are.
    held = [keys for keys in FAMILIES if set(keys) <= set(tensors)]
    named = ", ".join(sorted(tensors)) or "none of these keys"
    if not held:
        fix = "For weights of policies: --policy mymodule:make, or Team.load(path, policy=make)."
        raise InputError("path", f"to hold {FORMS}", named, fix)
    if len(held) > 1:
        raise InputError("path", f"to hold only one of {FORMS}", named, "Save the one that should be compared.")
    keys = held[0]
    arguments = {key: tensors[key] for key in keys}
    if "mask" in tensors:
        if keys != ("logits",):
            raise InputError("mask", "only together with `logits`", f"{' + '.join(keys)} and mask")
        arguments["mask"] = tensors["mask"]
    behavior = FAMILIES[keys](**arguments)
    return behavior.with_names(tensors[NAMES]) if NAMES in tensors else behavior


def read_tensors(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """Return the tensors of a file that have one of the keys, and the agents' names as a list of strings.

    Args:
        path: Ends in ``.npz``, ``.safetensors``, ``.pt`` or ``.pth``.
        keys: The keys to read.

    Raises:
        InputError: For a file that is missing, damaged, too large, pickled, or whose tensors are not real and dense.
    """
    if path.suffix.lower() not in (".npz", *ENDINGS):
        fix = "Save with numpy.savez or torch.save."
        raise InputError("path", "to end in .npz, .safetensors or .pt", repr(path.name), fix)
    with naming_damage(path):
        tensors = _read_npz(path, keys) if path.suffix.lower() == ".npz" else _open_mapped(path)
        held = {key: part for key, part in tensors.items() if isinstance(key, str) and key in keys}
    for key, tensor in held.items():
        plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and not tensor.is_meta
        if key != NAMES and not (plain and tensor.dtype in DTYPES):
            raise InputError(key, "to be a dense tensor of real numbers", describe(tensor), "Convert it to float32.")
    check_size(path, sum(part.nbytes for part in held.values() if isinstance(part, Tensor)))
    # Copied, so that the numbers stay when another program writes into the file.
    return {key: part.clone() if isinstance(part, Tensor) else part for key, part in held.items()}


def read_state_dict(path: Path, entry: str | None = None) -> dict[str, Tensor]:
    """Return all tensors of a state dict, mapped into memory.

    Args:
        path: Ends in ``.safetensors``, ``.pt`` or ``.pth``.
        entry: The key of a ``.pt`` file under which the state dict lies; where None and there is only one, that.

    Raises:
        InputError: For a file that is missing, damaged, pickled, or holds none or several state dicts.
    """
    with naming_damage(path):
        held = _open_mapped(path)
    dicts = {"": held} | {key: one for key, one in held.items() if isinstance(key, str) and isinstance(one, Mapping)}
    states = {key: {name: part for name, part in one.items() if isinstance(part, Tensor)} for key, one in dicts.items()}
    states = {key: state for key, state in states.items() if state}
    if entry is None and states:
        entry = next(iter(states)) if len(states) == 1 or "" in states else None
    if entry not in states:
        fix = f"Name one of {', '.join(states)}: entry=, or --entry." if states else ""
        raise InputError("entry", f"to be a dict of tensors in {path.name!r}", repr(entry), fix)
    return states[entry]


def check_size(path: Path, size: int) -> None:
    """Raise for tensors that take more memory than they may."""
    if size > MAX_BYTES:
        got = f"{path.name!r}, {size - MAX_BYTES:,} bytes too many"
        fix = "If you trust the file, set graphsnd.teams.files.MAX_BYTES."
        raise InputError("path", f"to fit in {MAX_BYTES:,} bytes", got, fix)


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Let errors say that the file is missing or damaged."""
    if not path.is_file():
        raise InputError("path", "to exist", f"{'something else' if path.exists() else 'no file'} {str(path)!r}")
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # NumPy, torch and safetensors raise anything on files that are cut or something else
        # Readers explain at length and over several lines; the first sentence of the first one says what is wrong.
        why = str(error).strip().splitlines()[0][:160].rstrip(". ") if str(error).strip() else type(error).__name__
        got, fix = f"{path.name!r} ({why})", ""
        if isinstance(error, pickle.UnpicklingError) or "allow_pickle" in why:
            fix = "Pickled objects are never loaded: save plain tensors, such as a state dict, alone."
        raise InputError("path", f"to be a readable {path.suffix} file of tensors", got, fix) from None


def _read_npz(path: Path, keys: Collection[str]) -> dict[str, Any]:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError("path", "to be an .npz archive of named arrays", "a single array", "Use numpy.savez.")
    with archive:
        sizes = {info.filename.removesuffix(".npy"): info.file_size for info in archive.zip.infolist()}
        check_size(path, sum(size for key, size in sizes.items() if key in keys))
        arrays = {key: archive[key] for key in sizes if key in keys}  # others are never opened
    return {key: array.reshape(-1).tolist() if key == NAMES else _from_numpy(array) for key, array in arrays.items()}


def _from_numpy(array: Any) -> Any:
    if array.dtype.kind not in "fiub":
        return array
    # torch knows neither foreign byte orders nor long doubles.
    return torch.from_numpy(array.astype(np.float64 if array.itemsize > 8 else array.dtype.newbyteorder("=")))


def _open_mapped(path: Path) -> dict[Any, Any]:
    """Return what a ``.pt`` or ``.safetensors`` file holds, mapped into memory; nothing is unpickled but tensors."""
    if path.suffix.lower() == ".safetensors":
        with safe_open(path, framework="pt") as opened:
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 (not a mapping)
            names = (opened.metadata() or {}).get(NAMES)  # the format has no strings but those of its metadata
        return tensors if names is None else {**tensors, NAMES: parse_json(names)}
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:  # torch does not compare checksums
            raise ValueError("bad checksum")
    held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    if not isinstance(held, Mapping):
        raise InputError("path", "to hold a dict of tensors by name", f"a {type(held).__name__}")
    return dict(held)
