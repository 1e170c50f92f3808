"""Logs of control studies that never ran, with numbers that can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphsnd.rl import Task
from graphsnd.rl.log import CsvLog, Row, Run


def row(iteration: int, run: Run, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "iteration": iteration, "arm": run.arm, "target": run.target, "seed": run.seed, "reward": 0.3,
        "estimate": 0.2, "scale": 0.5, "applied": 0.1, "audit": 0.1, "tracking_error": 0.0, "audit_error": 0.0,
        "saturated": 0, "zero": 0, "empty": 0, "invalid": 0, "value_loss": 1.0, "overflow": 0.0,
        "observations": 2048, "rollout_seconds": 6.0, "policy_seconds": 3.0, "distance_seconds": 1.5,
        "update_seconds": 12.0, "audit_seconds": 0.6,
    }  # fmt: skip
    return Row(**values | changes)


def noisy(run: Run, iterations: int, *, level: float = 1.0, noise: float = 0.01, **fixed: Any) -> list[Row]:
    """Applied signal and audit around the target, reward around 0.3, each with its own noise."""
    rng = np.random.default_rng([run.seed, sum(map(ord, run.arm)), round(1000 * (run.target or 0))])
    target = run.target or 0.5
    return [
        row(
            i, run, applied=target * (1 + noise * rng.normal()), audit=level * target * (1 + noise * rng.normal()),
            reward=0.3 + 0.02 * rng.normal(), **fixed,
        )
        for i in range(1, iterations + 1)
    ]  # fmt: skip


def write_training(folder: Path, rows: Iterable[Row]) -> None:
    """``metrics.csv`` as training writes it."""
    folder.mkdir(parents=True)
    log = CsvLog(folder)
    log.write(list(rows))
    log.close()


def write_study(
    root: Path,
    stacks: Mapping[str, Task],
    *,
    left_out: Sequence[Run] = (),
    make: Callable[[Run], list[Row]],
) -> None:
    """A folder for each stack, as the committed studies have them."""
    for name, task in stacks.items():
        if rows := [row for run in task.runs() if run not in left_out for row in make(run)]:
            write_training(root / name, rows)
