"""Public names have examples, links of pages lead somewhere, and the code of pages runs."""

from __future__ import annotations

import ast
import copy
import doctest
import glob
import importlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner

import graphsnd
from graphsnd.cli.app import app

SOURCE = Path(graphsnd.__file__).parent
ROOT = SOURCE.parents[1]
Documented = ast.ClassDef | ast.FunctionDef


def documented() -> Iterator[tuple[str, str]]:
    """Yield the names of the reference and their docstrings, of adapters from the text: packages may be absent."""
    listed = re.findall(
        r"^   graphsnd\.([\w.]+)$", (ROOT / "docs/reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    for module in (importlib.import_module(f"graphsnd.{name}") for name in listed if "integrations" not in name):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                yield f"{module.__name__}.{name}", value.__doc__ or ""
    adapters = [ast.parse(file.read_text(encoding="utf-8")) for file in (SOURCE / "integrations").rglob("*.py")]
    assigned = (node for tree in adapters for node in tree.body if isinstance(node, ast.Assign))
    lists = [node.value for node in assigned if getattr(node.targets[0], "id", "") == "__all__"]
    public = {name for names in lists for name in ast.literal_eval(names)}
    assert len(lists) == sum("integrations" in name for name in listed)
    for node in (node for tree in adapters for node in tree.body):
        if isinstance(node, Documented) and node.name in public:
            yield node.name, ast.get_docstring(node) or ""


def test_public_names_have_an_example() -> None:
    shown = dict(documented())
    assert len(shown) > 80
    assert [name for name, text in shown.items() if ">>> " not in text] == []


def test_links_of_pages_lead_somewhere() -> None:
    root = SOURCE.parents[1]
    folders = (root / name for name in ("docs", "benchmarks", "paper"))
    for page in (*root.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))):
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)", prose):
            made = re.match(r"reference/|images/drawn/", link)  # when the site is built, which checks the links to them
            there = made or re.match(r"\w+:", link) or (page.parent / link).exists()
            assert there, f"{link} in {page.relative_to(root)}"


PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```([^\s`]*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"\.(npz|pt|json|yaml)$|^runs/")
# Pages that `make test-integrations` runs, for what they need or how long they take.
NEEDS = {"benchmarl": "benchmarl", "jax": "optax", "rllib": "ray.rllib", "stable_baselines3": "stable_baselines3"}
NEEDS |= {"distributed": "ray", "training": "torch", "control": "torch", "levels": "benchmarl"}
OTHERS = {"torchrl": "torchrl", "pettingzoo": "mpe2", "torch": "torchmetrics"}  # short, and part of `make test`
OUTPUTS = {"--html", "--png", "--csv", "--out"}
SMALLER = {"training": ("range(100)", "range(1)")}  # what a page runs for long
PRINTED = {"roles": ("3 roles", "1 role: these 100 agents", "SND 0.72 near a goal, 0.82 far from it")}  # as it says
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the listings of a page, each with its language."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> Iterator[list[str]]:
    """Return the words of each ``graphsnd`` command of a listing."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in " ".join(shlex.split(line, comments=True)).split(" && "):
            name, *words = part.split() or [""]
            if name == "graphsnd":
                yield words


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_commands_of_pages_exist(page: Path) -> None:
    application: Any = typer.main.get_command(app)
    for words in (words for language, text in blocks(page) if language in ("", "sh") for words in commands(text)):
        if not words[0].startswith("-"):
            command = application.commands[words[0]]
            command.make_context(words[0], words[1:], parent=typer.Context(application))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory, self.out = nn.GRU(4, 8), nn.Linear(8, 2)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        return self.out(self.memory(sequences)[0])


def names_of_distances(_: pytest.MonkeyPatch) -> dict[str, Any]:
    import networkx

    logits, names = torch.randn(9, 3, 4), ("scout", "guard", "medic")
    return {
        "gs": graphsnd,
        "behavior": graphsnd.Deterministic({name: torch.randn(10, 2) for name in names}),
        "other": graphsnd.Deterministic(torch.randn(9, 4, 3)),
        "G": networkx.path_graph(names),
        "grus": [Recurrent() for _ in names],
        "sequences": torch.randn(6, 5, 4),
        "gnns": [nn.Linear(4, 2) for _ in names],
        "joint": torch.randn(5, 3, 4),
        "teams": {"predators": [nn.Linear(4, 2) for _ in range(3)], "prey": [nn.Linear(3, 2) for _ in range(2)]},
        "seen": torch.randn(50, 4),
        "seen_by_prey": torch.randn(40, 3),
        "a": logits,
        "b": logits,
        "loc": logits,
        "scale": 1.0,
        "logits": logits,
    }


def names_of_checkpoints(_: pytest.MonkeyPatch) -> dict[str, Any]:
    Path("ckpts").mkdir()
    for name in "ab":
        network = nn.Sequential(nn.Linear(18, 32), nn.Tanh(), nn.Linear(32, 5))
        torch.save({f"net.{key}": value for key, value in network.state_dict().items()}, f"ckpts/{name}.pt")
    numpy.savez("obs.npz", observations=torch.randn(20, 18).numpy())
    for name, middle in (("agent", nn.GRUCell), ("agent_flat", nn.Linear)):  # as EPyMARL names its layers
        layers = {"fc1": nn.Linear(23, 8), "rnn": middle(8, 8), "fc2": nn.Linear(8, 6)}
        torch.save(nn.ModuleDict(layers).state_dict(), f"{name}.th")
    return {"observations": torch.randn(20, 18), "inputs": torch.randn(7, 4, 23)}


def names_of_benchmarl(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    from benchmarl.experiment import ExperimentConfig

    from tests.integrations.benchmarl.conftest import small

    config = small(Path.cwd())  # two iterations of 40 frames
    patch.setattr(ExperimentConfig, "get_from_yaml", staticmethod(lambda: copy.deepcopy(config)))
    return {}


def names_of_torchrl(_: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"trainer": SimpleNamespace(register_op=lambda *a: None, register_module=lambda *a: None)}


# What a page takes for granted. A page that needs nothing is better: readers paste its listings.
GIVEN: dict[str, Callable[[pytest.MonkeyPatch], dict[str, Any]]] = {
    "benchmarl": names_of_benchmarl,
    "levels": names_of_benchmarl,
    "distances": names_of_distances,
    "checkpoints": names_of_checkpoints,
    "torchrl": names_of_torchrl,
}


def run_command(words: list[str]) -> bool:
    """Run a command whose files are there, one iteration of a training that is small; say whether it did."""
    words = [name for word in words for name in (sorted(glob.glob(word)) or [word])]
    words, redirect = (words[: words.index(">")], words[-1]) if ">" in words else (words, None)
    if words[0] == "train":
        if "--ray" in words or not {"navigation", "dispersion"} & set(words):
            return False
        words = [*words, "--iterations", "1"]
    inputs = [word for at, word in enumerate(words) if words[at - 1] not in OUTPUTS]
    if not all(Path(word).exists() for word in inputs if FILE.search(word)):
        return False
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (words, result.output)
    if redirect:
        Path(redirect).write_text(result.stdout, encoding="utf-8")
    return True


def check_printed(text: str, printed: str) -> None:
    """Compare a listing of output with what was printed, numbers to three digits."""
    same = [[float(n.replace(",", "")) for n in NUMBER.findall(part)] for part in (text, printed)]
    assert NUMBER.sub("#", text) == NUMBER.sub("#", printed)
    assert same[0] == pytest.approx(same[1], rel=1e-3)


def run_line(line: str, copied: Path) -> None:
    """Run a line of the README: ``make`` by its recipe, ``make test`` only if it is there."""
    recipes = dict(re.findall(r"^(demo|test):.*\n\t(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    if line.startswith("git clone"):
        for name in ("src", "docs/images"):
            shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("README.md", "LICENSE", "pyproject.toml"):
            shutil.copy(ROOT / name, copied)
    elif line == "pip install .":
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", "installed"]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, "."], cwd=copied, check=True)
        assert {"graphsnd", "bin"} <= {path.name for path in (copied / "installed").iterdir()}
    else:
        words = shlex.split(recipes[line.removeprefix("make ")] if line.startswith("make ") else line)
        assert Path(words[0]).name in ("graphsnd", "python"), line
        assert words[1:4] == ["-m", "pytest", "-n"] or run_command(words[1:]), line


def test_the_readme_runs_in_order_on_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = ""
    with torch.random.fork_rng():
        for language, text in blocks(ROOT / "README.md"):
            if language == "sh":
                for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
                    run_line(line, tmp_path)
                capsys.readouterr()
            elif language == "python":
                exec(compile(text, "README.md", "exec"), {})
                printed = capsys.readouterr().out
            elif language == "text":
                check_printed(text, printed)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.integration] if page.stem in NEEDS else [])
        for page in PAGES
        if any(language in ("python", "sh") for language, _ in blocks(page))
    ],
    ids=lambda page: page.stem,
)
def test_listings_of_pages_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python one after another in one namespace; what it prints is the ``text`` that follows it; short commands too."""
    if needed := {**NEEDS, **OTHERS}.get(page.stem):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    for name in ("paper", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    printed, everything = "", ""
    with torch.random.fork_rng():
        space = GIVEN.get(page.stem, lambda _: {})(monkeypatch)
        for language, whole in blocks(page):
            text = whole.replace(*SMALLER.get(page.stem, ("", "")))
            if language == "python" and ">>> " in text:
                test = doctest.DocTestParser().get_doctest(text, space, page.name, str(page), 0)
                assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False).failed
                space = test.globs
            elif language == "python":
                exec(compile(text, page.name, "exec"), space)
                if text.startswith("# mymodule.py"):
                    Path("mymodule.py").write_text(text, encoding="utf-8")
                printed = capsys.readouterr().out
                everything += printed
            elif language == "text" and printed:
                check_printed(text, printed)
            elif language == "sh":
                for words in commands(text):
                    run_command(words)
    for words in PRINTED.get(page.stem, ()):
        assert words in everything
