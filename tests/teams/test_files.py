from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import graphsnd as gs
from graphsnd.teams import StackedTeam, Team

from .conftest import FEATURES, HEADS, stacked


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
    observations = torch.randn(5, FEATURES, generator=generator, dtype=torch.float64)
    distance = gs.TotalVariation() if kind == "categorical" else gs.Wasserstein()
    difference = gs.pairwise(team.evaluate(observations), distance=distance) - gs.pairwise(
        again.evaluate(observations), distance=distance
    )
    assert not difference.any()


@pytest.fixture
def saved(tmp_path: Path, generator: torch.Generator) -> Path:
    stacked("gaussian", generator).save(tmp_path)
    return tmp_path


def test_nothing_else_is_left_behind(saved: Path, generator: torch.Generator) -> None:
    stacked("categorical", generator).save(saved)
    assert sorted(file.name for file in saved.iterdir()) == ["team.json", "team.safetensors"]
    assert "Categorical" in repr(Team.load(saved).head)  # type: ignore[attr-defined]
    assert repr(Team.load(saved / "team.json")) == repr(Team.load(saved))


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
    """Change the description in both files, as a consistent but wrong save would have it."""
    description = {**json.loads((folder / "team.json").read_text()), **changes}
    (folder / "team.json").write_text(json.dumps(description))
    tensors = load_file(folder / "team.safetensors")
    save_file(tensors, folder / "team.safetensors", metadata={"team": json.dumps(description)})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, ["version 1", "version 2"]),
        ({"format": "other"}, ["graphsnd-team"]),
        ({"agents": 8}, ["head.log_std", "(8, 1, 2)", "(7, 1, 2)"]),
        ({"sizes": [4, 8, 5, 2]}, ["network.biases.1", "(7, 1, 5)", "(7, 1, 6)"]),
        ({"sizes": [4, 8, 6]}, ["network", "2 outputs", "got 6"]),
        ({"sizes": [4, 8, 6, 2, 2]}, ["network.biases.3", "no such tensor"]),
        ({"sizes": None}, ["complete"]),
        ({"activation": "gelu"}, ["activation", "gelu"]),
        ({"head": {"name": "beta", "actions": 2}}, ["head", "beta"]),
        ({"head": {"name": "categorical", "actions": 2}}, ["head.log_std", "absent"]),
        ({"head": {"name": "gaussian", "actions": 2, "mean": "tanh", "colour": 1}}, ["complete", "colour"]),
    ],
)
def test_descriptions_that_do_not_fit(changes: dict[str, Any], words: list[str], saved: Path) -> None:
    rewrite(saved, **changes)
    with pytest.raises(gs.InputError) as error:
        Team.load(saved)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("name", ["team.json", "team.safetensors"])
def test_missing_files(name: str, saved: Path) -> None:
    (saved / name).unlink()
    with pytest.raises(gs.InputError, match=rf"no file .*{name}"):
        Team.load(saved)


@pytest.mark.parametrize("name", ["team.json", "team.safetensors"])
def test_damaged_files(name: str, saved: Path) -> None:
    content = (saved / name).read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"\xff" * 100):
        (saved / name).write_bytes(damaged)
        with pytest.raises(gs.InputError, match=name):
            Team.load(saved)


def test_files_of_two_saves(saved: Path) -> None:
    description = json.loads((saved / "team.json").read_text())
    (saved / "team.json").write_text(json.dumps({**description, "about": {"seed": 1}}))
    with pytest.raises(gs.InputError, match="one save"):
        Team.load(saved)


def test_what_cannot_be_saved(tmp_path: Path, generator: torch.Generator) -> None:
    team = stacked("gaussian", generator)
    team.about = {"weights": torch.zeros(2)}
    with pytest.raises(gs.InputError, match="`about`"):
        team.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(gs.InputError, match="folder"):
        stacked("gaussian", generator).save(tmp_path / "file")


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": "words"}, {"sizes": ["a", "b"]}, {"sizes": [10**20, 2]}, {"sizes": [2**32, 2**32]}, {"sizes": []},
        {"agents": "three"}, {"agents": 10**20}, {"agents": -1}, {"agents": None}, {"about": 3}, {"activation": [1]},
        {"head": "gaussian"}, {"head": {"name": "gaussian"}}, {"head": {"name": "gaussian", "actions": 10**12}},
        {"head": {"name": ["gaussian"], "actions": 2}}, {"head": {"name": "gaussian", "actions": 2, "mean": []}},
    ],
    ids=str,
)  # fmt: skip
def test_descriptions_with_other_things_for_numbers(changes: dict[str, Any], saved: Path) -> None:
    rewrite(saved, **changes)
    with pytest.raises(gs.InputError):
        Team.load(saved)


def test_a_limit_on_memory(saved: Path) -> None:
    with pytest.raises(gs.InputError, match="within max_bytes = 100"):
        Team.load(saved, max_bytes=100)


@pytest.mark.parametrize("count", [0, 7, 9])
def test_clusters_are_one_for_each_observation(count: int, tmp_path: Path) -> None:
    behavior = gs.Deterministic(torch.zeros(2, 4, 3, 2))  # 8 observations
    with pytest.raises(gs.InputError, match=rf"`clusters` to be 8 integers, .* shape \({count},\)"):
        gs.save_behavior(behavior, tmp_path / "team.npz", clusters=torch.zeros(count, dtype=torch.long))
    assert list(tmp_path.iterdir()) == []
    gs.save_behavior(behavior, tmp_path / "team.npz", clusters=torch.arange(8).reshape(2, 4))


@pytest.mark.parametrize(
    ("joint", "name", "fix"), [(False, "team.txt", "to end in .npz"), (True, "team.npz", "parts of a")]
)
def test_what_cannot_be_saved_says_why(joint: bool, name: str, fix: str, tmp_path: Path) -> None:
    behavior = gs.Deterministic(torch.zeros(2, 3, 2))
    with pytest.raises(gs.InputError, match=fix):
        gs.save_behavior(gs.Joint([behavior]) if joint else behavior, tmp_path / name)
