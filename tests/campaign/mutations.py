"""Damaged and hostile files of every format that is read: cut at every offset, changed, swapped, made to be huge.

A file has to load as it was written, or to be refused with ``InputError``. Formats without a checksum (safetensors,
CSV, JSON) may also load other numbers of the same form when a number was changed. No file may take over 10 s, or
more than a quarter of a gigabyte.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import select
import shutil
import signal
import struct
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from benchmarks.__main__ import _read as read_benchmark
from graphsnd import InputError, Team
from graphsnd.cli.files import read_team
from graphsnd.control import ControlledPolicy, ControlledTeam
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.checkpoint import load_checkpoint
from graphsnd.rl.log import Row, read_rows
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from paper.experiment import Number, Scale
from paper.runner import Cells, Result, read_result, write_result
from tests.campaign import LONG, Outcome, limited

FULL = 24_000
LARGE, LIMIT = 2**28, 2**26  # bytes that a file may take, and that it is read with
WORDS = [b"0", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'""', b"true", b"9" * 20, b"x", b"\x1b[31m"]


@dataclass(frozen=True, eq=False)
class Format:
    """A file that is read, whole, and how."""

    name: str
    path: Path  # the file that is damaged
    read: Callable[[], Any]  # returns something comparable
    good: bytes
    value: Any
    checked: bool = False  # whether the format has a checksum, so that no change goes unnoticed
    prefix: bool = False  # whether the beginning of a file is a file


def run(seed: int, cases: int) -> Outcome:
    """Read ``cases`` damaged files."""
    outcome, threads = Outcome(), torch.get_num_threads()
    torch.set_num_threads(1)  # a process that is forked off has no others
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        formats = list(make_formats(Path(folder)))
        made = [(one, data, f"hostile, {name}") for one in formats for name, data in hostile(one).items()]
        for at in np.random.default_rng(seed).permutation(len(made))[: cases // 4]:
            _attempt(*made[at], outcome, isolated=True)
        streams = [mutations(one, np.random.default_rng((seed, at))) for at, one in enumerate(formats)]
        while outcome.cases < cases:
            one, stream = formats[outcome.cases % len(formats)], streams[outcome.cases % len(formats)]
            _attempt(one, *reversed(next(stream)), outcome)
    return outcome


def make_formats(folder: Path) -> Iterator[Format]:
    """Write one small file of each format."""
    rng = np.random.default_rng(0)
    arrays = {"loc": rng.normal(size=(3, 4, 2)).astype(np.float32), "scale": np.ones(2, np.float32)}
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    writers: dict[str, Callable[[Path], Any]] = {
        "stored.npz": lambda path: np.savez(path, **arrays),
        "deflated.npz": lambda path: np.savez_compressed(path, **arrays),
        "team.pt": lambda path: torch.save(tensors, path),
        "team.safetensors": lambda path: save_file(tensors, path),
    }
    for name, write in writers.items():
        write(folder / name)
        checked = not name.endswith("safetensors")
        yield _format(name, folder / name, lambda path=folder / name: _tensors(path), checked=checked)
    (folder / "array.npz").write_bytes(_npy(arrays["loc"]))
    yield Format("npy", folder / "array.npz", lambda: read_team(folder / "array.npz"), _npy(arrays["loc"]), None)
    yield from _team_formats(folder / "saved")
    yield from _run_formats(folder / "run")
    yield from _paper_formats(folder)


def _format(name: str, path: Path, read: Callable[[], Any], **options: Any) -> Format:
    return Format(name, path, read, path.read_bytes(), read(), **options)


def _tensors(path: Path) -> list[Any]:
    held: Any = read_team(path, max_bytes=LIMIT).team
    return [part.tolist() for part in (held.loc, held.scale)]


def _team_formats(folder: Path) -> Iterator[Format]:
    network = StackedMLP.create((2,), (2, 3), generator=torch.Generator().manual_seed(0))
    StackedTeam(network, GaussianHead(3, batch=(2,)), about={"seed": 0}).save(folder)

    def read() -> Any:
        team = Team.load(folder)
        assert isinstance(team, StackedTeam)
        return {key: value.tolist() for key, value in team.network.state_dict().items()}, team.about

    yield _format("team.json", folder / "team.json", read)
    yield _format("team/team.safetensors", folder / "team.safetensors", read)
    made = ControlledPolicy.create(2, 2, 1, generators=[torch.Generator().manual_seed(0)], hidden=(2,))
    other = folder / "controlled"
    made.team(0, 0.5, about={"seed": 0}).save(other)

    def read_controlled() -> Any:
        team = Team.load(other)
        assert isinstance(team, ControlledTeam)
        return [part.tolist() for part in (*team.shared.parameters(), *team.deviations.parameters(), team.scale)]

    yield _format("controlled/team.json", other / "team.json", read_controlled)
    yield _format("controlled/team.safetensors", other / "team.safetensors", read_controlled)


def _run_formats(folder: Path) -> Iterator[Format]:
    settings = Settings(steps=2, environments=1, iterations=2, hidden=(2,), minibatch=2, epochs=1)
    task = Task("navigation", 2, settings=settings)
    train(task, folder)

    def resume() -> Any:
        kept = load_checkpoint(folder)
        if kept.task == task:  # another task may be larger than this machine
            task.make_trainer("cpu").load(kept.tensors, kept.iteration)
        return kept.iteration, {key: value.tolist() for key, value in kept.tensors.items()}

    yield _format("metrics.csv", folder / "metrics.csv", lambda: read_rows(folder, Row), prefix=True)
    yield _format("checkpoint", folder / "checkpoint.safetensors", resume)


def _paper_formats(folder: Path) -> Iterator[Format]:
    cells = folder / "cells"
    make = lambda: [Number(0.5, unit="s"), Number(1.5, 1.0, 2.0)]  # noqa: E731

    def cell() -> Any:
        rows = Cells(cells).get("n=4", {"agents": 4}, make, list[Number])  # one that is damaged is made again
        return [asdict(row) for row in rows]

    cell()
    yield _format("cell", cells / "n=4.json", cell)
    path = folder / "result.json"
    provenance = {"command": "python -m paper run", "took_s": 1.5}
    numbers = {"error": Number(0.1, 0.0, 0.2)}
    write_result(
        Result("timing", "Timing", Scale.SMOKE, provenance, ("timing/gpu.json",), numbers, {"rows": [1]}), path
    )
    yield _format("result", path, lambda: read_result(path))
    path = folder / "benchmark.json"
    path.write_text(json.dumps({"format": 1, "suite": "speed", "device": "cpu", "rows": [{"agents": 4}]}))
    yield _format("benchmark", path, lambda path=path: read_benchmark("--compare", path))


def mutations(one: Format, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Yield cuts at every offset in random order and, between them and for ever after, other damage."""
    cuts = iter(rng.permutation(len(one.good)).tolist())
    while True:
        at = next(cuts, None)
        if at is not None:
            yield f"cut at {at}", one.good[:at]
        data, name = bytearray(one.good), ""
        for _ in range(int(rng.integers(1, 4))):
            start, kind = int(rng.integers(len(data) or 1)), int(rng.integers(6))
            name += f"{('flip', 'byte', 'delete', 'insert', 'swap', 'word')[kind]} {start}, "
            size = int(rng.integers(1, 17))
            if kind == 0 and data:
                data[start] ^= 1 << int(rng.integers(8))
            elif kind == 1 and data:
                data[start] = int(rng.integers(256))
            elif kind == 2:
                del data[start : start + size]
            elif kind == 3:
                data[start:start] = rng.bytes(size)
            elif kind == 4:
                other = int(rng.integers(len(data) or 1))
                first, second = data[start : start + size], data[other : other + size]
                data[start : start + size], data[other : other + size] = second, first
            else:
                data[start : start + size] = WORDS[int(rng.integers(len(WORDS)))]
        yield name, bytes(data)
        if one.name.endswith(".npz") or one.name == "team.pt":
            yield _swap_members(one.good, rng)


def _swap_members(good: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return an archive whose members were renamed, doubled, left out, cut or changed, with true checksums."""
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at, to = (int(one) for one in rng.integers(len(members), size=2))
    name, data = members[at]
    kind = int(rng.integers(6))
    if kind == 0:
        members[at], members[to] = (name, members[to][1]), (members[to][0], data)
    elif kind == 1:
        members.append((name, members[to][1]))
    elif kind == 2:
        del members[at]
    elif kind == 3:
        members[at] = name, data[: int(rng.integers(len(data) + 1))]
    elif kind == 4 and data:
        changed = bytearray(data)
        changed[int(rng.integers(len(data)))] = int(rng.integers(256))
        members[at] = name, bytes(changed)
    else:
        members[at] = name.replace(".npy", "") if ".npy" in name else f"../{name}", data
    return f"member {at}, kind {kind}, {to}", _zip(members)


def _zip(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def _npy(array: Any, shape: tuple[int, ...] | None = None, descr: str = "") -> bytes:
    """Return an array as ``.npy``, perhaps with a header that declares something else."""
    file = io.BytesIO()
    np.save(file, array)
    if shape is None and not descr:
        return file.getvalue()
    header = repr({"descr": descr or "<f4", "fortran_order": False, "shape": shape or array.shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + array.tobytes()


def hostile(one: Format) -> dict[str, bytes]:
    """Return files that were made to hurt, by name."""
    deep, digits = b"[" * 100_000, b"9" * 10_000
    if one.name.endswith(".npz"):
        small, ok = np.zeros((3, 4, 2), np.float32), _npy(np.ones(2, np.float32))
        shapes = [(2**40, 4, 2), (2**31, 2**31, 2), (10**20, 4, 2), (-3, 4, 2), (0, 2**62, 2), (3, 4, 2.0), (2**33,)]
        files = {f"shape {shape}": [("loc.npy", _npy(small, shape)), ("scale.npy", ok)] for shape in shapes}
        for descr in ("|O", "<V8", "<U9999999", "<f2048", "<M8[s]", "<c16", "|S0", "<f8,<i4", "x" * 9000):
            files[f"dtype {descr[:9]}"] = [("loc.npy", _npy(small, None, descr)), ("scale.npy", ok)]
        files["no .npy"] = [("loc", _npy(small)), ("scale", ok)]
        files["not an array"] = [("loc.npy", b"hello"), ("scale.npy", ok)]
        for name, size, header in (("long", 2**31, b"{"), ("deep", len(deep), deep)):
            data = b"\x93NUMPY\x02\x00" + struct.pack("<I", size) + header
            files[f"{name} header"] = [("loc.npy", data), ("scale.npy", ok)]
        files["twice"] = [("loc.npy", _npy(small)), ("loc.npy", ok), ("scale.npy", ok)]
        bomb = [("loc.npy", _npy(np.zeros((LIMIT // 8, 4, 1), np.float32))), ("scale.npy", ok)]
        return {name: _zip(members) for name, members in files.items()} | {"bomb": _zip(bomb, zipfile.ZIP_DEFLATED)}
    if one.name == "team.pt":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, on quantised and sparse tensors
            return _hostile_pt()
    if one.name.endswith("safetensors") or one.name == "checkpoint":
        return _hostile_safetensors(one.good)
    made = {"deep": deep, "digits": digits, "empty": b"", "NUL": b"\0" * 99, "not UTF-8": b"\xff\xfe" + one.good}
    made |= {
        "BOM": b"\xef\xbb\xbf" + one.good,
        "long cell": one.good + b'"' + b"x" * 200_000,
        "CR": one.good.replace(b"\n", b"\r"),
    }
    if one.name.endswith(".json") or one.name in ("cell", "result", "benchmark"):
        document = json.loads(one.good)
        for key in document:
            for word in ("null", "[]", "{}", '"x"', "-1", "1e999", "99999999999999999999", "NaN", "true", "[[]]"):
                made[f"{key}={word}"] = json.dumps(document | {key: "@"}).replace('"@"', word).encode()
            made[f"without {key}"] = json.dumps({k: v for k, v in document.items() if k != key}).encode()
    return made


def _hostile_pt() -> dict[str, bytes]:
    base = torch.zeros(3, 4, 2)
    wide = torch.zeros(1).as_strided((2**20, 2**20, 2), (0, 0, 0))
    tensors = {
        "expanded": wide, "float8": base.to(torch.float8_e4m3fn), "sparse": base.to_sparse(), "meta": base.to("meta"),
        "csr": base[0].to_sparse_csr(), "complex": base.to(torch.complex64), "number": 3,
        "module": torch.nn.Linear(2, 2), "nested": [base], "storage": base.untyped_storage(),
        "uint16": base.to(torch.uint16), "bits": base.bool(),
        "conj": torch.zeros(3, 4, 2, dtype=torch.complex64).conj(), "bf16": base.bfloat16(),
        "quantised": torch.quantize_per_tensor(base, 0.1, 0, torch.qint8),
    }  # fmt: skip
    made = {name: _pt({"loc": tensor, "scale": torch.ones(2)}) for name, tensor in tensors.items()}
    made["legacy"] = _pt({"loc": base, "scale": torch.ones(2)}, _use_new_zipfile_serialization=False)
    made["legacy, huge"] = made["legacy"].replace(struct.pack("<BB", ord("K"), 24), b"\x8a\x05\0\0\0\0\x7f", 1)
    good = _pt({"loc": base, "scale": torch.ones(2)})
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    pickled = next(name for name in members if name.endswith("data.pkl"))
    edits = {
        "more numbers than bytes": (b"K\x18tq", b"\x8a\x06\0\0\0\0\0\x01tq"),  # 2^40 of them, in a storage of 96 bytes
        "offset": (b"K\0K\x03", b"\x8a\x05\0\0\0\0\x7fK\x03"),
        "negative size": (b"K\x03K\x04", b"J\xff\xff\xff\xffK\x04"),
    }
    for name, (old, new) in edits.items():
        made[name] = _zip(list((members | {pickled: members[pickled].replace(old, new, 1)}).items()))
    made["memo"] = _zip(list((members | {pickled: b"\x80\x02}r\xff\xff\xff\x7f."}).items()))
    made["bytearray"] = _zip(list((members | {pickled: b"\x80\x05\x96" + struct.pack("<Q", 2**35) + b"x."}).items()))
    made["deep"] = _zip(list((members | {pickled: b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b"."}).items()))
    data = next(name for name in members if name.endswith("data/0"))
    made["bomb"] = _zip(list((members | {data: bytes(2 * LIMIT)}).items()), zipfile.ZIP_DEFLATED)
    made["pickle"] = pickle.dumps({"loc": print})
    return made


def _pt(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def _hostile_safetensors(good: bytes) -> dict[str, bytes]:
    size = struct.unpack("<Q", good[:8])[0]
    header, data = json.loads(good[8 : 8 + size]), good[8 + size :]

    def made(document: Any) -> bytes:
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        return struct.pack("<Q", len(text)) + text + data

    key = next(key for key in header if key != "__metadata__")
    files = {"long header": struct.pack("<Q", 2**62) + good[8:], "deep": made(b"[" * 100_000), "no header": made({})}
    for dtype in ("F8_E4M3", "F8_E5M2", "I32", "U8", "BOOL", "C64", "F4", "X", ""):
        files[f"dtype {dtype}"] = made(header | {key: header[key] | {"dtype": dtype}})
    for shape in ([2**62, 4], [-1], [0], [], [10**30], "x", [1.5]):
        files[f"shape {shape}"] = made(header | {key: header[key] | {"shape": shape}})
    for part in header.get("__metadata__", ()):
        for text in ("", "null", "{}", "[" * 100_000, "9" * 10_000, "NaN", "\ud800"):
            files[f"{part}={text[:9]}"] = made(header | {"__metadata__": {part: text}})
        inside = json.loads(header["__metadata__"][part])
        for name in inside:
            for value in (None, [], {}, "x", -1, 10**20, float("nan"), True):
                files[f"{name}={value}"] = made(header | {"__metadata__": {part: json.dumps(inside | {name: value})}})
            less = {k: v for k, v in inside.items() if k != name}
            files[f"without {name}"] = made(header | {"__metadata__": {part: json.dumps(less)}})
    return files


def _attempt(one: Format, data: bytes, name: str, outcome: Outcome, *, isolated: bool = False) -> None:
    outcome.cases += 1
    kind = (_isolated if isolated else _result)(one, data, name)
    if kind == "refused":
        outcome.refused += 1
    elif kind:
        outcome.fail(f"{one.name}: {kind}", f"{name}; {len(data)} bytes")


def _result(one: Format, data: bytes, name: str) -> str:
    """Return "" when the file loaded as it should, "refused", or what went wrong."""
    one.path.write_bytes(data)
    before = _peak()
    try:
        with limited():
            value = one.read()
    except InputError:
        return "refused"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name} {place.name}"
    finally:
        grown = _peak() - before
        for extra in one.path.parent.iterdir():  # what a reader may have written again
            if extra.name.startswith("."):
                shutil.rmtree(extra) if extra.is_dir() else extra.unlink()
    if grown > LARGE:
        return "takes too much memory"
    if name.startswith("cut") and value != one.value and not (one.prefix and value == one.value[: len(value)]):
        return "cut, and loaded as something else"
    # Members that were changed together with their checksums are another file.
    if one.checked and not name.startswith(("hostile", "member")) and value != one.value:
        return "loaded as something else, with a checksum"
    return ""


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _isolated(one: Format, data: bytes, name: str) -> str:
    """Return the result of another process, which may crash, hang, or use up its memory."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CPU, (LONG, LONG))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (_peak() + 8 * LARGE,) * 2)
        try:
            os.write(write, b"=" + _result(one, data, name).encode()[:4000])
        finally:
            os._exit(0)
    os.close(write)
    if not select.select([read], [], [], 10 * LONG)[0]:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    one.path.write_bytes(one.good)
    return text[1:] if text else f"killed by signal {status & 127}"
