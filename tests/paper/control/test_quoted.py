"""The table of paper/results/control/README.md, made again from the logs."""

from __future__ import annotations

import csv
from collections import defaultdict
from statistics import fmean, stdev

from paper.runner import RESULTS

CONTROL = RESULTS / "control"
FOLDERS = {
    "10": "n10",
    "10, 600 environments": "n10-full/*",
    "50, all observations": "n50-full/*",
    "50, 2,048 observations": "n50",
}


def read_cells(pattern: str) -> dict[tuple[str, str], list[list[dict[str, str]]]]:
    """Return the last 50 rows of every run, by arm and target."""
    runs: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for file in CONTROL.glob(f"{pattern}/metrics.csv"):
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            runs[row["arm"], row["target"], row["seed"]].append(row)
    cells = defaultdict(list)
    for (arm, target, _), rows in runs.items():
        cells[arm, target].append(rows[-50:])
    return cells


def test_the_table_is_that_of_the_logs() -> None:
    page = (CONTROL / "README.md").read_text(encoding="utf-8")
    lines = []
    for agents, pattern in FOLDERS.items():
        for (arm, target), runs in read_cells(pattern).items():
            rewards = [fmean(float(row["reward"]) for row in rows) for rows in runs]
            reward = f"{fmean(rewards):.3f} ± {stdev(rewards) / len(rewards) ** 0.5:.3f}"
            errors = "- | - | - | -"
            if target:
                goal = float(target)
                mean = [abs(fmean(float(row["audit"]) for row in rows) - goal) / goal for rows in runs]
                each, tracked = (
                    fmean(abs(float(row[name]) - goal) / goal for rows in runs for row in rows)
                    for name in ("audit", "applied")
                )
                errors = f"{target} | {fmean(mean):.2%} ({max(mean):.2%}) | {each:.2%} | {tracked:.2%}"
            lines.append(f"| {agents} | {arm} | {errors} | {reward} |")
    assert sorted(lines) == sorted(line for line in page.splitlines() if " ± " in line)
