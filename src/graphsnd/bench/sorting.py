"""All pairs along a few directions, against all pairs."""

from __future__ import annotations

from typing import Any

import torch

from graphsnd import kernels
from graphsnd.behavior import Norm, Points
from graphsnd.bench.timing import Clock, Contestant, take_turns
from graphsnd.estimation.projections import projected_snd

DIRECTIONS = (1, 2, 4, 8)
SEEDS = 32  # over which the error is taken


def by_projections(
    n: int, observations: int, device: torch.device, *, seed: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Error and time of sorted projections, two features, beside the fused exact kernel and chunked cdist."""
    generator = torch.Generator().manual_seed(seed)
    # Points in clusters that lie differently at every observation, as policies of a few roles do.
    roles = torch.randn(observations, 4, 2, generator=generator)
    values = roles[:, torch.arange(n) % 4] + 0.3 * torch.randn(observations, n, 2, generator=generator)
    points = Points(values.to(device), Norm.EUCLIDEAN)
    pairs = n * (n - 1) / 2
    truth = float(kernels.pair_totals(points).mean()) / pairs
    rows: dict[str, dict[str, Any]] = {}
    for count in DIRECTIONS:
        found = [float(projected_snd(points, count, seed=seed + k).value) / truth - 1 for k in range(SEEDS)]
        rows[f"{count} directions"] = {"rmse": float(torch.tensor(found).double().square().mean().sqrt())}
    calls = [
        Contestant("exact", lambda: kernels.pair_totals(points), pairs * observations),
        Contestant("cdist", lambda: _cdist(points), pairs * observations),
        *(Contestant(f"{k} directions", lambda k=k: projected_snd(points, k, seed=0)) for k in DIRECTIONS),  # type: ignore[misc]
    ]
    times = take_turns(calls, Clock(device), rounds=rounds, seconds=seconds)
    for name, row in rows.items():
        row |= {"time": times[name]}
        row |= {f"times_faster_than_{rival}": times[rival]["median_s"] / times[name]["median_s"] for rival in RIVALS}
    return {
        "n": n,
        "observations": observations,
        "features": 2,
        "rivals": {r: times[r] for r in RIVALS},
        **{"by": rows},
    }


RIVALS = ("exact", "cdist")


def _cdist(points: Points) -> torch.Tensor:
    """What people write: one observation at a time, so that the matrix fits."""
    sums = [torch.cdist(x, x).sum(dtype=torch.float64) / 2 for x in points.values]
    return torch.stack(sums)
