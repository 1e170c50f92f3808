"""Damaged and hostile files of every format that holds a team: each loads as it was written, or is refused."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from graphsnd import InputError, Team, load_behavior
from graphsnd.control import ControlledPolicy
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from tests.teams.mutations import damaged

LIMIT = 2**26  # bytes that a file may take
ARRAYS = {"loc": np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32), "scale": np.ones(2, np.float32)}
TENSORS = {key: torch.from_numpy(array) for key, array in ARRAYS.items()}


def written(suffix: str, write: Callable[[Path], Any]) -> bytes:
    """Return what a library writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / f"team{suffix}")
        return (Path(folder) / f"team{suffix}").read_bytes()


def pt(value: Any, **options: Any) -> bytes:
    return written(".pt", lambda path: torch.save(value, path, **options))


# Archives have checksums, so a change does not go unnoticed; safetensors have none.
GOOD = {
    "stored.npz": written(".npz", lambda path: np.savez(path, **ARRAYS)),
    "deflated.npz": written(".npz", lambda path: np.savez_compressed(path, **ARRAYS)),
    "team.pt": pt(TENSORS),
    "team.safetensors": written(".safetensors", lambda path: save_file(TENSORS, path)),
}


def load(name: str, data: bytes) -> list[Any] | None:
    """Return what a file loads as; None when it is refused."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphsnd.teams.files.MAX_BYTES", LIMIT)
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            held: Any = load_behavior(path)
        except InputError:
            return None
        return [part.tolist() for part in (held.loc, held.scale)] if hasattr(held, "loc") else [held]


WRITTEN = {name: load(name, data) for name, data in GOOD.items()}


@pytest.mark.parametrize("name", GOOD)
@given(st.data())
@settings(max_examples=300)
def test_damaged_files_load_as_they_were_or_are_refused(name: str, data: st.DataObject) -> None:
    changed = data.draw(damaged(GOOD[name]))
    found = load(name, changed)
    if found is not None and (name != "team.safetensors" or changed == GOOD[name][: len(changed)]):
        assert found == WRITTEN[name]


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(array: Any, shape: Any = None, descr: str = "<f4") -> bytes:
    """Return an array as ``.npy``, with a header that may declare something else."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape or array.shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()


def hostile_npz() -> dict[str, bytes]:
    loc, scale = ARRAYS["loc"], npy(ARRAYS["scale"])
    first = {f"shape {s}": npy(loc, s) for s in ((2**40, 4, 2), (10**20, 4, 2), (-3, 4, 2), (0, 2**62), (3, 4, 2.0))}
    first |= {
        f"dtype {d[:9]}": npy(loc, None, d) for d in ("|O", "<V8", "<U9999999", "<f2048", "<c16", "|S0", "x" * 9000)
    }
    first |= {"no array": b"hello", "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{"}
    bomb = {"loc.npy": npy(np.zeros((LIMIT // 8, 4, 1), np.float32)), "scale.npy": scale}
    files = {name: zipped({"loc.npy": data, "scale.npy": scale}) for name, data in first.items()}
    return files | {
        "bomb": zipped(bomb, zipfile.ZIP_DEFLATED),
        "array": npy(loc),
        "pickle": pickle.dumps({"loc": print}),
    }


def hostile_pt() -> dict[str, bytes]:
    base = torch.zeros(3, 4, 2)
    tensors = {
        "expanded": torch.zeros(1).as_strided((2**20, 2**20, 2), (0, 0, 0)), "sparse": base.to_sparse(),
        "float8": base.to(torch.float8_e4m3fn), "meta": base.to("meta"), "complex": base.to(torch.complex64),
        "number": 3, "module": torch.nn.Linear(2, 2), "nested": [base], "storage": base.untyped_storage(),
        "quantised": torch.quantize_per_tensor(base, 0.1, 0, torch.qint8),
    }  # fmt: skip
    made = {name: pt({"loc": tensor, "scale": torch.ones(2)}) for name, tensor in tensors.items()}
    made["legacy"] = pt({"loc": base, "scale": torch.ones(2)}, _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(io.BytesIO(pt({"loc": base, "scale": torch.ones(2)}))) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    pickled, data = (next(name for name in members if name.endswith(end)) for end in ("data.pkl", "data/0"))
    edits = {
        "offset": members[pickled].replace(b"K\0K\x03", b"\x8a\x05\0\0\0\0\x7fK\x03", 1),
        "negative size": members[pickled].replace(b"K\x03K\x04", b"J\xff\xff\xff\xffK\x04", 1),
        "memo": b"\x80\x02}r\xff\xff\xff\x7f.",
        "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 2**35) + b"x.",
        "deep": b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
    }
    made |= {name: zipped(members | {pickled: edit}) for name, edit in edits.items()}
    made["bomb"] = zipped(members | {data: bytes(2 * LIMIT)}, zipfile.ZIP_DEFLATED)
    return made | {"pickle": pickle.dumps({"loc": print})}


def hostile_safetensors() -> dict[str, bytes]:
    good = GOOD["team.safetensors"]
    size = struct.unpack("<Q", good[:8])[0]
    header, data = json.loads(good[8 : 8 + size]), good[8 + size :]
    changes = [{"dtype": d} for d in ("F8_E4M3", "C64", "X", "")] + [{"shape": s} for s in ([2**62, 4], [-1], [0], "x")]
    texts = {str(change): json.dumps(header | {"loc": header["loc"] | change}).encode() for change in changes}
    texts |= {"deep": b"[" * 100_000, "no header": b"{}"}
    made = {name: struct.pack("<Q", len(text)) + text + data for name, text in texts.items()}
    return made | {"long header": struct.pack("<Q", 2**62) + good[8:]}


MAKERS = {"team.npz": hostile_npz, "team.pt": hostile_pt, "team.safetensors": hostile_safetensors}


@pytest.mark.parametrize("name", MAKERS)
def test_files_that_were_made_to_hurt_are_refused(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, on quantised and sparse tensors
        files = MAKERS[name]()
    assert [kind for kind, data in files.items() if load(name, data) is not None] == []


SAVED: dict[str, Callable[[], Any]] = {
    "stacked": lambda: StackedTeam(
        StackedMLP.create((2,), (2, 3), generator=torch.Generator()), GaussianHead(3, batch=(2,)), about={"seed": 0}
    ),
    "controlled": lambda: ControlledPolicy.create(2, 2, 1, generators=[torch.Generator()], hidden=(2,)).team(0, 0.5),
}
WORDS = ("null", "[]", "{}", '"x"', "-1", "1e999", "99999999999999999999", "NaN", "true", "[[]]")


@pytest.mark.parametrize("kind", SAVED)
@given(st.data())
def test_damaged_folders_of_teams_load_or_are_refused(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        SAVED[kind]().save(folder)
        path = Path(folder) / "team.safetensors"
        if data.draw(st.booleans()):
            held = json.loads((Path(folder) / "team.json").read_text())
            key, word = data.draw(st.sampled_from(sorted(held))), data.draw(st.sampled_from(WORDS))
            text = json.dumps(held | {key: "@"}).replace('"@"', word)
            save_file(load_file(path), path, metadata={"team": text})
        else:
            path.write_bytes(data.draw(damaged(path.read_bytes())))
        Team.load(folder)
