"""What is written down about every iteration of every run."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphsnd.training.log import METRICS, cells, read_table


@dataclass(frozen=True)
class ControlRow:
    """One iteration of one run. None where there is no target."""

    iteration: int  # from 1
    arm: str
    target: float | None
    seed: int
    reward: float  # of a step, mean over agents, environments and steps
    estimate: float  # the controller's, after the last step
    scale: float  # mean over the steps
    applied: float  # estimate times scale: the paper's signal, see graphsnd.control.tracking_error
    audit: float  # SND over all pairs of the policies that acted, before they learnt from it
    tracking_error: float | None  # of applied, relative
    audit_error: float | None  # of the audit, relative
    saturated: int  # steps whose scale was cut by the bounds
    zero: int  # steps that measured no diversity
    empty: int  # steps whose draw had no pairs
    invalid: int  # steps whose measurement was not finite
    value_loss: float
    overflow: float  # mean length by which the farthest mean of a frame left the box
    observations: int  # that each estimate looked at
    rollout_seconds: float  # of all stacked runs together
    policy_seconds: float  # of this arm's runs together: deviations evaluated for the estimates
    distance_seconds: float  # of this arm's runs together: drawing pairs and adding up their distances
    update_seconds: float  # of all runs together: the rest of learning
    audit_seconds: float  # of all runs together


COLUMNS = [field.name for field in dataclasses.fields(ControlRow)]


class ControlLog:
    """``metrics.csv``, flushed after every iteration.

    Args:
        folder: Where it is.
        after: Keep the rows up to this iteration, as when training resumes; 0 begins anew.
    """

    def __init__(self, folder: Path, *, after: int = 0) -> None:
        path = folder / METRICS
        kept = [row for row in read_control_rows(folder) if row.iteration <= after] if after and path.exists() else []
        self.file = path.open("w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(COLUMNS)
        self.write(kept)

    def write(self, rows: Sequence[ControlRow]) -> None:
        """Add rows."""
        for row in rows:
            self.writer.writerow(cells(row))
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def run_folder(row: ControlRow) -> str:
    """A name for the files of a row's run; no colons, which some systems do not allow there.

    Example:
        >>> from types import SimpleNamespace as Row
        >>> run_folder(Row(arm="bernoulli:0.1", target=0.12, seed=0)), run_folder(Row(arm="full", target=None, seed=1))
        ('bernoulli-0.1-target-0.12-seed-0', 'full-seed-1')
    """
    target = "" if row.target is None else f"-target-{row.target:g}"
    return f"{row.arm.replace(':', '-')}{target}-seed-{row.seed}"


def read_control_rows(folder: Path) -> list[ControlRow]:
    """The rows of a folder's ``metrics.csv``; a last line that was cut off is left out.

    Raises:
        InputError: When there is no such file, or it is another one.
    """
    return read_table(folder, ControlRow)
