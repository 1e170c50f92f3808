"""SND at a budget: errors and costs of the designs, time to a tolerance, sorting against pairs, coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.coverage import coverage
from benchmarks.designs import compare_designs, random_observations, random_team, to_tolerance
from benchmarks.projections import DIRECTIONS, accuracy, speed
from benchmarks.projections import teams as clouds
from graphsnd.teams import Team
from graphsnd.teams.files import OBSERVATIONS

NOTES = [
    "rmse: root mean squared relative error over draws, on one evaluation of the team; rmse_interval is for 95%.",
    "distances and evaluations: of one estimate, over all observations it uses.",
    "rmse_gain, fewer_distances, fewer_evaluations: against the paper's estimator, one Bernoulli graph with p = 0.1.",
    "matched: random agents at random observations that reach the paper's error with few evaluations and distances.",
    "time: from policies to the number, policy evaluation included; contestants take turns within a round.",
    "tolerance: seconds of three estimates with different seeds, sorted; a guaranteed 95% interval.",
    "coverage: repetitions in which the interval held the truth, with its standard error.",
]


@dataclass(frozen=True)
class Plan:
    """Sizes and patience of a run."""

    agents: tuple[int, ...]
    observations: int
    draws: int
    tolerance_agents: tuple[int, ...]
    tolerance_observations: int
    repetitions: int
    directions: tuple[tuple[int, int, int, tuple[int, ...]], ...]  # agents, observations, features, directions
    rounds: int
    seconds: float


SIZES = (
    (100, 4096, 2, (2, 8)),
    (1000, 640, 2, (2, 8)),
    (10_000, 64, 2, (1, 2, 4, 8)),
    (10_000, 64, 4, (4, 12)),
    (1000, 640, 8, (8, 16)),
)
DEFAULT = Plan((50, 100, 500), 2048, 60, (1000, 10_000, 100_000), 100_000, 1000, SIZES, 3, 2.0)
QUICK = Plan((20,), 64, 5, (50,), 500, 10, ((50, 64, 2, (2,)),), 2, 0.0)


def measure(
    plan: Plan,
    device: torch.device,
    *,
    seed: int = 0,
    teams: Sequence[Path] = (),
    step: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Run the benchmark.

    Args:
        plan: What to measure.
        device: Where.
        seed: Of teams, observations and draws.
        teams: Folders of trained teams, each with ``observations.safetensors`` beside the team.
        step: Called with the name of each part as it begins; there are :func:`parts` of them.
    """
    compared = []
    timing: dict[str, Any] = {"draws": plan.draws, "seed": seed, "rounds": plan.rounds, "seconds": plan.seconds}
    for n in plan.agents:
        step(f"designs, random team of {n:,}")
        team, inputs = random_team(n, seed, device), random_observations(plan.observations, seed + 1, device)
        compared.append(compare_designs(team, inputs, label="random", **timing))
    for folder in teams:
        step(f"designs, trained team {folder.name}")
        trained = Team.load(folder, device=device)
        inputs = load_file(folder / OBSERVATIONS)["observations"].to(device)
        compared.append(compare_designs(trained, inputs[: plan.observations], label="trained", **timing))
    tolerance = to_tolerance(
        plan.tolerance_agents, plan.tolerance_observations, device, rel_tol=0.01, seed=seed, step=step
    )
    projections = []
    for n, observations, features, choices in plan.directions:
        step(f"sorted projections, n = {n:,}, {features} features")
        patience: dict[str, Any] = {"rounds": plan.rounds, "seconds": plan.seconds, "draws": plan.draws}
        projections.append(speed(n, observations, features, choices, device, **patience))
    step("sorted projections, shapes of teams")
    shapes = {name: [accuracy(cloud, k, plan.draws) for k in DIRECTIONS] for name, cloud in clouds().items()}
    step(f"coverage, {plan.repetitions} repetitions")
    return {
        "format": 1,
        "suite": "designs",
        "device": device.type,
        "notes": NOTES,
        "designs": compared,
        "tolerance": tolerance,
        "projections": projections,
        "shapes": shapes,
        "coverage": coverage(plan.repetitions, seed=seed),
    }


def parts(plan: Plan, teams: Sequence[Path] = ()) -> int:
    """How often :func:`measure` calls its ``step``."""
    return len(plan.agents) + len(teams) + len(plan.tolerance_agents) + len(plan.directions) + 2
