"""Do the 95% intervals cover SND as often as they say, for every design, also when the data decide when to stop?

Each row counts repetitions with other seeds on one team. `at_most` is the one-sided 99% upper bound on the coverage: a
guaranteed interval is wrong where it lies below 0.95, an asymptotic one is too narrow where it lies below 0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Options, Tables
from graphsnd.behavior import Deterministic, Samples, Sliced
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import Estimate
from graphsnd.estimation import measure as measure_team
from graphsnd.metric import snd

CONFIDENCE = 0.95
AGENTS, OBSERVATIONS = 24, 384
DRAWN = ("bernoulli:0.1", "uniform:30", "regular:4")
REDRAWN = ("agents:4", "ring:2", "matching")
Interval = tuple[float, float]


def measure(options: Options) -> dict[str, Any]:
    """Count the repetitions in which each kind of interval holds the truth."""
    repetitions, draws = (10, 5) if options.quick else (2000, 1000)
    rows = []
    for name, actions in make_teams(options.seed).items():
        options.step(f"coverage of {name}, {repetitions} repetitions")
        rows += measure_coverage(name, actions, repetitions)
    options.step(f"coverage of identical samplers, {draws} repetitions")
    rows += [measure_identical(dimensions, draws, options.seed) for dimensions in (2, 32, 384)]
    return {"coverage": rows}


def make_teams(seed: int) -> dict[str, Tensor]:
    """Return actions ``[observations, agents, 2]`` of a cloud of agents, of three roles, and of one outlier."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(OBSERVATIONS, AGENTS, 2, generator=generator, dtype=torch.float64)
    level = 0.5 + torch.rand(OBSERVATIONS, 1, 1, generator=generator, dtype=torch.float64)
    roles = (torch.arange(AGENTS) % 3).double().view(1, -1, 1).expand(1, -1, 2)
    outlier = torch.zeros(1, AGENTS, 2, dtype=torch.float64)
    outlier[:, 0] = 10
    return {"cloud": noise, "roles": level * (roles + 0.1 * noise), "outlier": outlier + 0.1 * noise}


def measure_coverage(name: str, actions: Tensor, repetitions: int) -> list[dict[str, Any]]:
    """Return a row for every design and way to stop; for policies too, of which no bound on the distances is known."""
    behavior, truth = Deterministic(actions), float(snd(Deterministic(actions)))
    # A policy reads the number of the observation, which is all that it observes.
    index = torch.arange(len(actions), dtype=torch.float64).unsqueeze(1)
    policies = [lambda seen, own=own: own[seen[:, 0].long()] for own in actions.unbind(1)]
    rows = []

    def add(stop: str, kind: str, team: Any, **options: Any) -> None:
        drawn = (_try(team, options | {"seed": seed}) for seed in range(repetitions))
        about = {"team": name, "design": options["design"], "stop": stop, "kind": kind}
        rows.append({**about, **_count([each.interval for each in drawn if each is not None], truth)})

    for design in (*DRAWN, *REDRAWN):
        add("fixed size", "guaranteed", behavior, design=design)
    for design in REDRAWN:
        add("20%", "guaranteed", behavior, design=design, rel_tol=0.2)
        add("fixed size", "asymptotic", policies, observations=index, design=design)
        add("10%", "asymptotic", policies, observations=index, design=design, rel_tol=0.1)
    return rows


def measure_identical(dimensions: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often the interval over observations covers 0 for agents that draw from one distribution."""
    generator, intervals = torch.Generator().manual_seed(seed + dimensions), []
    for _ in range(repetitions):
        samples = torch.randn(64, 4, 8, dimensions, generator=generator)
        interval = measure_team(Samples(samples), distance=Sliced(debias=True)).population_interval
        assert interval is not None
        intervals.append(interval)
    about = {"team": f"identical, {dimensions} dimensions", "design": "complete", "stop": "fixed size"}
    return {**about, "kind": "debiased, over observations", **_count(intervals, 0.0)}


def _try(team: Any, options: dict[str, Any]) -> Estimate | None:
    try:
        return measure_team(team, **options)
    except EmptyDrawError:  # has no interval
        return None


def _count(intervals: Sequence[Interval], truth: float) -> dict[str, Any]:
    from scipy.stats import beta

    rounding = 1e-12 * abs(truth)  # of an exact interval, of all pairs
    count, hits = len(intervals), sum(low - rounding <= truth <= high + rounding for low, high in intervals)
    return {
        "confidence": CONFIDENCE,
        "repetitions": count,
        "covered": hits / count,
        "at_most": 1.0 if hits == count else float(beta.ppf(0.99, hits + 1, count - hits)),
        "half_width": sum(high - low for low, high in intervals) / count / 2,
    }


def tables(result: dict[str, Any]) -> Tables:
    """Return how often intervals held the truth."""
    columns = ("team", "design", "stop", "kind", "repetitions", "covered", "at_most", "half_width")
    return {f"Coverage of {CONFIDENCE:.0%} intervals": (result["coverage"], columns)}
