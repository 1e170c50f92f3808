"""Read tasks from files: committed results have format version 1, which trainings no longer write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphsnd.rl import Settings, Task

RENAMED = {"through": "differentiable"}


def read_task(saved: dict[str, Any]) -> Task:
    """Return the task that an ``about.json`` describes, in format version 1 or in the present one.

    Version 1 had two kinds of files: ``graphsnd-training``, and ``graphsnd-control`` with ``targets`` and ``designs``.
    Its setting ``through`` is ``differentiable`` now.

    Args:
        saved: The entry ``task`` of the file.
    """
    if saved.get("version") != 1:
        return Task.from_dict(saved, Path("about.json"))
    arms = {"target": saved["targets"], "design": saved["designs"]} if saved["format"] == "graphsnd-control" else {}
    # The first files of controlled runs lack the setting bfloat16, because it did not exist.
    given = {RENAMED.get(name, name): value for name, value in saved["settings"].items()}
    settings = Settings(**({"bfloat16": False} if arms else {}) | given)
    return Task(saved["world"], saved["agents"], saved["options"], saved["seeds"], **arms, settings=settings)
