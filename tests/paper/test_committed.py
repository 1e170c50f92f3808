"""The committed data give the committed numbers: what is computed from a run did not change since it was made."""

from __future__ import annotations

import importlib

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
    # The last digits of sums differ between processors.
    assert_same_numbers(numbers, committed.numbers, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_committed_data(name: str) -> None:
    committed = read_results(RESULTS, name)[Scale.PAPER]
    experiment = find(name)
    experiment.figure(decode(experiment.data, committed.data)).canvas.draw()
