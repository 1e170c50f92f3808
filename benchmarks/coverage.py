"""Do the intervals cover as often as they say, also when the data decide when to stop?"""

from __future__ import annotations

from typing import Any

import torch

from graphsnd.behavior import Deterministic
from graphsnd.estimation import AgentSubset, Estimate, FreshCirculant, FreshMatching, ObservationSubset, estimate
from graphsnd.metric import snd

CONFIDENCE = 0.95


def coverage(repetitions: int, *, seed: int) -> list[dict[str, Any]]:
    """Share of repetitions in which each kind of interval holds the truth.

    Episodes with a level of their own, agents in three roles; the first kinds on fixed observations, the last over
    fresh episodes every time, where the truth is that of the distribution they come from.
    """
    rows = []
    fixed = _episodes(40, 12, 24, torch.Generator().manual_seed(seed))
    truth = float(snd(fixed[0]))
    designs = [FreshMatching(), FreshCirculant(2), AgentSubset(4), ObservationSubset(120, AgentSubset(4))]
    for design in designs:
        found = [estimate(fixed[0], design=design, seed=seed + k) for k in range(repetitions)]
        rows.append(_row(design.name, "asymptotic", [e.asymptotic_interval for e in found], truth))
        rows.append(_row(design.name, "guaranteed", [e.interval for e in found], truth))
    for stopped in (AgentSubset(4), FreshCirculant(2)):
        found = [estimate(fixed[0], design=stopped, rel_tol=0.1, seed=seed + k) for k in range(repetitions)]
        rows.append(_row(stopped.name, "guaranteed, stopped at 10%", [e.interval for e in found], truth))
        rows.append(_row(stopped.name, "asymptotic, stopped at 10%", [e.asymptotic_interval for e in found], truth))
    rows.append(_clustered(repetitions, seed))
    return rows


def _clustered(repetitions: int, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed + 1)
    # Levels have mean 1, and the distances of an episode are its level times those of the roles.
    population = float(snd(_roles(24)))
    intervals = []
    for k in range(repetitions):
        team, episode = _episodes(40, 12, 24, generator)
        found: Estimate = estimate(team, design=FreshCirculant(2), clusters=episode, seed=seed + k)
        assert found.population_interval is not None
        intervals.append(found.population_interval)
    return _row(FreshCirculant(2).name, "asymptotic, clustered by episode", intervals, population)


def _roles(n: int) -> Deterministic:
    return Deterministic((torch.arange(n, dtype=torch.float64) % 3).view(1, n, 1) + _own(n))


def _own(n: int) -> torch.Tensor:
    """What single agents add to their role."""
    return 0.3 * torch.linspace(-1, 1, n, dtype=torch.float64).view(1, n, 1)


def _episodes(episodes: int, steps: int, n: int, generator: torch.Generator) -> tuple[Deterministic, torch.Tensor]:
    level = 0.5 + torch.rand(episodes, generator=generator, dtype=torch.float64)
    index = torch.arange(episodes).repeat_interleave(steps)
    roles = _roles(n).actions
    return Deterministic(level[index].view(-1, 1, 1) * roles), index


def _row(design: str, kind: str, intervals: list[tuple[float, float]], truth: float) -> dict[str, Any]:
    hits = sum(low <= truth <= high for low, high in intervals)
    width = sum(high - low for low, high in intervals) / len(intervals) / 2 / truth
    share = hits / len(intervals)
    return {
        "design": design,
        "kind": kind,
        "confidence": CONFIDENCE,
        "repetitions": len(intervals),
        "covered": share,
        "covered_error": (share * (1 - share) / len(intervals)) ** 0.5,
        "relative_half_width": width,
    }
