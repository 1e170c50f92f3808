"""``--engine hydra``; what trains has a process of its own, because Hydra keeps global state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsnd.cli.hydra_engine import register_groups
from graphsnd.cli.options import plain
from graphsnd.rl import CONTROL_PRESETS, PRESETS, ControlTask

hydra = pytest.importorskip("hydra")
from omegaconf import OmegaConf  # noqa: E402

pytestmark = pytest.mark.integration
TINY = ["task.settings.iterations=1", "task.settings.steps=4", "task.settings.environments=2", "device=cpu"]


def run(folder: Path, command: str, *words: str) -> Any:
    line = [sys.executable, "-m", "graphsnd", command, "--engine", "hydra", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def composed(command: str, *words: str) -> Any:
    register_groups(command)
    with hydra.initialize(version_base=None, config_path=None):
        return OmegaConf.to_container(hydra.compose(command, list(words)).task)


def test_groups_are_the_presets() -> None:
    for name, preset in PRESETS.items():
        assert composed("train", f"task={name}") == plain(preset.to_dict())
    for name, settings in CONTROL_PRESETS.items():
        task = ControlTask(10, (0.1,), settings=settings).to_dict()
        assert composed("control", f"task/settings={name}") == plain(task)


def test_a_multirun_trains_all_and_says_what_was_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "train", "-m", "task.agents=2,0,3", "+task.options.agent_radius=0.05", *TINY)
    assert result.returncode == 2, result.stdout + result.stderr
    assert "agents" in result.stderr.splitlines()[-1]
    folders = sorted(path.parent for path in tmp_path.rglob("about.json"))
    tasks = [json.loads((folder / "settings.json").read_text()) for folder in folders]
    assert [(task["agents"], task["options"]["agent_radius"]) for task in tasks] == [(2, 0.05), (3, 0.05)]


def test_control_trains(tmp_path: Path) -> None:
    words = ["task.agents=3", "task.targets=[0.2]", "task/settings=small", "task.settings.epochs=1", "out=here"]
    result = run(tmp_path, "control", *words, *TINY)
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "here" / "about.json").read_text())["task"]["targets"] == [0.2]
