from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import graphsnd as gs
from graphsnd.plots import example_team

FILES = {
    "index.html", "team.npz", "hero.png", "heatmap.png", "graphs.png", "estimates.png", "contributions.png",
}  # fmt: skip


def test_a_small_demo_writes_everything(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "demo"
    result = run("demo", "--out", out, "--agents", 16, "--observations", 64, "--seed", 1)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == FILES
    for word in (
        "SND ",
        "2-Wasserstein of Gaussians",
        "complete",
        "bernoulli:0.1",
        "uniform:",
        "regular:",
        "knn:",
        "radius:",
        "cliques",
        "medic",
    ):
        assert word in result.stdout
    assert "do not estimate SND" in " ".join(result.stdout.split())
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "graphsnd demo --seed 1" in page
    assert str(tmp_path) not in page
    assert "Seconds, exact" not in page
    commands = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("graphsnd measure ")]
    assert len(commands) == 3
    snd = gs.snd(example_team(16, 64, seed=1).behavior)
    for words in commands:
        again = run(*words, "--json")
        assert again.exit_code == 0, again.output
        measured = json.loads(again.stdout)
        assert measured["names"][0].rpartition("-")[2] == "0"
        assert measured["target"] != "SND" or measured["interval"][0] <= snd * 1.00001
    assert (out / "report.html").is_file()


def test_one_observation_is_said_in_the_singular(run: Any, tmp_path: Path) -> None:
    result = run("demo", "--out", tmp_path, "--agents", 8, "--observations", 1)
    assert "pairs, 1 observation)" in " ".join(result.stdout.split()), result.output


def test_too_few_agents(run: Any, tmp_path: Path) -> None:
    result = run("demo", "--agents", 3, "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert "`--agents` to be at least 8" in result.stderr
    assert not (tmp_path / "demo").exists()
