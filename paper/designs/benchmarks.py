"""The committed benchmarks of designs, read for what a laptop cannot time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER, FILES = "designs", ("h200.json", "cpu-2-cores.json")
PAPER = "fixed bernoulli:0.1"


def read_benchmarks(results: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Time from policies to the number, of all pairs and of Bernoulli-0.1, on machines where that was measured.

    Args:
        results: The folder with committed results.

    Returns:
        A row for each machine, team and size; and which files were read.
    """
    rows, read = [], []
    for file in FILES:
        path = results / FOLDER / file
        if not path.is_file():
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        read.append(f"results/{FOLDER}/{file}")
        machine = found["hardware"].get("gpu") if found["device"].startswith("cuda") else found["hardware"]["cpu"]
        rows += [_row(machine, one) for one in found["designs"]]
    return rows, read


def _row(machine: str, one: dict[str, Any]) -> dict[str, Any]:
    graph = next(design for design in one["designs"] if design["name"] == PAPER)
    return {
        "machine": machine,
        "team": one["team"],
        "n": one["n"],
        "observations": one["observations"],
        "all_pairs_s": one["exact_time"]["median_s"],
        "graph_s": graph["time"]["median_s"],
    }
