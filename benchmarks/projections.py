"""How accurate and how fast is SND from random directions, and from when on does it pay?"""

from __future__ import annotations

import math
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, take_turns
from graphsnd import kernels
from graphsnd.behavior import Norm, Points, embed
from graphsnd.estimation.projections.lengths import projected_snd
from graphsnd.plots.team import example_team

DRAWS = 30
CHUNK = 1 << 22  # distances that cdist computes at a time
DIRECTIONS = (1, 2, 4, 8, 12, 24)


def teams(agents: int = 200, observations: int = 64) -> dict[str, Points]:
    """Clouds of several shapes, from the friendliest to a line."""
    generator = torch.Generator().manual_seed(0)
    demo = embed(example_team(agents, observations).behavior).values
    normal = torch.randn(observations, agents, 16, generator=generator)
    line = normal[..., :1] * torch.randn(observations, 1, 2, generator=generator)
    still = (normal[:1, :, :2] * torch.tensor([1.0, 0.2])).expand(observations, -1, -1)
    found = {
        "normal, 2 features": normal[..., :2],
        "on a line that changes, 2 features": line,
        "oblong, always the same, 2 features": still,
        "demo team, locations, 2 features": demo[..., :2],
        "normal, 3 features": normal[..., :3],
        "demo team, 4 features": demo,
        "normal, 8 features": normal[..., :8],
        "normal, 16 features": normal,
    }
    return {name: Points(values, Norm.EUCLIDEAN) for name, values in found.items()}


def accuracy(points: Points, directions: int, draws: int = DRAWS) -> dict[str, float]:
    """Root mean square relative error over draws, and what the certified bound says."""
    truth = float(kernels.pair_totals(points).mean()) / math.comb(points.agents, 2)
    drawn = [projected_snd(points, directions, seed=seed) for seed in range(draws)]
    errors = torch.tensor([float(one.value) for one in drawn], dtype=torch.float64) / truth - 1
    return {
        "directions": drawn[0].directions,
        "rmse": float(errors.square().mean().sqrt()),
        "bound": drawn[0].error_bound / truth,
    }


def speed(
    n: int,
    observations: int,
    features: int,
    choices: tuple[int, ...],
    device: torch.device,
    *,
    rounds: int,
    seconds: float,
    draws: int = DRAWS,
) -> dict[str, Any]:
    """Seconds of exact SND, of torch.cdist in chunks, and of directions, taking turns; normal team."""
    x = torch.randn(observations, n, features, generator=torch.Generator().manual_seed(0)).to(device)
    points = Points(x, Norm.EUCLIDEAN)
    rows = max(1, CHUNK // n**2)  # observations at a time
    # On the first observations only where all would take too long.
    part = x[: max(rows, round(min(1.0, 3e8 / (observations * n**2)) * observations))]

    def cdist() -> float:
        return sum(float(torch.cdist(some, some).sum()) for some in part.split(rows)) / 2

    contestants = [
        Contestant("exact", lambda: kernels.pair_totals(points)),
        Contestant("cdist", cdist, share=len(part) / observations),
        *(Contestant(f"{k}", lambda k=k: projected_snd(points, k)) for k in choices),  # type: ignore[misc]
    ]
    times = take_turns(contestants, Clock(device), rounds=rounds, seconds=seconds)
    by: dict[str, dict[str, Any]] = {f"{k}": accuracy(points, k, draws) | {"time": times[f"{k}"]} for k in choices}
    for row in by.values():
        for rival in ("exact", "cdist"):
            row[f"times_faster_than_{rival}"] = times[rival]["median_s"] / row["time"]["median_s"]
    rivals = {name: times[name] for name in ("exact", "cdist")}
    return {"n": n, "observations": observations, "features": features, "rivals": rivals, "by": by}
