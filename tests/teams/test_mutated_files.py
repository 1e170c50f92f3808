"""Damaged and hostile files of every format that holds a team: each loads as it was written, or is refused."""

from __future__ import annotations

import json
import pickle
import struct
import tempfile
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


def compressed(tensors: Any) -> bytes:
    return written(".npz", lambda path: np.savez_compressed(path, **tensors))


def declared(change: dict[str, Any]) -> bytes:
    """Return a file of safetensors whose header says something else of its first tensor."""
    good = GOOD["team.safetensors"]
    size = struct.unpack("<Q", good[:8])[0]
    header = json.loads(good[8 : 8 + size])
    text = json.dumps(header | {"loc": header["loc"] | change}).encode()
    return struct.pack("<Q", len(text)) + text + good[8 + size :]


BASE, SCALE = torch.zeros(3, 4, 2), torch.ones(2)
HOSTILE: dict[str, list[Callable[[], bytes]]] = {
    "team.npz": [
        lambda: pickle.dumps({"loc": print}),
        lambda: compressed({"loc": np.zeros((LIMIT // 8, 4, 1), np.float32), "scale": np.ones(1)}),  # a bomb
        *(lambda kind=kind: compressed({"loc": np.zeros((3, 4, 2)).astype(kind), "scale": np.ones(2)})
          for kind in (object, complex, str)),
    ],
    "team.pt": [
        lambda: pickle.dumps({"loc": print}),
        *(lambda value=value: pt({"loc": value, "scale": SCALE}) for value in (
            torch.zeros(1).as_strided((2**20, 2**20, 2), (0, 0, 0)), BASE.to_sparse(), BASE.to("meta"), 3, [BASE],
            BASE.to(torch.float8_e4m3fn), BASE.to(torch.complex64), torch.nn.Linear(2, 2),
        )),
        lambda: pt({"loc": BASE, "scale": SCALE}, _use_new_zipfile_serialization=False),
    ],
    "team.safetensors": [
        *(lambda kind=kind: declared({"dtype": kind}) for kind in ("F8_E4M3", "C64", "X")),
        *(lambda shape=shape: declared({"shape": shape}) for shape in ([2**62, 4], [-1], [0], "x")),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "make"), [(name, make) for name, makers in HOSTILE.items() for make in makers])
def test_files_that_were_made_to_hurt_are_refused(name: str, make: Callable[[], bytes]) -> None:
    assert load(name, make()) is None


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
