"""Do the 95% intervals cover SND as often as they say, for every design, also when the data decide when to stop?

Each row counts repetitions with different seeds on one team. `given` is the share of them that have the interval: an
asymptotic one is left out if nothing is large. `at_most` is the one-sided 99% upper bound on the coverage: a guaranteed
interval is wrong if this bound lies below 0.95, and an asymptotic one is too narrow if it lies below 0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from scipy.stats import beta
from torch import Tensor

from benchmarks.timing import Options
from graphsnd.behavior import Deterministic, Samples, Sliced
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import Estimate
from graphsnd.estimation import measure as measure_team
from graphsnd.metric import snd

CONFIDENCE = 0.95
AGENTS, OBSERVATIONS = 24, 384
DRAWN = ("bernoulli:0.1", "uniform:5", "uniform:100", "regular:4", "regular:8")
REDRAWN = ("agents:4", "ring:2", "matching")
LAYOUTS = [(24, "environments first"), (24, "time first"), (8, "environments first"), (8, "time first")]
Interval = tuple[float, float]


def measure(options: Options) -> dict[str, Any]:
    """Count the repetitions in which each kind of interval holds the truth."""
    repetitions, draws = (10, 5) if options.quick else (2000, 1000)
    rows = []
    for name, actions in make_teams(options.seed).items():
        options.step(f"coverage of {name}, {repetitions} repetitions")
        rows += measure_coverage(name, actions, repetitions)
    for environments, layout in LAYOUTS:
        options.step(f"coverage of {environments} environments, {layout}, {repetitions} repetitions")
        rows += [measure_layout(environments, layout, effect, repetitions, options.seed) for effect in (0.5, 0.0)]
    options.step(f"coverage of identical samplers, {draws} repetitions")
    rows += [measure_identical(dimensions, draws, options.seed) for dimensions in (2, 32, 384)]
    return {"coverage": rows}


def make_teams(seed: int) -> dict[str, Tensor]:
    """Return actions ``[observations, agents, 2]`` of teams; some differ only in few pairs or observations."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(OBSERVATIONS, AGENTS, 2, generator=generator, dtype=torch.float64)
    level = 0.5 + torch.rand(OBSERVATIONS, 1, 1, generator=generator, dtype=torch.float64)
    roles = (torch.arange(AGENTS) % 3).double().view(1, -1, 1).expand(1, -1, 2)
    specialist, camps, rare = (torch.zeros(1, AGENTS, 2, dtype=torch.float64) for _ in range(3))
    specialist[:, 0], camps[:, :3] = 10, 10
    rare = 0.001 * noise
    rare[:: OBSERVATIONS // 9] *= 3000  # 10 of 384
    pareto = (1 - torch.rand(1, AGENTS, 1, generator=generator, dtype=torch.float64)) ** (-1 / 1.5)
    return {
        "cloud": noise,
        "roles": level * (roles + 0.1 * noise),
        "specialist": specialist + 0.1 * noise,
        "rare": rare,
        "pareto": pareto * torch.nn.functional.normalize(noise[:1], dim=-1) + 0.1 * noise,
        "unequal camps": camps + 0.1 * noise,
    }


def measure_coverage(name: str, actions: Tensor, repetitions: int) -> list[dict[str, Any]]:
    """Return a row for every design and stopping rule; for policies too, whose distances have no known bound."""
    behavior, truth = Deterministic(actions), float(snd(Deterministic(actions)))
    # A policy observes only the number of the observation.
    index = torch.arange(len(actions), dtype=torch.float64).unsqueeze(1)
    policies = [lambda seen, own=own: own[seen[:, 0].long()] for own in actions.unbind(1)]
    rows = []

    def add(stop: str, kind: str, team: Any, **options: Any) -> list[Estimate]:
        tried = (_try(team, options | {"seed": seed}) for seed in range(repetitions))
        drawn = [each for each in tried if each is not None]
        about = {"team": name, "design": options["design"], "stop": stop, "kind": kind}
        rows.append({**about, **_count([each.interval for each in drawn], truth)})
        return drawn

    for design in (*DRAWN, *REDRAWN):
        drawn = add("fixed size", "guaranteed", behavior, design=design)
        about = {"team": name, "design": design, "stop": "fixed size", "kind": "asymptotic"}
        rows.append({**about, **_count([each.asymptotic_interval for each in drawn], truth)})
    for design in REDRAWN:
        add("20%", "guaranteed", behavior, design=design, rel_tol=0.2)
        add("fixed size", "asymptotic", policies, observations=index, design=design)
        add("10%", "asymptotic", policies, observations=index, design=design, rel_tol=0.1)
    return rows


def measure_layout(environments: int, layout: str, effect: float, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often the interval over observations covers, where environments have levels of their own."""
    generator, intervals = torch.Generator().manual_seed(seed + environments), []
    for _ in range(repetitions):
        levels = 5 + effect * torch.randn(environments, 1, generator=generator, dtype=torch.float64)
        distances = levels + torch.randn(environments, 50, generator=generator, dtype=torch.float64)
        distances = distances.T if layout == "time first" else distances
        actions = torch.stack([torch.zeros_like(distances), distances], dim=-1).unsqueeze(-1)
        intervals.append(measure_team(Deterministic(actions)).population_interval)
    about = {"team": f"{environments} environments, effect {effect}", "design": layout}
    return {**about, "stop": "fixed size", "kind": "over observations", **_count(intervals, 5.0)}


def measure_identical(dimensions: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often the interval over observations covers 0 for agents that draw from one distribution."""
    generator, intervals = torch.Generator().manual_seed(seed + dimensions), []
    for _ in range(repetitions):
        samples = torch.randn(64, 4, 8, dimensions, generator=generator)
        intervals.append(measure_team(Samples(samples), distance=Sliced(debias=True)).population_interval)
    about = {"team": f"identical, {dimensions} dimensions", "design": "complete", "stop": "fixed size"}
    return {**about, "kind": "debiased, over observations", **_count(intervals, 0.0)}


def _try(team: Any, options: dict[str, Any]) -> Estimate | None:
    try:
        return measure_team(team, **options)
    except EmptyDrawError:  # an empty draw has no interval
        return None


def _count(found: Sequence[Interval | None], truth: float) -> dict[str, Any]:
    rounding = 1e-12 * abs(truth)  # rounding of the exact interval over all pairs
    intervals = [each for each in found if each is not None]
    about = {"confidence": CONFIDENCE, "repetitions": len(found), "given": len(intervals) / len(found)}
    if not intervals:
        return about | dict.fromkeys(("covered", "at_most", "half_width"))
    count, hits = len(intervals), sum(low - rounding <= truth <= high + rounding for low, high in intervals)
    return {
        **about,
        "covered": hits / count,
        "at_most": 1.0 if hits == count else float(beta.ppf(0.99, hits + 1, count - hits)),
        "half_width": sum(high - low for low, high in intervals) / count / 2,
    }
