from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphsnd import snd
from graphsnd.cli.files import read_team
from graphsnd.rl.checkpoint import load_checkpoint

SMALL = (
    "--set", "steps=5", "--set", "hidden=[8]", "--set", "minibatch=8", "--set", "epochs=1", "--envs", "3",
    "--device", "cpu",
)  # fmt: skip


@pytest.fixture
def run(run: Callable[..., Any]) -> Callable[..., Any]:
    return partial(run, "control")


def test_a_small_study_tells_and_writes(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "dico"
    result = run(
        "dispersion", "--agents", 3, "--targets", "0.1,unconstrained", "--seeds", "0,2", "--designs",
        "complete,matching", "--iterations", 2, "--out", out, "--set", "bounds=[0.01, 50]", *SMALL,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "6 runs of 3 agents on cpu" in result.stderr
    assert "audit error" in result.stderr
    assert "matching" in result.stdout
    with (out / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["arm"] for row in rows[:6]] == [
        "complete",
        "complete",
        "matching",
        "matching",
        "unconstrained",
        "unconstrained",
    ]
    assert {"target", "estimate", "applied", "scale", "audit", "tracking_error", "audit_error", "reward"} <= set(
        rows[0]
    )
    assert [row["target"] for row in rows[:6]] == ["0.1"] * 4 + [""] * 2
    assert (out / "control.png").stat().st_size > 10_000
    assert "matching-target-0.1-seed-2" in result.stdout
    source = read_team(out / "matching-target-0.1-seed-2")
    assert (source.team.agents, type(source.team).__name__) == (3, "ControlledTeam")
    assert float(snd(source.evaluate())) > 0
    task = load_checkpoint(out).task
    assert task.options == {"food_radius": 0.08, "share_reward": True, "horizon": 100}
    about = json.loads((out / "about.json").read_text())
    assert (about["seeds"], about["device"], about["task"]["agents"]) == ([0, 2], "cpu", 3)
    assert about["took_s"] > 0
    again = run("--resume", "--iterations", 3, "--out", out, "--device", "cpu")
    assert again.exit_code == 0, again.output
    assert load_checkpoint(out).iteration == 3
    assert json.loads((out / "about.json").read_text())["task"]["settings"]["iterations"] == 3


def test_the_command_in_about_repeats_the_task(run: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    said = ("--targets", "0.12,homogeneous", "--designs", "bernoulli:0.5,matching", "--seeds", "1,4")
    kept = ("--preset", "small", "--iterations", 1, *SMALL, "--set", "world.food_radius=0.05")
    assert run("dispersion", "--agents", 3, *said, *kept, "--out", first).exit_code == 0
    words = shlex.split(json.loads((first / "about.json").read_text())["command"])
    assert words[:2] == ["graphsnd", "control"]
    result = run(*words[2:], "--device", "cpu", "--out", second)
    assert result.exit_code == 0, result.output
    assert load_checkpoint(first).task == load_checkpoint(second).task


def test_tensorboard_has_a_folder_for_each_run(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    said = ("--agents", 3, "--targets", "0.1,unconstrained", "--designs", "bernoulli:0.5", "--iterations", 2)
    result = run("dispersion", *said, "--logger", "tensorboard", "--out", tmp_path, *SMALL)
    assert result.exit_code == 0, result.output
    folders = sorted(path.name for path in (tmp_path / "tensorboard").iterdir())
    assert folders == ["bernoulli-0.5-target-0.1-seed-0", "unconstrained-seed-0"]
    with (tmp_path / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["arm"] == "bernoulli:0.5"]
    events = EventAccumulator(str(tmp_path / "tensorboard" / folders[0]))
    events.Reload()
    assert [each.step for each in events.Scalars("audit")] == [1, 2]
    for name in ("audit", "reward", "target", "saturated"):
        assert [e.value for e in events.Scalars(name)] == pytest.approx([float(row[name]) for row in rows])
    assert not {"arm", "seed", "iteration"} & set(events.Tags()["scalars"])


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "`WORLD` or --config, or --resume"),
    (("chess",), "`WORLD` to be one of"),
    (("dispersion", "--targets", "0"), "`--targets` to be numbers above 0"),
    (("dispersion", "--targets", "some"), "`--targets` to be numbers"),
    (("dispersion", "--designs", "half"), "`--designs` to be one of complete"),
    (("dispersion", "--preset", "large"), "`--preset` to be one of paper, small"),
    (("dispersion", "--set", "world.colour=red"), "`option of dispersion`"),
    (("dispersion", "--set", "lr=1"), "`settings` to be among"),
    (("--resume",), "`folder` to hold checkpoint.safetensors"),
])  # fmt: skip
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str, assert_one_line: Any) -> None:
    assert_one_line(words, *arguments)


def test_a_folder_of_another_command_is_named(run: Any, tmp_path: Path) -> None:
    from graphsnd.rl import Settings, Task
    from graphsnd.rl import train as train_team

    settings = Settings(steps=4, environments=2, iterations=1, hidden=(8,))
    train_team(Task("navigation", 2, {}, (0,), settings), tmp_path)
    result = run("dispersion", "--agents", 3, *SMALL, "--out", tmp_path)
    assert result.exit_code == 2
    assert "graphsnd train" in " ".join(result.stderr.split())


def test_resuming_with_fewer_iterations_is_refused(run: Any, tmp_path: Path) -> None:
    assert run("dispersion", "--agents", 3, "--iterations", 2, *SMALL, "--out", tmp_path).exit_code == 0
    fewer = run("--resume", "--out", tmp_path, "--iterations", 1)
    assert fewer.exit_code == 2
    assert "at least 2" in fewer.stderr
    assert load_checkpoint(tmp_path).iteration == 2


def test_settings_for_a_gpu_are_called_so_on_a_cpu(monkeypatch: pytest.MonkeyPatch, run: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("graphsnd.cli.training.LONG", 10)
    result = run("dispersion", "--agents", 3, "--iterations", 1, *SMALL, "--out", tmp_path)
    assert "--preset small" in result.stderr


def test_one_of_a_kind_is_said_in_the_singular(run: Any, tmp_path: Path) -> None:
    words = ("dispersion", "--agents", 3, "--iterations", 1, *SMALL, "--set", "minibatch=64", "--out", tmp_path)
    said = run(*words, "--envs", 1, "--set", "observations=1").stderr
    assert "1 run of 3 agents on cpu: 1 environment x 5 steps, 1 optimiser step, each with" in said
    assert "on 1 observation\n" in said
    assert "already finished: 1 of 1 iteration;" in run("--resume", "--out", tmp_path).stderr
