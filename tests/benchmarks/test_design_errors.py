from __future__ import annotations

import torch

import graphsnd as gs
from benchmarks.design_errors import SamplingPlan, measure_errors


def test_draws_without_an_edge_are_counted() -> None:
    seeded = torch.Generator().manual_seed(0)
    loc = torch.randn(4, 2, generator=seeded) + 0.7 * torch.randn(10, 4, 2, generator=seeded)
    behavior = gs.Gaussian(loc, torch.ones(2))
    errors = measure_errors(
        behavior, SamplingPlan(gs.designs.Bernoulli(0.1)), float(gs.snd(behavior)), draws=40, seed=0
    )
    assert 0 < errors.empty_draws < 40
