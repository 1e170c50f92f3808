"""Hostile command lines of every command and option that the application has, found by introspection.

A command line ends with 0, or with 2 and a clear line; never with a traceback, another code, raw control characters,
or a changed input.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
import typer
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.torch import save_file
from typer.testing import CliRunner

from graphsnd.cli.app import app
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

COMMANDS: dict[str, Any] = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
SECONDS = 20  # that a command line may take; each has almost nothing to do
TINY = "--agents 2 --iterations 1 --device cpu --set environments=1 --set steps=2 --set hidden=[2] --set minibatch=2"
# What a command needs to begin; one that is not named here is tried without.
NEEDS = {
    "measure": ["team.npz"],
    "advise": ["--agents", "9", "--observations", "30"],
    "train": ["navigation", *TINY.split()],
    "demo": ["--agents", "8"],
}
OFTEN = ["measure"] * 5 + ["advise"] * 2 + ["train"]
UNTRIED = {"--help", "--ray"}  # a cluster takes seconds to start
INPUTS = ["team.npz", "link.npz", "team.pt", "team.safetensors", "seen.npz", "a\x1b[31mb.npz", "\udcff.npz"]
NAMES = "saved page.html missing.npz no/such/folder/x.html new.html new.png . ~ = team.npz/x.png /dev/full policies"
NAMES += " make.py:make make.py:other make.py: torch.nn:Linear run.yaml run.json runs"
ODD_NAMES = [*INPUTS, "", "new\x1b]0;title\x07.html", "new\udcfe.html", "a\nb.png", "x" * 300]
NUMBERS = "0 1 2 -1 0.5 1.5 nan inf -inf 1e400 1e-320 -0 1_0 ٣ 0x10 1e308"
ODD_NUMBERS = [" 3 ", "9" * 20, str(2**63), f"-{2**70}", "9" * 5000]
TEXTS = "cpu auto local hellinger null [] {} 💥 {0.__class__} [bold]x [/] -- -h 0,1 , 0,,1 0.1,unconstrained small =x"
TEXTS += " complete bernoulli:0.5 uniform:3 regular:2 knn:1 matching:1 agents:2 uniform:0 radius:nan bernoulli:1e-320"
TEXTS += " pairs:-1 simple_spread steps=0 world.horizon=x x= hidden=[[]] epochs=null"
ODD_TEXTS = ["", " ", "\t", "a\x1b[2Jb", "\udcff", "\u202e", "learning_rate=" + "9" * 400, "agents:" + "9" * 5000]
FILES = st.sampled_from([*NAMES.split(), *ODD_NAMES])
VALUES = FILES | st.sampled_from([*NUMBERS.split(), *ODD_NUMBERS]) | st.sampled_from([*TEXTS.split(), *ODD_TEXTS])


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Draw what a command needs, and up to three hostile options."""
    name = draw(st.sampled_from([*OFTEN, *COMMANDS, ""]))
    if not name:
        return draw(st.lists(VALUES, max_size=2))
    words = [name, *NEEDS.get(name, ())]
    params = [param for param in COMMANDS[name].params if param.opts[0] not in UNTRIED]
    for param in draw(st.lists(st.sampled_from(params), max_size=3)) if params else ():
        option = param.opts[0]
        if param.param_type_name == "argument":
            words[1:2] = [draw(VALUES), *words[1:2]][: draw(st.integers(1, 2))]
        elif getattr(param, "is_flag", False):
            words.append(option)
        else:
            file = any(part in param.name for part in ("html", "png", "observations", "out", "config", "policy"))
            words += [option, draw(FILES if file else VALUES)]
    return words


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs, good ones and others."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(0)
    arrays = {"loc": rng.normal(size=(9, 4, 2)), "scale": np.ones(2), "positions": rng.normal(size=(4, 2))}
    for name in ("team.npz", "a\x1b[31mb.npz", "\udcff.npz"):
        np.savez(folder / name, **arrays)
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    torch.save(tensors, folder / "team.pt")
    save_file(tensors, folder / "team.safetensors")
    network = StackedMLP.create((4,), (2, 4), generator=torch.Generator().manual_seed(0))
    StackedTeam(network, GaussianHead(2, scale="network")).save(folder / "saved")
    np.savez(folder / "seen.npz", observations=rng.normal(size=(9, 2)).astype(np.float32))
    (folder / "policies").mkdir()
    torch.save({"weight": torch.ones(2, 2)}, folder / "policies/0.pt")
    torch.save(network.state_dict(), folder / "policies/1.pt")
    (folder / "make.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(2, 2, bias=False)\n")
    (folder / "run.yaml").write_text("agents: 2\nsettings: {learning_rate: 1e-3, 3: 4}\nseeds: 2026-99-99\n")
    (folder / "run.json").write_text('{"agents": 2, "settings": {"iterations": 1}}')
    (folder / "page.html").write_text("<!doctype html><p>of an earlier measurement</p>\n")
    return folder


@given(command_lines())
@example(["measure", "team.npz", "--html", "link.npz"])
@example(["measure", "a\x1b[31mb.npz", "--html", "new\x1b]0;title\x07.html"])
@example(["measure", "policies", "--policy", "make.py:make", "--observations", "seen.npz"])
def test_hostile_command_lines_end_in_one_line(inputs: Path, words: list[str]) -> None:
    here, begin = Path.cwd(), perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(inputs, folder, dirs_exist_ok=True)
        os.chdir(folder)
        os.link("team.npz", "link.npz")
        before = {name: Path(name).read_bytes() for name in INPUTS}
        try:
            result = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}).invoke(app, words)
            after = {name: Path(name).read_bytes() for name in INPUTS}
            left = list(Path().rglob("*.part"))
        finally:
            os.chdir(here)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback (most recent call last)" not in result.output
    assert not RAW.search(result.output)
    if result.exit_code == 2:
        assert re.search(r"^graphsnd: .{9,}", result.output, re.MULTILINE)
    assert not left
    assert after == before
    assert perf_counter() - begin < SECONDS
