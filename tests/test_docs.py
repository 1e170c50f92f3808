"""Docstrings point at things that exist, promises name tests that exist, and the code of pages runs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import graphsnd

SOURCE = Path(graphsnd.__file__).parent
REFERENCE = re.compile(r":(?:func|class|meth|mod|attr|data|exc|obj):`(?:[^`]*<)?~?([^`<>]+)>?`")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def references(tree: ast.AST, classes: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return all cross-references, each with the classes around it."""
    for node in (tree, *ast.iter_child_nodes(tree)) if isinstance(tree, ast.Module) else ast.iter_child_nodes(tree):
        inside = (*classes, node.name) if isinstance(node, ast.ClassDef) else classes
        if isinstance(node, Documented):
            yield from ((target, inside) for target in REFERENCE.findall(ast.get_docstring(node) or ""))
        if node is not tree:
            yield from references(node, inside)


def resolve(path: str) -> Any:
    """Return what a dotted path names: a module, something in it, or a field of a class."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            fields = getattr(value, "__annotations__", {})
            value = fields[part] if part in fields else getattr(value, part)
        return value
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_cross_references_resolve(file: Path) -> None:
    found = list(references(ast.parse(file.read_text(encoding="utf-8"))))
    if not found:
        return
    name = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    for target, classes in found:
        # As Sphinx looks it up: in the class, in the module, and from the top.
        for place in (".".join((name, *classes)), name, None):
            try:
                resolve(target if place is None else f"{place}.{target}")
                break
            except (AttributeError, ModuleNotFoundError):
                continue
        else:
            pytest.fail(f"{target!r} in {name}{'.'.join(('', *classes))} points nowhere")


def test_links_of_pages_lead_somewhere() -> None:
    root = SOURCE.parents[1]
    folders = (root / name for name in ("docs", "benchmarks", "paper"))
    for page in (*root.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))):
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert re.match(r"\w+:", link) or (page.parent / link).exists(), f"{link} in {page.relative_to(root)}"


def test_promises_name_tests_that_exist() -> None:
    root = SOURCE.parents[1]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (root / "docs/reliability.md").read_text(encoding="utf-8"))
    assert named
    for file, test in named:
        assert (root / file).is_file(), file
        assert f"def {test}(" in (root / file).read_text(encoding="utf-8"), f"{file}::{test}"


def run_blocks(page: str, **given: Any) -> None:
    """Run the Python blocks of a page of docs/, one after another."""
    text = (SOURCE.parents[1] / "docs" / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, page, "exec"), given)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory, self.out = nn.GRU(4, 8), nn.Linear(8, 2)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        return self.out(self.memory(sequences)[0])


def test_blocks_about_distances_run() -> None:
    networkx, logits = pytest.importorskip("networkx"), torch.randn(9, 3, 4)
    names = ("scout", "guard", "medic")
    run_blocks(
        "distances.md",
        gs=graphsnd,
        actor=SimpleNamespace(get_dist=lambda _: torch.distributions.Categorical(logits=logits)),
        rollout=None,
        behavior=graphsnd.Deterministic({name: torch.randn(10, 2) for name in names}),
        other=graphsnd.Deterministic(torch.randn(9, 4, 3)),
        G=networkx.path_graph(names),
        grus=[Recurrent() for _ in names],
        sequences=torch.randn(6, 5, 4),
        gnns=[nn.Linear(4, 2) for _ in names],
        joint=torch.randn(5, 3, 4),
        teams={"predators": [nn.Linear(4, 2) for _ in range(3)], "prey": [nn.Linear(3, 2) for _ in range(2)]},
        seen=torch.randn(50, 4),
        seen_by_prey=torch.randn(40, 3),
        a=logits,
        b=logits,
        loc=logits,
        scale=1.0,
        logits=logits,
    )


def test_blocks_about_roles_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("safetensors")
    monkeypatch.chdir(SOURCE.parents[1])
    run_blocks("roles.md")
    printed = capsys.readouterr().out
    assert printed.startswith("3 roles")
    assert "\n1 role: these 100 agents" in printed
    assert "SND 0.72 near a goal, 0.82 far from it" in printed


def test_blocks_about_companions_print_their_table(capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks("companions.md")
    table = capsys.readouterr().out
    assert table.count("\n") == 4
    assert f"```\n{table}```" in (SOURCE.parents[1] / "docs/companions.md").read_text(encoding="utf-8")


def test_blocks_about_torchmetrics_run() -> None:
    pytest.importorskip("torchmetrics")
    run_blocks("torchmetrics.md", policies=[nn.Linear(4, 2) for _ in range(16)], loader=torch.randn(3, 5, 4))


def test_blocks_about_torchrl_run() -> None:
    modules = pytest.importorskip("torchrl.modules")
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule

    network = modules.MultiAgentMLP(5, 2, 3, centralized=False, share_params=False)
    key, calls = ("agents", "observation"), []
    run_blocks(
        "torchrl.md",
        actor=TensorDictModule(network, in_keys=[key], out_keys=[("agents", "action")]),
        rollout=TensorDict({key: torch.randn(6, 3, 5)}, [6]),
        trainer=SimpleNamespace(register_op=lambda *a: calls.append(a), register_module=lambda *a: calls.append(a)),
    )
    assert [call[0] for call in calls] == ["pre_steps_log", "diversity"]


def test_blocks_about_pettingzoo_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpe2")
    monkeypatch.chdir(tmp_path)
    networks = {f"agent_{i}": nn.Linear(18, 5) for i in range(3)}
    policies = {name: lambda o, n=n: graphsnd.Categorical(logits=n(o)) for name, n in networks.items()}
    run_blocks("pettingzoo.md", policies=policies)
    assert (tmp_path / "team.npz").is_file()


@pytest.mark.integration
def test_blocks_about_stable_baselines3_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    run_blocks("stable_baselines3.md")
    assert (tmp_path / "team.npz").is_file()


def test_blocks_about_checkpoints_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ckpts").mkdir()
    for name in "ab":
        network = nn.Sequential(nn.Linear(18, 32), nn.Tanh(), nn.Linear(32, 5))
        torch.save({f"net.{key}": value for key, value in network.state_dict().items()}, f"ckpts/{name}.pt")
    run_blocks("checkpoints.md", observations=torch.randn(20, 18))


def test_blocks_about_plots_run() -> None:
    run_blocks("plots.md")
