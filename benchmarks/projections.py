"""How accurate and how fast is SND from random directions, and from when on does it pay?

rmse: root mean square relative error of SND over draws; bound: what the certified bound says.

projections: normal teams, contestants take turns. shapes: accuracy for clouds of several shapes, not timed.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from benchmarks.speed import CDIST_CALL, cdist
from benchmarks.timing import Clock, Contestant, Options, Tables, take_turns
from graphsnd import kernels
from graphsnd.behavior import Norm, Points, embed
from graphsnd.estimation.projections import projected_snd
from graphsnd.plots.team import example_team

RIVALS = ("exact", "cdist")
DIRECTIONS = (1, 2, 4, 8, 12, 24)


SIZES = (  # agents, observations, features, directions
    (100, 4096, 2, (2, 8)),
    (1000, 640, 2, (2, 8)),
    (10_000, 64, 2, (1, 2, 4, 8)),
    (10_000, 64, 4, (4, 12)),
    (1000, 640, 8, (8, 16)),
)


def measure(options: Options) -> dict[str, Any]:
    """Time and judge random directions on normal teams, and judge them on clouds of several shapes."""
    draws, rows = 5 if options.quick else 60, []
    for n, observations, features, choices in ((50, 64, 2, (2,)),) if options.quick else SIZES:
        options.step(f"sorted projections, n = {n:,}, {features} features")
        rows += time_directions(n, observations, features, choices, options, draws=draws)
    options.step("sorted projections, shapes of teams")
    shapes = {name: [measure_errors(cloud, k, draws) for k in DIRECTIONS] for name, cloud in example_clouds().items()}
    return {"projections": rows, "shapes": shapes}


def example_clouds(agents: int = 200, observations: int = 64) -> dict[str, Points]:
    """Return clouds of several shapes, from the easiest to a line."""
    generator = torch.Generator().manual_seed(0)
    demo = embed(example_team(agents, observations).behavior).values
    normal = torch.randn(observations, agents, 16, generator=generator)
    line = normal[..., :1] * torch.randn(observations, 1, 2, generator=generator)
    still = (normal[:1, :, :2] * torch.tensor([1.0, 0.2])).expand(observations, -1, -1)
    clouds = {
        "normal, 2 features": normal[..., :2],
        "on a line that changes, 2 features": line,
        "oblong, always the same, 2 features": still,
        "demo team, locations, 2 features": demo[..., :2],
        "normal, 3 features": normal[..., :3],
        "demo team, 4 features": demo,
        "normal, 8 features": normal[..., :8],
        "normal, 16 features": normal,
    }
    return {name: Points(values, Norm.EUCLIDEAN) for name, values in clouds.items()}


def measure_errors(points: Points, directions: int, draws: int) -> dict[str, float]:
    """Return root mean square relative error over draws, and what the certified bound says."""
    truth = float(kernels.pair_totals(points).mean()) / math.comb(points.agents, 2)
    drawn = [projected_snd(points, directions, seed=seed) for seed in range(draws)]
    errors = torch.tensor([float(one.value) for one in drawn], dtype=torch.float64) / truth - 1
    return {
        "directions": drawn[0].directions,
        "rmse": float(errors.square().mean().sqrt()),
        "bound": drawn[0].error_bound / truth,
    }


def time_directions(
    n: int, observations: int, features: int, choices: tuple[int, ...], options: Options, *, draws: int
) -> list[dict[str, Any]]:
    """Time directions on a normal team, next to exact SND and torch.cdist in chunks."""
    x = torch.randn(observations, n, features, generator=torch.Generator().manual_seed(0)).to(options.device)
    points = Points(x, Norm.EUCLIDEAN)
    contestants = [
        Contestant("exact", lambda: kernels.pair_totals(points)),
        cdist(points, Clock(options.device), CDIST_CALL),
        *(Contestant(f"{k}", lambda k=k: projected_snd(points, k)) for k in choices),  # type: ignore[misc]
    ]
    times = take_turns(contestants, Clock(options.device), **options.patience)
    rows = []
    for k in choices:
        time = times[f"{k}"]
        faster = {f"times_faster_than_{rival}": times[rival]["median_s"] / time["median_s"] for rival in RIVALS}
        size = {"n": n, "observations": observations, "features": features}
        rows.append(size | measure_errors(points, k, draws) | {"time": time} | faster)
    return rows


def tables(result: dict[str, Any]) -> Tables:
    """Return errors and times of directions against pairs."""
    size, gains = ("n", "observations", "features"), ("times_faster_than_exact", "times_faster_than_cdist")
    columns = (*size, "directions", "rmse", "time", *gains)
    return {"All pairs by sorted projections, normal teams": (result["projections"], columns)}
