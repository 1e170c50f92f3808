"""Hostile command lines: every command and option that the application has, found by introspection.

A command line ends with 0, or with 2 and a clear line, or is stopped; never with a traceback, another code, raw control
characters, a hang over 10 s, or a changed input.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

from graphsnd.cli.app import app
from graphsnd.plots.study_figures import estimates_figure
from graphsnd.rl import Settings
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from tests.campaign import LONG, Outcome, limited

FULL = 3000
PROCESSES = 50  # one in so many cases is a process of its own
ENDS = {0, 2, 129, 130, 143}
FIGURE = {"estimates.png": estimates_figure}
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
TRAIN = ["--agents", "2", "--iterations", "1", "--set", "environments=1", "--device", "cpu"]
TRAIN += ["--set", "steps=2", "--set", "hidden=[2]", "--set", "minibatch=2", "--set", "epochs=1"]
# What a command needs to begin; one that is not named here is tried without.
NEEDS = {
    "measure": ["team.npz"],
    "compare": ["team.npz", "link.npz"],
    "advise": ["--agents", "9", "--observations", "30"],
    "train": ["navigation", *TRAIN],
    "demo": ["--agents", "8", "--observations", "9"],
}
OFTEN = {"measure": 0.36, "advise": 0.16, "compare": 0.1, "train": 0.28}  # 0.02 for the others
FILES = ["team.npz", "link.npz", "team.pt", "team.safetensors", "seen.npz", "notes.csv", "a\x1b[31mb.npz", "\udcff.npz"]
NAMES = [*FILES, "saved", "page.html", "figure.png", "missing.npz", "no/such/folder/x.html", "new.html", "new.png"]
NAMES += ["new.gif", ".", "", "new\x1b]0;title\x07.html", "new\udcfe.html", "a\nb.png", "é.html", "team.npz/x.png"]
NAMES += ["/dev/full", "/proc/self/mem", "~", "x" * 300, "runs", "-", "logs", "a=logs", "=", "logs/metrics.csv"]
NAMES += ["policies", "make.py:make", "make.py:other", "make.py:", "torch.nn:Linear", "run.yaml", "run.json", "x=="]
NUMBERS = ["0", "1", "2", "3", "-1", "0.5", "1.5", "nan", "inf", "-inf", "1e400", "1e-320", "-0", "1_0", "٣", "0x10"]
NUMBERS += [" 3 ", "9" * 20, str(2**63), str(2**70), f"-{2**70}", "9" * 5000, "1e308", "1.0"]
TEXTS = ["", " ", "cpu", "cuda", "auto", "local", "proxy", "hellinger", "horvitz-thompson", "null", "true", "[]", "{}"]
TEXTS += ["a\x1b[2Jb", "\udcff", "\u202e", "💥", "%s", "{0.__class__}", "[bold]x", "[/]", "--", "-h", "--help"]
TEXTS += ["0,1", ",", "0,,1", "0.1,unconstrained", "homogeneous", "paper", "small", "none", "navigation-100"]
TEXTS += [
    "complete",
    "bernoulli:0.5",
    "uniform:3",
    "regular:2",
    "knn:1",
    "radius:1",
    "matching",
    "matching:1",
    "ring:2",
]
TEXTS += ["agents:2", "matching:1", "uniform:" + "9" * 20, "knn:" + "9" * 20, "bernoulli:1e-320", "pairs:-1"]
TEXTS += [
    "agents:" + "9" * 5000,
    "radius:nan",
    "ring:" + "9" * 20,
    "5s",
    "1e6",
    "1e6e",
    "-1s",
]
TEXTS += ["9" * 400, "simple_spread", "vmas:balance", "vmas:", "pettingzoo:x", "stacked", "\n", "\t", "=", "x=", "=x"]


def run(seed: int, cases: int) -> Outcome:
    """Try ``cases`` command lines."""
    outcome, rng, before = Outcome(), np.random.default_rng(seed), Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        # Small teams for `bench`, and one figure for `demo`: what is drawn does not depend on the command line.
        for name, value in (("cli.bench.AGENTS", (3,)), ("cli.bench.OBSERVATIONS", 4), ("plots.demo.FIGURES", FIGURE)):
            stack.enter_context(mock.patch(f"graphsnd.{name}", value))
        stack.enter_context(mock.patch("tempfile.tempdir", folder))  # where reports of bugs would go
        stack.enter_context(mock.patch.dict(os.environ, TMPDIR=folder))
        stack.callback(os.chdir, before)
        os.chdir(folder)
        CliRunner().invoke(app, ["bench", "--device", "cpu"])  # compiles, which may take longer than a case should
        while outcome.cases < cases:
            for path in Path(folder).iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            good = write_files()
            words = draw_words(rng)
            outcome.cases += 1
            own = outcome.cases % PROCESSES == PROCESSES // 2 and words[:1] != ["bench"]  # which would not be small
            code, output, trouble = _process(words, ascii_only=rng.random() < 0.5) if own else _invoke(words)
            outcome.refused += code == 2
            for kind in [*trouble, *judge(code, output), *changes(words, good)]:
                outcome.fail(
                    f"{words[0] if words else ''}: {kind}",
                    f"graphsnd {shlex.join(words)}".encode("ascii", "backslashreplace").decode()[:600],
                )
    return outcome


@lru_cache(maxsize=1)
def commands() -> dict[str, Any]:
    """Return all commands of the application."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def draw_words(rng: np.random.Generator) -> list[str]:
    """Return the words of a command line: what the command needs, and up to three hostile options."""
    found = commands()
    weights = np.array([OFTEN.get(name, 0.02) for name in found] + [0.02])
    name = str(rng.choice([*found, ""], p=weights / weights.sum()))
    if not name:
        return [_value(rng, "") for _ in range(int(rng.integers(3)))]
    words = [name, *NEEDS.get(name, ())]
    params = [param for param in found[name].params if param.opts[0] != "--help"]
    for _ in range(int(rng.choice(4, p=[0.1, 0.5, 0.25, 0.15]))):
        if not params:
            break
        param = params[int(rng.integers(len(params)))]
        option = param.opts[0]
        if not option.startswith("-"):
            value = _value(rng, param.name)
            words[1:2] = [value] if rng.random() < 0.7 else [value, *words[1:2]]
        elif getattr(param, "is_flag", False):
            words.append(option)
        elif option == "--set":
            words += [option, f"{_setting(rng)}={_value(rng, 'set')}"]
        else:
            words += [option, _value(rng, param.name)] if rng.random() < 0.98 else [option]
    if rng.random() < 0.03:
        words.append(str(rng.choice(TEXTS)))
    return words


def _value(rng: np.random.Generator, name: str) -> str:
    pools = [NUMBERS, TEXTS, NAMES]
    if (
        any(part in name for part in ("html", "png", "file", "out", "json", "config", "policy", "paths"))
        and rng.random() < 0.8
    ):
        pools = [NAMES]
    return _pick(rng, pools)


def _pick(rng: np.random.Generator, pools: list[list[str]]) -> str:
    pool = pools[int(rng.integers(len(pools)))]
    return pool[int(rng.integers(len(pool)))]


def _setting(rng: np.random.Generator) -> str:
    names = {field.name for field in dataclasses.fields(Settings)}
    return _pick(rng, [sorted(names), ["world.horizon", "world.x", "x", "", "world.", "world.agent_radius"]])


def write_files() -> dict[str, bytes]:
    """Write inputs, good ones and others, into the present folder, and return what no command line may change."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    arrays = {"loc": rng.normal(size=(9, 4, 2)), "scale": np.ones(2), "positions": rng.normal(size=(4, 2))}
    np.savez("team.npz", **arrays)
    os.link("team.npz", "link.npz")
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    torch.save(tensors, "team.pt")
    save_file(tensors, "team.safetensors")
    for name in ("a\x1b[31mb.npz", "\udcff.npz"):
        shutil.copy("team.npz", name)
    network = StackedMLP.create((4,), (2, 4), generator=generator)
    StackedTeam(network, GaussianHead(2, scale="network")).save("saved")
    np.savez("seen.npz", observations=rng.normal(size=(9, 2)).astype(np.float32))
    for agent in range(2):
        Path("policies").mkdir(exist_ok=True)
        torch.save(network.state_dict() if agent else {"weight": torch.ones(2, 2)}, f"policies/{agent}.pt")
    Path("make.py").write_text("from torch import nn\ndef make():\n    return nn.Linear(2, 2, bias=False)\n")
    Path("logs").mkdir()
    rows = [f"{i},{s},{i + s},0.{s}" for i in range(4) for s in range(3)]
    Path("logs/metrics.csv").write_text("\n".join(["iteration,seed,reward,snd", *rows, ""]))
    Path("run.yaml").write_text("agents: 2\nsettings: {learning_rate: 1e-3, 3: 4}\nseeds: 2026-99-99\n")
    Path("run.json").write_text('{"agents": 2, "settings": {"iterations": 1}}')
    Path("page.html").write_text("<!doctype html><p>of an earlier measurement</p>\n")
    Path("figure.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    Path("notes.csv").write_text("a,b\n1,2\n")
    return read_files()


def read_files() -> dict[str, bytes]:
    """Return the inputs as they are; nothing for one that is no file any more."""
    paths = [Path(name) for name in (*FILES, "saved/team.json", "saved/team.safetensors")]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in paths}


def changes(words: list[str], good: dict[str, bytes]) -> Iterator[str]:
    """Yield what is wrong with the files."""
    if "--force" not in words:
        yield from (f"changed {name!r}" for name, data in read_files().items() if data != good[name])
    for path in Path().rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".part":
            yield "left a temporary file"
        if data.startswith(b"<!doctype") and RAW.search(_own_text(data)):
            yield "raw control characters in a page"


def _own_text(page: bytes) -> str:
    """Return a page without the script of the charts, which has control characters of its own."""
    text = page.decode("utf-8", "surrogateescape")
    with contextlib.suppress(ImportError):
        from plotly.offline import get_plotlyjs

        text = text.replace(get_plotlyjs(), "")
    return text


def judge(code: int | None, output: str) -> Iterator[str]:
    """Yield what is wrong with how a command line ended."""
    if code not in ENDS:
        yield f"exit code {code}"
    if "Traceback (most recent call last)" in output:
        yield "traceback"
    if RAW.search(output):
        yield "raw control characters"
    if code == 2 and not re.search(r"^graphsnd: .{9,}|Error|Usage", output, re.MULTILINE):
        yield "2 without a clear line"


def _invoke(words: list[str]) -> tuple[int | None, str, list[str]]:
    """Return exit code and output of a call in this process, and what it raised."""
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    try:
        with limited():
            result = runner.invoke(app, words)
    except TimeoutError:
        return 0, "", [f"hangs for {LONG} s"]
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return result.exit_code, result.output, []
    if isinstance(error, TimeoutError):
        return 0, "", [f"hangs for {LONG} s"]
    place = traceback.extract_tb(error.__traceback__)[-1]
    return 0, "", [f"{type(error).__name__} in {Path(place.filename).name} {place.name}"]


def _process(words: list[str], *, ascii_only: bool) -> tuple[int | None, str, list[str]]:
    """Return exit code and output of a process of its own, perhaps with an output that takes only ASCII."""
    env = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    env |= {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"} if ascii_only else {}
    try:
        command = [sys.executable, "-m", "graphsnd", *words]
        done = subprocess.run(command, env=env, capture_output=True, timeout=10 * LONG)
    except subprocess.TimeoutExpired:
        return 0, "", ["hangs"]
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "surrogateescape"), []
