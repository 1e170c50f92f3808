"""Diversity over training from saved teams, against gs.measure of each on the same observations."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsnd as gs
from graphsnd.rl import Settings, Task, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "nav"
    settings = Settings(steps=8, environments=2, iterations=4, minibatch=16, diversity_every=0)
    train(Task("navigation", 3, seeds=(0, 1), settings=settings), path, checkpoint_every=2, keep_teams=True)
    return path


def test_a_run_folder_gives_diversity_over_training(run: Any, folder: Path, tmp_path: Path) -> None:
    seen, out = tmp_path / "seen.npz", {kind: tmp_path / f"over.{kind}" for kind in ("csv", "png")}
    shown = np.random.default_rng(0).standard_normal((64, 18)).astype(np.float32)
    np.savez(seen, observations=shown)
    words = [word for kind, path in out.items() for word in (f"--{kind}", path)]
    found = run("measure", folder / "teams", "--observations", seen, *words)
    assert found.exit_code == 0, found.output
    rows = list(csv.DictReader(out["csv"].open()))
    assert [(row["run"], row["iteration"]) for row in rows] == [(f"seed-{s}", i) for s in "01" for i in "024"]
    for row in rows:
        team = gs.Team.load(folder / "teams" / f"iteration-{int(row['iteration']):06d}" / row["run"])
        assert float(row["SND"]) == pytest.approx(float(gs.snd(gs.evaluate(team, shown))), rel=1e-6)
        assert float(row["low"]) < float(row["SND"]) < float(row["high"])
    assert out["png"].read_bytes().startswith(b"\x89PNG")
    refused = run("measure", folder / "teams", "--observations", seen, "--html", tmp_path / "over.html")
    assert (refused.exit_code, "`--html` with one team" in refused.stderr) == (2, True)


def test_one_team_in_a_folder_is_one(run: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (folder / "seed-0").rename(tmp_path / "run" / "seed-0")
    found = run("measure", tmp_path / "run", "--json")
    (tmp_path / "run" / "seed-0").rename(folder / "seed-0")
    assert json.loads(found.stdout)["agents"] == 3


def test_a_list_of_teams_is_shown_what_lies_beside_the_last(run: Any, folder: Path) -> None:
    found = run("measure", folder / "seed-0", folder / "seed-1", "--json")
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["checkpoints"]
    assert len(rows) == 2
    beside = folder / "seed-1" / "observations.safetensors"
    alone = [run("measure", folder / f"seed-{s}", "--json", "--observations", beside) for s in (0, 1)]
    assert [row["SND"] for row in rows] == [json.loads(each.stdout)["value"] for each in alone]


def test_the_team_at_the_end_of_a_training_is_listed_once(run: Any, folder: Path) -> None:
    rows = json.loads(run("measure", folder, "--json").stdout)["checkpoints"]
    assert [(row["run"], row["iteration"]) for row in rows] == [(f"seed-{s}", i) for s in "01" for i in (0, 2, 4)]


def test_trainings_with_the_same_seed_stay_apart(run: Any, folder: Path, tmp_path: Path) -> None:
    settings = Settings(steps=8, environments=2, iterations=2, minibatch=16, diversity_every=0, learning_rate=0.1)
    other = folder.with_name("fast")
    train(Task("navigation", 3, settings=settings), other, checkpoint_every=1, keep_teams=True)
    for paths in ([folder, other], [folder.parent]):
        printed = run("measure", *paths, "--json", "--png", tmp_path / "a.png").stdout
        found = [(row["run"], row["iteration"]) for row in json.loads(printed)["checkpoints"]]
        slow = [(f"nav/seed-{seed}", at) for seed in (0, 1) for at in (0, 2, 4)]
        assert found == [*(("fast/seed-0", at) for at in (0, 1, 2)), *slow]


def test_a_path_without_teams_is_not_left_out(run: Any, folder: Path) -> None:
    found = run("measure", folder / "seed-0", folder / "seed-9", "--json")
    assert found.exit_code == 2
    assert "seed-9" in found.stderr


def test_what_is_missing_is_said(run: Any, folder: Path, tmp_path: Path) -> None:
    assert "--observations" in run("measure", folder / "teams").stderr
    assert "--csv" in run("measure", folder / "seed-0", "--csv", tmp_path / "a.csv").stderr
    assert run("measure", tmp_path, tmp_path).exit_code == 2
