from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from graphsnd import InputError
from graphsnd.control import Seek
from graphsnd.rl import PRESETS, Settings, Task
from graphsnd.rl.worlds import parse_world
from tests.training import control_settings, control_task

TASK = control_task(4, (0.1, "unconstrained", "homogeneous"), ("complete", "matching"), (0, 3))


@pytest.mark.parametrize("task", [
    Task("navigation", 3, {"horizon": 9}, (0, 2), settings=Settings(hidden=(8, 4, 2), joint=True, log_std=0)),
    dataclasses.replace(TASK, settings=control_settings(bounds=(0.5, 2.0), differentiable=True)),
])  # fmt: skip
def test_json_round_trip(task: Task) -> None:
    assert type(task).from_dict(json.loads(json.dumps(task.to_dict())), Path("x")) == task


@pytest.mark.parametrize("saved", [None, [], {}, TASK.to_dict() | {"version": 1}, TASK.to_dict() | {"seeds": None}])
def test_other_files_are_refused(saved: object) -> None:
    with pytest.raises(InputError):
        Task.from_dict(saved, Path("x"))


def test_words_among_the_targets() -> None:
    task = Task("dispersion", 4, target=(0, 0.1, "seek:0.05:0.8"), design=("matching", "complete"), seeds=(2,))
    assert task.target == ("homogeneous", 0.1, "seek:0.05:0.8")
    names = ["matching-target-0.1", "complete-target-0.1", "homogeneous", "seek-0.05-0.8"]
    assert task.run_names() == [f"{name}-seed-2" for name in names]
    seek = task.groups(torch.device("cpu"))[-1].controller
    assert isinstance(seek, Seek)
    assert (seek.target, str(seek.design), seek.tau) == ((0.05, 0.8), "matching", task.settings.tau)


@pytest.mark.parametrize("changes", [
    {"target": ()}, {"target": -0.1}, {"target": "free"}, {"target": (0.1, 0.1)}, {"design": "x"}, {"design": (5,)},
    {"seeds": (0, 0)}, {"seeds": (-1,)}, {"seeds": 3}, {"agents": 0}, {"agents": "4"}, {"target": ("0.1",)},
    {"target": (True,)}, {"settings": {}}, {"target": "seek"}, {"target": "seek:0.2:0.1"}, {"target": "seek:0:1"},
    {"target": "seek:a:b"}, {"target": (0, "homogeneous")},
])  # fmt: skip
def test_tasks_that_make_no_sense(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        dataclasses.replace(TASK, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_make_worlds(name: str) -> None:
    found = PRESETS[name]
    world = parse_world(found.world, found.agents, found.settings.environments, **found.options)
    assert world.agents == found.agents
