"""``--engine hydra``: what ``graphsnd train`` and ``graphsnd control`` train, as groups of Hydra.

The groups are made of the presets themselves, so there are no files that could say something else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphsnd.cli.options import parse_device, plain
from graphsnd.errors import require

COMMON = {"out": "${hydra:runtime.output_dir}", "device": "auto", "checkpoint_every": 25, "loggers": []}


def register_groups(command: str) -> None:
    """Tell Hydra's store the configuration of a command, ``train`` or ``control``, and its groups."""
    from graphsnd.rl import CONTROL_PRESETS, PRESETS, ControlTask
    from graphsnd.rl.worlds.parse import BATCHED

    store = require("hydra.core.config_store", "hydra-core").ConfigStore.instance()
    defaults: list[Any] = [{"task": "navigation-small"}]
    tasks = {name: task.to_dict() for name, task in PRESETS.items()}
    if command == "control":
        defaults = [{"task": "dispersion"}, {"task/settings": "paper"}]
        blank = ControlTask(10, (0.1,)).to_dict()
        del blank["settings"]
        tasks = {
            world: blank | {"world": world} | ({} if world == blank["world"] else {"options": {}}) for world in BATCHED
        }
        for name, settings in CONTROL_PRESETS.items():
            store.store(group="task/settings", name=name, node=plain(dataclasses.asdict(settings)))
    for name, task in tasks.items():
        store.store(group="task", name=name, node=plain(task))
    store.store(name=command, node={"defaults": [*defaults, "_self_"], **COMMON})


def run_hydra(command: str, argv: Sequence[str]) -> None:
    """Train every configuration that Hydra composes from ``argv``."""
    from graphsnd.cli.training import run_task
    from graphsnd.integrations.hydra import run_jobs
    from graphsnd.rl import ControlTask, Task

    register_groups(command)
    base: Any = Task("navigation", None) if command == "train" else ControlTask(10, (0.1,))

    def job(config: Any) -> None:
        from omegaconf import OmegaConf

        said: Any = OmegaConf.to_container(config, resolve=True)
        task = base.with_config(said["task"], "the configuration")
        options = {"device": parse_device(said["device"]), "checkpoint_every": said["checkpoint_every"]}
        run_task(task, Path(said["out"]), force=False, loggers=tuple(said["loggers"]), **options)

    run_jobs(job, argv, program=f"graphsnd {command} --engine hydra", config_name=command)
