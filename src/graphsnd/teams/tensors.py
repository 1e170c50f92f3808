"""Tensors by name from ``.npz``, ``.safetensors`` and ``.pt`` files that may be damaged or malicious.

What a file declares is compared with what it holds and with a limit before memory is taken for it, because a kilobyte
can declare terabytes. Nothing that a pickle names is imported or called.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.files import parse_json

NAMES = "names"  # the key of the agents' names
TEXTS = (NAMES,)  # keys that may hold text
# What readers raise on files that are truncated, empty or something else altogether.
BROKEN = (OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, OverflowError)
FOREIGN = (SyntaxError, tokenize.TokenError, struct.error, zlib.error, zipfile.BadZipFile, pickle.UnpicklingError)
DAMAGE = (*BROKEN, *FOREIGN, SafetensorError)
# The types of a ``.pt`` file's storages; what has another type (float8, complex, quantised) is not a tensor of numbers.
STORAGES = {
    "DoubleStorage": torch.float64, "FloatStorage": torch.float32, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
}  # fmt: skip
PICKLE = 2**26  # bytes of the pickle in a ``.pt`` file, which describes the tensors: enough for 100,000 of them


@dataclass
class Limit:
    """How many bytes the tensors of a file may still take."""

    path: Path
    left: int

    def take(self, count: int) -> None:
        """Take memory, or raise when there is not as much left."""
        self.left -= count
        if self.left < 0:
            fix = "If you trust the file, raise max_bytes."
            raise InputError("path", "to fit in max_bytes", f"{self.path.name!r}, {-self.left:,} bytes too many", fix)


def read_tensors(path: Path, keys: Collection[str], max_bytes: int) -> dict[str, Any]:
    """Return the tensors of a file that have one of the keys, and the agents' names as a list of strings.

    Args:
        path: Ends in ``.npz``, ``.safetensors``, ``.pt`` or ``.pth``.
        keys: Others are not read.
        max_bytes: That the tensors may take.

    Raises:
        InputError: For a file that is missing, damaged, too large, pickled, or whose tensors are not real and dense.
    """
    readers = {".npz": _npz, ".safetensors": _safetensors, ".pt": _pt, ".pth": _pt}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        fix = "Save with numpy.savez or torch.save."
        raise InputError("path", "to end in .npz, .safetensors or .pt", repr(path.name), fix)
    with _naming_damage(path):
        tensors = reader(path, keys, Limit(path, max_bytes))
    for key, tensor in tensors.items():
        if isinstance(tensor, Tensor) and tensor.dtype not in STORAGES.values():
            raise InputError(key, "to be a tensor of real numbers", f"dtype {tensor.dtype}", "Convert it to float32.")
    return tensors


def read_state_dict(path: Path, limit: Limit, entry: str | None = None) -> dict[str, Tensor]:
    """Return all tensors of a state dict.

    Args:
        path: Ends in ``.safetensors``, ``.pt`` or ``.pth``.
        limit: Bytes that the tensors may take.
        entry: The key of a ``.pt`` file under which the state dict lies; where None and there is only one, that.

    Raises:
        InputError: For a file that is missing, damaged, too large, or holds none or several state dicts.
    """
    with _naming_damage(path):
        if path.suffix.lower() != ".safetensors":
            return _read_pt(path, lambda held: _find_state(held, path, entry), limit)
        if entry is not None:
            raise InputError("entry", "for .pt files, which hold dicts of dicts", repr(path.name))
        limit.take(path.stat().st_size)
        with safe_open(path, framework="pt") as archive:
            return {key: archive.get_tensor(key) for key in archive.keys()}  # noqa: SIM118


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Let errors say that the file is missing or damaged."""
    if not path.is_file():
        raise InputError("path", "to exist", f"{'something else' if path.exists() else 'no file'} {str(path)!r}")
    try:
        yield
    except InputError:
        raise
    except DAMAGE as error:
        # Readers explain at length and over several lines; the first sentence of the first one says what is wrong.
        why = str(error).strip().splitlines()[0][:160].rstrip(". ") if str(error).strip() else type(error).__name__
        got = f"{path.name!r} ({why})"
        raise InputError("path", f"to be a readable {path.suffix} file of tensors", got) from None


def _find_state(held: dict[Any, Any], path: Path, entry: str | None) -> dict[str, Any]:
    """Return the tensors of the one dict among ``held`` and its entries that has any, or of the named one."""
    dicts = {"": held} | {key: value for key, value in held.items() if isinstance(key, str) and isinstance(value, dict)}
    states = {key: {k: v for k, v in one.items() if isinstance(v, _Declared)} for key, one in dicts.items()}
    states = {key: state for key, state in states.items() if state}
    if entry is None and "" in states:
        entry = ""
    if entry is None and len(states) == 1:
        (entry,) = states
    if entry not in states:
        fix = f"Name one of {', '.join(states)}: entry=, or --entry." if states else ""
        raise InputError("entry", f"to be a dict of tensors in {path.name!r}", repr(entry), fix)
    return states[entry]


def _npz(path: Path, keys: Collection[str], limit: Limit) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(6) == np.lib.format.MAGIC_PREFIX:
            raise InputError("path", "to be an .npz archive of named arrays", "a single array", "Use numpy.savez.")
    with zipfile.ZipFile(path) as archive:
        # Arrays are read one by one: a key that is not ours is never opened.
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        return {key: _array(key, archive, info, limit) for key, info in members.items() if key in keys}


def _array(key: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: Limit) -> Tensor | list[str]:
    """Return an array, or names, once its header fits the bytes that follow it."""
    with _open(archive, info, limit) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(member)
        if dtype.kind not in "fiub" and not (key in TEXTS and dtype.kind == "U"):
            fix = "Pickled objects are never loaded: save plain arrays of numbers." if dtype.hasobject else ""
            raise InputError(key, "to be an array of numbers", f"dtype {dtype}", fix)
        declared, held = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
        if declared != held or min(shape, default=0) < 0:
            raise InputError(key, f"to hold the {declared:,} bytes of its shape {shape}", f"{held:,} bytes")
        array = np.frombuffer(member.read(), dtype).reshape(shape, order="F" if fortran else "C")
    if key == NAMES or dtype.kind == "U":
        return list(array.reshape(-1).tolist())
    # torch knows neither foreign byte orders nor long doubles.
    return torch.from_numpy(array.astype(np.float64 if dtype.itemsize > 8 else dtype.newbyteorder("=")))


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: Limit) -> Any:
    """Open a member for which there is memory; it gives no more bytes than it declares, and checks their sum."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError("path", "to be stored or deflated", f"{info.filename!r}, compressed in another way")
    limit.take(info.file_size)
    return archive.open(info)


def _safetensors(path: Path, keys: Collection[str], limit: Limit) -> dict[str, Any]:
    limit.take(path.stat().st_size)  # the library compares what is declared with it
    with safe_open(path, framework="pt") as archive:
        tensors = {key: archive.get_tensor(key) for key in archive.keys() if key in keys}  # noqa: SIM118
        # The format has no strings but those of its metadata.
        names = (archive.metadata() or {}).get(NAMES)
        return tensors if names is None else {**tensors, NAMES: parse_json(names)}


def _pt(path: Path, keys: Collection[str], limit: Limit) -> dict[str, Any]:
    return _read_pt(
        path, lambda held: {k: value for k, value in held.items() if isinstance(k, str) and k in keys}, limit
    )


def _read_pt(path: Path, choose: Callable[[dict[Any, Any]], dict[str, Any]], limit: Limit) -> dict[str, Any]:
    """Read what torch.save writes, without torch.load, which trusts the sizes that the pickle declares."""
    if not zipfile.is_zipfile(path):
        fix = "Write it again: torch.save(torch.load(path, weights_only=True), path)."
        raise InputError("path", "to be an archive as torch.save writes it since version 1.6", repr(path.name), fix)
    with zipfile.ZipFile(path) as archive:
        members = {Path(info.filename).name: info for info in archive.infolist() if "/data/" not in info.filename}
        with _open(archive, members["data.pkl"], Limit(path, PICKLE)) as pickled:
            held = _Inert(io.BytesIO(pickled.read())).load()
        if "byteorder" in members and archive.read(members["byteorder"]) != sys.byteorder.encode():
            raise InputError("path", f"to be of a {sys.byteorder}-endian machine", repr(path.name))
        if not isinstance(held, dict):
            raise InputError("path", "to hold a dict of tensors by name", f"a {_kind(held)}")
        root = members["data.pkl"].filename.removesuffix("data.pkl")
        named = choose(held)
        names = {key: named.pop(key) for key in (NAMES,) if key in named}
        return names | {key: _build(key, value, archive, f"{root}data/", limit) for key, value in named.items()}


def _kind(value: Any) -> str:
    name = type(value).__name__
    return {"_Anything": "pickled object, which is never loaded", "_Declared": "tensor"}.get(name, name)


@dataclass(frozen=True)
class _Declared:
    """A tensor as a pickle declares it."""

    dtype: torch.dtype
    member: str  # the storage's
    count: int  # of numbers in the storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class _Anything(dict):  # type: ignore[type-arg]
    """Stands for what a pickle names, all of which is ignored but the items of dicts."""

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        pass


class _Inert(pickle._Unpickler):
    """Reads a pickle without importing or calling anything that it names.

    In Python, not in C, where the index of a memo entry alone can take gigabytes.
    """

    dispatch = {  # noqa: RUF012 (as in the base class)
        code: load for code, load in pickle._Unpickler.dispatch.items() if code != pickle.BYTEARRAY8[0]
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return a dtype, a function that makes a declaration, or what ignores its arguments."""

        def declare(storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, more: Any = None) -> Any:
            if not isinstance(storage, tuple) or more:
                return _Anything()
            dtype, member, count = storage
            return _Declared(dtype, member, count, offset, tuple(shape), tuple(stride))

        if module == "torch":
            return STORAGES.get(name, _Anything)
        known = {"_rebuild_tensor_v2": declare, "_rebuild_parameter": lambda data, *_: data}
        return known.get(name, _Anything) if module == "torch._utils" else _Anything

    def persistent_load(self, pid: Any) -> Any:
        """Return dtype, name and count of a storage, where it has numbers that are known here."""
        _, dtype, member, _, count = pid
        return (dtype, member, count) if isinstance(dtype, torch.dtype) else _Anything()


def _build(key: str, given: Any, archive: zipfile.ZipFile, folder: str, limit: Limit) -> Tensor:
    """Return a declared tensor, once it lies within its storage, and that within the file."""
    if not isinstance(given, _Declared):
        raise InputError(key, "to be a dense tensor of real numbers", f"a {_kind(given)}")
    numbers = (given.count, given.offset, *given.shape, *given.stride)
    info = archive.getinfo(f"{folder}{given.member}")
    size, itemsize = math.prod(given.shape), given.dtype.itemsize
    last = given.offset + sum((n - 1) * step for n, step in zip(given.shape, given.stride, strict=True))
    whole = all(type(one) is int and one >= 0 for one in numbers) and given.count * itemsize == info.file_size
    if not whole or (size and last >= given.count):
        raise InputError(key, "to lie within its storage", f"shape {given.shape} in {info.file_size:,} bytes")
    limit.take(max(0, size * itemsize - info.file_size))  # numbers that a stride of 0 repeats
    with _open(archive, info, limit) as member:
        data = bytearray(member.read())
    if not size:
        return torch.empty(given.shape, dtype=given.dtype)
    return torch.frombuffer(data, dtype=given.dtype).as_strided(given.shape, given.stride, given.offset)
