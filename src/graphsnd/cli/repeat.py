"""What a training should say about itself, so that somebody else can repeat it."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphsnd.training import Task


def write_origin(task: Task, out: Path, *, device: str, seconds: float) -> None:
    """Write machine, versions, commit and command to ``about.json``."""
    from graphsnd.report import origin

    about = origin(command(task)) | {"seeds": list(task.seeds), "device": device, "took_s": round(seconds, 1)}
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def command(task: Task) -> str:
    """A command that repeats a task, every setting that is not the default written out.

    Example:
        >>> from graphsnd.training import Settings, Task
        >>> command(Task("navigation", 4, {"collisions": False}, (0, 1), Settings(iterations=9)))
        'graphsnd train navigation --agents 4 --seeds 0,1 --set iterations=9 --set world.collisions=false'
    """
    from graphsnd.training import Settings

    words = ["graphsnd", "train", task.world, *([] if task.agents is None else ["--agents", str(task.agents)])]
    words += ["--seeds", ",".join(str(seed) for seed in task.seeds)]
    defaults = dataclasses.asdict(Settings())
    changed = {name: value for name, value in dataclasses.asdict(task.settings).items() if value != defaults[name]}
    options = {f"world.{name}": value for name, value in task.options.items()}
    for name, value in {**changed, **options}.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
