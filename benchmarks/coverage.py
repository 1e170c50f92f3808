"""Do the intervals cover SND as often as they say, also when the data decide when to stop?

covered: share of repetitions in which the interval held the truth, with its standard error.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.timing import Options, Tables
from graphsnd.behavior import Deterministic
from graphsnd.designs import Agents, Matching, Ring
from graphsnd.estimation import measure as measure_team
from graphsnd.metric import snd

CONFIDENCE = 0.95


def measure(options: Options) -> dict[str, Any]:
    """Count the repetitions in which each kind of interval holds the truth."""
    repetitions = 10 if options.quick else 1000
    options.step(f"coverage, {repetitions} repetitions")
    return {"coverage": measure_coverage(repetitions, seed=options.seed)}


def measure_coverage(repetitions: int, *, seed: int) -> list[dict[str, Any]]:
    """Return the share of repetitions in which each kind of interval holds the truth.

    Episodes with a level of their own, agents in three roles. The first kinds are measured on fixed observations, the
    last over new episodes each time, where the truth is that of the distribution they come from.
    """
    rows = []
    team, _ = _draw_episodes(torch.Generator().manual_seed(seed))
    truth = float(snd(team))
    for design in (Matching(), Ring(2), Agents(4)):
        estimates = [measure_team(team, design=design, seed=seed + k) for k in range(repetitions)]
        rows.append(_row(str(design), "asymptotic", [e.asymptotic_interval for e in estimates], truth))
        rows.append(_row(str(design), "guaranteed", [e.interval for e in estimates], truth))
    for stopped in (Agents(4), Ring(2)):
        estimates = [measure_team(team, design=stopped, rel_tol=0.1, seed=seed + k) for k in range(repetitions)]
        rows.append(_row(str(stopped), "guaranteed, stopped at 10%", [e.interval for e in estimates], truth))
        rows.append(_row(str(stopped), "asymptotic, stopped at 10%", [e.asymptotic_interval for e in estimates], truth))
    rows.append(_measure_clustered(repetitions, seed))
    return rows


def _measure_clustered(repetitions: int, seed: int) -> dict[str, Any]:
    generator, design, intervals = torch.Generator().manual_seed(seed + 1), Ring(2), []
    for k in range(repetitions):
        team, episode = _draw_episodes(generator)
        interval = measure_team(team, design=design, clusters=episode, seed=seed + k).population_interval
        assert interval is not None
        intervals.append(interval)
    # Levels have mean 1, and the distances of an episode are its level times those of the roles.
    truth = float(snd(Deterministic(_role_actions())))
    return _row(str(design), "asymptotic, clustered by episode", intervals, truth)


def _role_actions(n: int = 24) -> torch.Tensor:
    """Return what agents in three roles do, plus what single agents add to their role."""
    roles = (torch.arange(n, dtype=torch.float64) % 3).view(1, n, 1)
    return roles + 0.3 * torch.linspace(-1, 1, n, dtype=torch.float64).view(1, n, 1)


def _draw_episodes(
    generator: torch.Generator, episodes: int = 40, steps: int = 12
) -> tuple[Deterministic, torch.Tensor]:
    level = 0.5 + torch.rand(episodes, generator=generator, dtype=torch.float64)
    index = torch.arange(episodes).repeat_interleave(steps)
    return Deterministic(level[index].view(-1, 1, 1) * _role_actions()), index


def _row(design: str, kind: str, intervals: list[tuple[float, float]], truth: float) -> dict[str, Any]:
    count = len(intervals)
    share = sum(low <= truth <= high for low, high in intervals) / count
    return {
        "design": design,
        "kind": kind,
        "confidence": CONFIDENCE,
        "repetitions": count,
        "covered": share,
        "covered_error": (share * (1 - share) / count) ** 0.5,
        "relative_half_width": sum(high - low for low, high in intervals) / count / 2 / truth,
    }


def tables(result: dict[str, Any]) -> Tables:
    """Return how often intervals held the truth."""
    columns = ("design", "kind", "covered", "covered_error", "relative_half_width")
    return {f"Coverage of {CONFIDENCE:.0%} intervals": (result["coverage"], columns)}
