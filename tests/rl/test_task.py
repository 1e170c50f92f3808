from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from graphsnd import InputError
from graphsnd.rl import PRESETS, ControlSettings, ControlTask, Settings, Task
from graphsnd.rl.worlds import parse_world

TASK = ControlTask(4, (0.1, "unconstrained", "homogeneous"), ("complete", "matching"), (0, 3))


@pytest.mark.parametrize("task", [
    Task("navigation", 3, {"horizon": 9}, (0, 2), Settings(hidden=(8, 4, 2), joint=True, policy="tanh-normal")),
    dataclasses.replace(TASK, settings=ControlSettings(bounds=(0.5, 2.0), through=True)),
])  # fmt: skip
def test_json_round_trip(task: Task | ControlTask) -> None:
    assert type(task).from_dict(json.loads(json.dumps(task.to_dict())), Path("x")) == task


def test_a_task_of_the_other_kind_is_refused() -> None:
    with pytest.raises(InputError, match="graphsnd-training"):
        Task.from_dict(TASK.to_dict(), Path("x"))
    with pytest.raises(InputError, match="graphsnd-control"):
        ControlTask.from_dict(None, Path("x"))


@pytest.mark.parametrize("changes", [
    {"targets": ()}, {"targets": (0.0,)}, {"targets": ("free",)}, {"targets": (0.1, 0.1)}, {"designs": ("x",)},
    {"seeds": (0, 0)}, {"seeds": (-1,)}, {"agents": 1}, {"agents": "4"}, {"targets": ("0.1",)}, {"targets": 0.1},
    {"designs": "complete"}, {"designs": (5,)}, {"seeds": 3}, {"settings": Settings()}, {"options": "horizon=3"},
    {"world": None}, {"targets": (True,)},
])  # fmt: skip
def test_tasks_that_make_no_sense(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        dataclasses.replace(TASK, **changes)  # type: ignore[arg-type]


def test_a_training_saved_before_bfloat16_goes_on_without_it() -> None:
    saved = TASK.to_dict()
    assert ControlTask.from_dict(saved, Path("x")).settings.bfloat16
    del saved["settings"]["bfloat16"]
    assert not ControlTask.from_dict(saved, Path("x")).settings.bfloat16


@pytest.mark.parametrize("name", PRESETS)
def test_presets_make_worlds(name: str) -> None:
    found = PRESETS[name]
    world = parse_world(found.world, found.agents, found.settings.environments, **found.options)
    assert world.agents == found.agents


@pytest.mark.parametrize("name", ["agents", "environments", "device"])
def test_options_of_the_training_are_none_of_the_world(name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}'"):
        Task("navigation", 3, {name: 2}).make_world("cpu")
