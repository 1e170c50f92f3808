"""``--config`` and ``--show-config`` of ``graphsnd train`` and ``graphsnd control``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphsnd.cli.app import app
from graphsnd.rl import PRESETS, ControlSettings, ControlTask, Settings, Task

yaml = pytest.importorskip("yaml")
TASK = Task("navigation", 3, {"horizon": 9}, (0, 4), Settings(steps=4, environments=2, iterations=1, hidden=(8,)))
CONTROL = ControlTask(
    3, (0.1, "unconstrained"), settings=ControlSettings(environments=2, steps=4, epochs=1, hidden=(8,), iterations=1)
)


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def shown(*words: object) -> Any:
    result = run(*words, "--show-config")
    assert result.exit_code == 0, result.output
    return yaml.safe_load(result.stdout)


@pytest.mark.parametrize("task", [TASK, CONTROL], ids=["train", "control"])
def test_the_record_of_a_run_is_a_configuration_that_repeats_it(task: Any, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump(json.loads(json.dumps(task.to_dict()))))
    for folder, given in (("a", config), ("b", tmp_path / "a" / "about.json")):
        result = run(task.command, "--config", given, "--out", tmp_path / folder, "--device", "cpu")
        assert result.exit_code == 0, result.output
    rewards = []
    for folder in "ab":
        assert json.loads((tmp_path / folder / "settings.json").read_text()) == json.loads(json.dumps(task.to_dict()))
        lines = (tmp_path / folder / "metrics.csv").read_text().splitlines()
        rewards.append([line.split(",")[lines[0].split(",").index("reward")] for line in lines[1:]])
    assert rewards[0] == rewards[1]


def test_options_change_what_a_file_says(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("world: navigation\nagents: 5\nseeds: [1, 2]\nsettings:\n  learning_rate: 1e-4\n  hidden: [8]\n")
    task = shown("train", "--config", config, "--agents", 4, "--set", "epochs=2", "--set", "world.horizon=7")
    expected = Task("navigation", 4, {"horizon": 7}, (1, 2), Settings(learning_rate=1e-4, hidden=(8,), epochs=2))
    assert task == json.loads(json.dumps(expected.to_dict()))
    other = shown("train", "simple_spread", "--config", config, "--set", "world.horizon=7")
    assert (other["world"], other["agents"], other["options"]) == ("simple_spread", 5, {"horizon": 7})
    other = shown("train", "simple_spread", "--preset", "navigation-small")
    assert (other["world"], other["options"]) == ("simple_spread", {})  # not those of navigation
    assert shown("train", "navigation-small") == json.loads(json.dumps(PRESETS["navigation-small"].to_dict()))
    config.write_text("world: navigation\ntargets: [0.3]\nsettings: {epochs: 2}\n")
    task = shown("control", "--config", config, "--designs", "matching")
    assert (task["targets"], task["designs"], task["options"], task["settings"]["epochs"]) == (
        [0.3],
        ["matching"],
        {},
        2,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worlds: navigation", "worlds"),
        ("settings: {wings: 3}", "wings"),
        ("settings: 3", "dicts"),
        ("settings: {3: 4}", "names"),
        ("seeds: 2026-99-99", "whole YAML"),
        ("[" * 9999, "whole YAML"),
        ("format: graphsnd-control", "graphsnd train"),
        ("version: 2", "version 1"),
        ("- 3", "list"),
        ("world: [", "whole YAML"),
        ("agents: many", "agents"),
    ],
)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(text)
    result = run("train", "--config", tmp_path / "run.yaml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_other_refusals(tmp_path: Path) -> None:
    assert "gone.json" in run("train", "--config", tmp_path / "gone.json").output
    (tmp_path / "run.yaml").write_text("agents: 3")
    for command in ("train", "control"):
        result = run(command, "--config", tmp_path / "run.yaml", "--preset", "none" if command == "train" else "small")
        assert "--preset" in result.output
