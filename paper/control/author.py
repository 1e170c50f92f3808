"""The author's two grids of fifty agents, 18 runs each, from tables of the public repository (``results/author``).

The second grid repeats the first with an audit in every iteration. It has the seconds of an iteration of both arms.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paper.control.logs import group_by
from paper.control.study import REFERENCE, Rewarded, RunSummary, standard_error
from paper.experiment import Number
from paper.runner import RESULTS

ARMS = {"bern": "bernoulli:0.1", "full": REFERENCE}
GRIDS = ("n50_bern_vs_full_per_cell.csv", "n50_posthoc_full_snd_per_cell.csv")
# The values that Tables 1, 2 and 7 print: our name of the number, the author's grid, and its column.
PRINTED = {
    "applied": (0, "applied_late_mean"), "tracking_error": (0, "tracking_err_rel"),
    "audit": (1, "posthoc_full_snd_late_mean"), "audit_minus_applied": (1, "posthoc_minus_applied"),
}  # fmt: skip


@dataclass(frozen=True)
class AuthorRun(Rewarded):
    """One run."""

    columns: dict[str, str]


def read_grids() -> list[list[AuthorRun]]:
    """Return the runs of both grids.

    Seeds of different grids get different numbers, because equal seeds share only the networks at the start.

    Example:
        >>> [(len(grid), grid[-1].seed) for grid in read_grids()]
        [(18, 12), (18, 22)]
    """
    texts = [(RESULTS / "author" / name).read_text(encoding="utf-8") for name in GRIDS]
    return [[_read_run(row, 10 * k) for row in csv.DictReader(text.splitlines())] for k, text in enumerate(texts, 1)]


def _read_run(row: dict[str, str], first: int) -> AuthorRun:
    seed, target, reward = int(row["seed"]), float(row["snd_des"]), float(row["reward_late_mean"])
    return AuthorRun(ARMS[row["estimator"]], target, first + seed, reward, row)


def compare_values(runs: Sequence[RunSummary], grids: Sequence[Sequence[AuthorRun]]) -> dict[str, Number]:
    """Return the largest difference over six cells for each printed quantity, in standard errors of three seeds."""
    numbers = {}
    for name, (place, column) in PRINTED.items():
        z = []
        for cell, mine in group_by(runs, lambda run: (run.arm, run.target)).items():
            ours = [getattr(run, name) for run in mine]
            theirs = [float(run.columns[column]) for run in grids[place] if (run.arm, run.target) == cell]
            error = math.hypot(standard_error(ours) or 0.0, standard_error(theirs) or 0.0)
            z.append(abs(statistics.fmean(ours) - statistics.fmean(theirs)) / error)
        numbers[f"{name}_largest_z"] = Number.range(z)
    return numbers


def time_iterations(grid: Sequence[AuthorRun]) -> dict[str, Number]:
    """Return the seconds of an iteration with full SND, and the share of it that Bernoulli-0.1 saves."""
    times = [(run.arm, float(run.columns["iter_time_ms_median"]) / 1000) for run in grid]
    sampled, full = ([seconds for name, seconds in times if name == arm] for arm in ARMS.values())
    saved = 1 - statistics.fmean(sampled) / statistics.fmean(full)
    return {
        "author_iteration_seconds": Number.range(full, "runs", pick=statistics.median, unit="s"),
        "saved_share": Number(saved, kind="of the mean time, nine runs each"),
    }
