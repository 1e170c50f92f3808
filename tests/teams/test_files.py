from __future__ import annotations

import json
import os
import pickle
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from typer.testing import CliRunner

import graphsnd as gs
from graphsnd.cli.app import app
from graphsnd.teams import StackedTeam
from graphsnd.teams.team import Team

from .conftest import HEADS, stacked


@pytest.mark.parametrize("kind", list(HEADS))
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_round_trip(kind: str, activation: str, tmp_path: Path, generator: torch.Generator) -> None:
    team = stacked(kind, generator, activation=activation)
    team.about = {"task": "navigation", "seeds": [0, 1]}
    team.save(tmp_path / "new" / "folder")
    again = Team.load(tmp_path / "new" / "folder")
    assert isinstance(again, StackedTeam)
    assert again.about == team.about
    assert repr(again.network) == repr(team.network)
    assert repr(again.head) == repr(team.head)
    for mine, theirs in ((team.network, again.network), (team.head, again.head)):
        for (name, a), (other, b) in zip(mine.state_dict().items(), theirs.state_dict().items(), strict=True):
            assert name == other
            assert a.dtype == b.dtype
            assert a.equal(b)


@pytest.fixture
def saved(tmp_path: Path, generator: torch.Generator) -> Path:
    stacked("gaussian", generator).save(tmp_path)
    return tmp_path


def test_a_failed_save_leaves_the_old_files(
    saved: Path, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        stacked("categorical", generator).save(saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the description, as a wrong save would have it."""
    description = {**json.loads((folder / "team.json").read_text()), **changes}
    tensors = load_file(folder / "team.safetensors")
    save_file(tensors, folder / "team.safetensors", metadata={"team": json.dumps(description)})


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2}, {"format": "other"}, {"agents": 8}, {"agents": "three"}, {"agents": 10**20}, {"agents": -1},
        {"sizes": [4, 8, 5, 2]}, {"sizes": [4, 8, 6]}, {"sizes": None}, {"sizes": [10**20, 2]}, {"about": 3},
        {"activation": "gelu"}, {"head": {"name": "gaussian"}}, {"head": {"name": "categorical", "actions": 2}},
        {"head": {"name": "gaussian", "actions": 10**12}}, {"names": ["one"]},
    ],
    ids=str,
)  # fmt: skip
def test_descriptions_that_do_not_fit(changes: dict[str, Any], saved: Path) -> None:
    rewrite(saved, **changes)
    with pytest.raises(gs.InputError, match=r"`path` .*team\.safetensors"):
        Team.load(saved)


ROWS = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def networks(count: int = 3) -> list[nn.Module]:
    torch.manual_seed(1)
    made = [make() for _ in range(count)]
    for network in made:
        network(torch.randn(50, 4))  # statistics of its own
    return [network.eval() for network in made]


def by_hand(team: list[nn.Module]) -> float:
    with torch.no_grad():
        answers = [network(ROWS).double() for network in team]
    return float(np.mean([float((a - b).norm(dim=-1).mean()) for a, b in combinations(answers, 2)]))


def write(network: nn.Module, path: Path, kind: str) -> None:
    state = network.state_dict()
    if kind == "safetensors":
        save_file(state, path)
    else:
        optimiser = torch.optim.Adam(network.parameters())
        contents: dict[str, Any] = {
            "pt": state,
            "nested": {"epoch": 3, "model": state, "optimizer": optimiser.state_dict(), "lr": torch.tensor(0.1)},
            "several": {"actor": state, "critic": nn.Linear(4, 1).state_dict()},
        }
        contents["nested"].pop("lr")
        torch.save(contents[kind], path)


@pytest.mark.parametrize("kind", ["pt", "safetensors", "nested", "several"])
def test_a_folder_is_a_team(kind: str, tmp_path: Path) -> None:
    team = networks(11)
    for index, network in enumerate(team):
        write(network, tmp_path / f"agent_{index}.{'safetensors' if kind == 'safetensors' else 'pt'}", kind)
    (tmp_path / "notes.txt").write_text("not a checkpoint")
    loaded = Team.load(tmp_path, policy=make, entry="actor" if kind == "several" else None)
    assert loaded.names == tuple(f"agent_{index}" for index in range(11))  # 2 before 10
    assert gs.measure(loaded, ROWS).value == pytest.approx(by_hand(team), rel=1e-5)
    if kind == "several":
        with pytest.raises(gs.InputError, match="actor, critic"):
            Team.load(tmp_path, policy=make)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodule_for_a_test.py").write_text(
        "from torch import nn\n\n\ndef make():\n"
        "    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))\n"
    )
    team = networks()
    for folder, network in zip("abc", team, strict=True):
        (tmp_path / folder).mkdir()
        write(network, tmp_path / folder / "policy.pt", "pt")
    np.savez("obs.npz", observations=ROWS.numpy(), clusters=np.arange(30) // 5)
    files = [f"{folder}/policy.pt" for folder in "abc"]
    for policy in ("mymodule_for_a_test:make", "mymodule_for_a_test.py:make"):
        words = ["measure", *files, "--policy", policy, "--observations", "obs.npz", "--json"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["value"] == pytest.approx(by_hand(team), rel=1e-5)
    result = CliRunner().invoke(app, [*words[:-1], "--html", "page.html"])
    assert result.exit_code == 0, result.output
    assert "b/policy" in (tmp_path / "page.html").read_text()


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("touched",)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = networks(1)[0]
    torch.save({"model": network.state_dict(), "evil": Evil()}, "a.pt", pickle_module=pickle)
    with pytest.raises(gs.InputError, match=r"Pickled objects are never loaded.*state dict, alone"):
        Team.load(["a.pt"], policy=make)
    assert not Path("touched").exists()
