"""Damaged files of a training: its state loads as it was, or the folder is refused."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd import InputError
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.checkpoint import load_checkpoint
from tests.teams.mutations import damaged

TASK = Task("navigation", 2, settings=Settings(steps=2, environments=1, iterations=2, hidden=(2,), minibatch=2))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(TASK, folder)
    return folder


@pytest.mark.parametrize("name", ["metrics.csv", "checkpoint.safetensors"])
@given(st.data())
def test_damaged_files_are_refused_or_leave_a_state_that_fits(trained: Path, name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(trained, folder, dirs_exist_ok=True)
        path = Path(folder) / name
        path.write_bytes(data.draw(damaged(path.read_bytes())))
        try:
            kept = load_checkpoint(Path(folder), logged=True)
            if kept.task == TASK:  # a change of the description is another task, perhaps a larger one
                TASK.make_trainer("cpu").load(kept.tensors, kept.iteration)
        except InputError:
            return
    if name == "metrics.csv":
        before = load_checkpoint(trained)
        assert (kept.task, kept.iteration) == (before.task, before.iteration)
        assert all(torch.equal(part, before.tensors[key]) for key, part in kept.tensors.items())
