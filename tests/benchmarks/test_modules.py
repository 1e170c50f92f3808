from __future__ import annotations

import pytest
import torch

from benchmarks import modules
from benchmarks.timing import Options


def test_modules_are_timed_against_their_calls() -> None:
    (row,) = modules.measure(Options(torch.device("cpu"), quick=True))["modules"]
    times = row["contestants"]
    assert row["measured_over_calls"] == pytest.approx(times["measured"]["median_s"] / times["calls"]["median_s"])
    assert set(times) == {"calls", "measured", "first"}
    assert torch.is_grad_enabled()
