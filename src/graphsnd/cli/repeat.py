"""What a training should say about itself, so that somebody else can repeat it."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphsnd.training import Task
    from graphsnd.training.dico import ControlTask


def write_origin(task: Task | ControlTask, out: Path, *, device: str, seconds: float) -> None:
    """Write machine, versions, commit, command and all settings to ``about.json``."""
    from graphsnd.plots import collect_provenance

    about = {"seeds": list(task.seeds), "device": device, "took_s": round(seconds, 1), "task": task.to_dict()}
    text = json.dumps(collect_provenance(command(task)) | about, indent=1)
    (out / "about.json").write_text(text + "\n", encoding="utf-8")


def command(task: Task | ControlTask) -> str:
    """A command that repeats a task, every setting that is not the default written out, and its world's options.

    Example:
        >>> from graphsnd.training import Settings, Task
        >>> command(Task("navigation", 4, {"collisions": False}, (0, 1), Settings(iterations=9)))
        'graphsnd train navigation --preset none --agents 4 --seeds 0,1 --set iterations=9 --set world.collisions=false'
        >>> from graphsnd.training.dico import ControlTask
        >>> command(ControlTask(4, (0.1, "unconstrained"), ("complete", "matching"), options={"food_radius": 0.1}))
        'graphsnd control dispersion --agents 4 --targets 0.1,unconstrained --estimators complete,matching --seeds 0 \
--set world.food_radius=0.1'
    """
    from graphsnd.training import PRESETS
    from graphsnd.training.dico import ControlTask
    from graphsnd.training.presets import NO_PRESET

    size = [] if task.agents is None else ["--agents", str(task.agents)]
    if isinstance(task, ControlTask):
        words = ["graphsnd", "control", task.world, *size]
        words += ["--targets", _commas(task.targets), "--estimators", _commas(task.estimators)]
    else:
        # A preset of the world's name would put in what this task leaves at the default.
        words = ["graphsnd", "train", task.world, *(["--preset", NO_PRESET] if task.world in PRESETS else []), *size]
    words += ["--seeds", _commas(task.seeds)]
    for name, value in {**_changed(task.settings), **_options(task.options)}.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _commas(values: tuple[Any, ...]) -> str:
    return ",".join(str(value) for value in values)


def _changed(settings: Any) -> dict[str, Any]:
    """Settings that are not the default."""
    defaults = dataclasses.asdict(type(settings)())
    return {name: value for name, value in dataclasses.asdict(settings).items() if value != defaults[name]}


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {f"world.{name}": value for name, value in options.items()}
