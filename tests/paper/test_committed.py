"""The committed data give the committed numbers: what is computed from a run did not change since it was made."""

from __future__ import annotations

import importlib
import json
import re

import pytest

from paper.experiment import Scale
from paper.registry import find
from paper.rows import decode
from paper.store import RESULTS, read_results
from tests.paper.committed import assert_same_numbers

# Experiments with a function from their data to their numbers alone.
NAMES = ("recovery", "unbiasedness", "concentration", "training", "timing", "construction", "mpe", "designs")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_numbers_of_committed_data(name: str, scale: Scale) -> None:
    committed = read_results(RESULTS, name)[scale]
    numbers = importlib.import_module(f"paper.{name}").summarise(decode(find(name).data, committed.data))
    assert_same_numbers(numbers, committed.numbers)


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_committed_data(name: str) -> None:
    committed = read_results(RESULTS, name)[Scale.PAPER]
    experiment = find(name)
    experiment.figure(decode(experiment.data, committed.data)).canvas.draw()


# Made before commits were checked; each to be made again. This list only ever gets shorter.
UNVERIFIED = """
paper/results/control/n10/about.json
paper/results/control/n10/all-observations/about.json
paper/results/control/n50/target-0.12-seed-0/about.json
paper/results/control/n50/target-0.12-seeds-1-2/about.json
paper/results/control/n50/targets-0.14-0.15/about.json
paper/results/control/n50/targets-0.14-0.15-agents-4/about.json
paper/results/designs/cpu-2-cores.json
paper/results/designs/h200.json
paper/results/timing/gpu-first.json
paper/results/timing/gpu.json
paper/results/training/variants/about.json
"""


def test_every_other_result_has_a_commit_that_was_checked() -> None:
    root, unverified, partly = RESULTS.parents[1], set(), set()
    for path in (*RESULTS.rglob("*.json"), *(root / "benchmarks" / "results").rglob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        about = content.get("provenance", content) if isinstance(content, dict) else {}
        if "hardware" not in about:
            continue  # settings, actions, published numbers
        name = path.relative_to(root).as_posix()
        if about["dirty"] is not False or not re.fullmatch("[0-9a-f]{40}", str(about["commit"])) or "tree" not in about:
            unverified.add(name)
        else:
            assert {"command", "date", "versions"} <= about.keys(), name
        partly |= {name for commit in about.get("cells", []) if not re.fullmatch("[0-9a-f]{40}", commit)}
    assert unverified <= set(UNVERIFIED.split())
    assert partly <= unverified
