"""How wrong is each design, for how many distances, policy evaluations and seconds?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from benchmarks.design_errors import design_name, measure_errors
from benchmarks.timing import Clock, Contestant, take_turns
from graphsnd.behavior import Behavior
from graphsnd.errors import EmptyDrawError, InputError
from graphsnd.estimation import (
    AgentSubset,
    AllPairs,
    Design,
    FixedGraph,
    FreshCirculant,
    FreshMatching,
    ObservationSubset,
    Weighting,
    estimate,
)
from graphsnd.estimation.sampling.draws import device_generator
from graphsnd.estimation.sampling.sample import draw
from graphsnd.estimation.sampling.source import BehaviorSource
from graphsnd.estimation.sampling.template import variance
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam, Team

PAPER = "fixed bernoulli:0.1"
ATTEMPTS = 50  # at a draw that has an edge
SMALLEST = 8  # agents of a team whose designs can be compared: a tenth of its pairs is some


def random_team(n: int, seed: int, device: torch.device) -> StackedTeam:
    """Policies as at the start of the paper's runs: 18 observations, two hidden layers of 64, two actions."""
    generator = torch.Generator().manual_seed(seed)
    network = StackedMLP.create((n,), (18, 64, 64, 4), init="linear", generator=generator)
    return StackedTeam(network, GaussianHead(2, mean="tanh", scale="network")).to(device)


def random_observations(count: int, seed: int, device: torch.device) -> Tensor:
    """Uniform in [-1, 1]^18."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(count, 18, generator=generator) - 1).to(device)


def contestants(n: int, observations: int) -> list[Design]:
    """The paper's estimators, and those that redraw their pairs."""
    edges = round(0.1 * n * (n - 1) / 2)
    degree = max(2, 2 * (edges // n))
    few = [ObservationSubset(count, AgentSubset(4)) for count in (observations // 16, observations // 4)]
    return [
        FixedGraph.bernoulli(0.1),
        FixedGraph.bernoulli(0.1, Weighting.HORVITZ_THOMPSON),
        FixedGraph.uniform(edges),
        FixedGraph.regular(degree),
        FreshMatching(1),
        FreshMatching(),
        FreshCirculant(2),
        FreshCirculant(degree),
        AgentSubset(2),
        AgentSubset(4),
        AgentSubset(8),
        *few,
    ]


def compare_designs(
    team: Team, observations: Tensor, *, label: str, draws: int, seed: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Root mean squared relative error over draws, and time from policies to the number, of every design.

    Errors are taken on one evaluation of the team; times include the evaluation, of what each design asks for.
    """
    if team.agents < SMALLEST:
        raise InputError("team", f"of at least {SMALLEST} agents", team.agents, "All pairs are few enough to measure.")
    with torch.no_grad():
        behavior = team.evaluate(observations)
    truth = estimate(behavior, design=AllPairs()).value
    designs = contestants(team.agents, len(observations))
    rows = [asdict(measure_errors(behavior, design, truth, draws=draws, seed=seed)) for design in designs]
    paper = rows[0]
    designs = [*designs, matched := _as_good_as(behavior, truth, paper["rmse"], seed)]
    rows.append(asdict(measure_errors(behavior, matched, truth, draws=draws, seed=seed)) | {"matched": True})
    clock = Clock(observations.device)
    calls = [Contestant("all pairs", _timed(team, observations, AllPairs(), seed))]
    calls += [Contestant(design_name(design), _timed(team, observations, design, seed)) for design in designs]
    times = take_turns(calls, clock, rounds=rounds, seconds=seconds)
    for row in rows:
        row["time"] = times[row["name"]]
        row["rmse_gain"] = paper["rmse"] / row["rmse"] if row["rmse"] else None
        row["fewer_distances"] = paper["distances"] / row["distances"]
        row["fewer_evaluations"] = paper["evaluations"] / row["evaluations"]
    return {
        "team": label,
        "n": team.agents,
        "observations": len(observations),
        "snd": truth,
        "draws": draws,
        "exact_time": times["all pairs"],
        "designs": rows,
    }


def _as_good_as(behavior: Behavior, truth: float, rmse: float, seed: int) -> ObservationSubset:
    """So many agents at so many observations that the error is the same, with few evaluations and few distances.

    A trial of eight agents tells the variance for every other number of them. Many agents at few observations save
    evaluations, few agents at many save distances; the smallest product of the two is taken.
    """
    source, generator = BehaviorSource(behavior, None), torch.Generator().manual_seed(seed + 10**6)
    n, total, trial = source.agents, source.observations, AgentSubset(8).template(source.agents)
    sample = draw(source, trial, torch.randperm(total, generator=generator), device_generator(generator, source.device))
    moments, pairs = sample.moments.mean(dim=0), sample.pair_variance(trial, n)
    between = max(0.0, sample.total_variance() - pairs)
    best = ObservationSubset(total, AgentSubset(n))
    for size in range(2, n):
        own = variance(moments, n, math.comb(size, 2), size * math.comb(size - 1, 2))
        # ((1 - t/T) (between + own) + t/T own) / t = rmse^2, solved for t.
        count = math.ceil((between + own) / ((0.97 * rmse * truth) ** 2 + between / total))
        found = ObservationSubset(max(2, count), AgentSubset(size))
        if count <= total and _spent(found, n) < _spent(best, n):
            best = found
    return best


def _spent(design: ObservationSubset, n: int) -> float:
    return design.count**2 * design.evaluations(n) * design.pairs(n)


def _timed(team: Team, observations: Tensor, design: Design, seed: int) -> Callable[[], object]:
    def call() -> object:
        for attempt in range(ATTEMPTS):
            try:
                return estimate(team, observations, design=design, seed=seed + attempt)
            except EmptyDrawError:
                continue
        return None

    return call


def to_tolerance(
    sizes: Sequence[int],
    observations: int,
    device: torch.device,
    *,
    rel_tol: float,
    seed: int,
    step: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Time, evaluations and interval of ``rel_tol`` for teams of growing size, three seeds each."""
    inputs = random_observations(observations, seed + 1, device)
    rows = []
    for n in sizes:
        step(f"relative tolerance {rel_tol:g}, n = {n:,}")
        team = random_team(n, seed, device)
        estimate(team, inputs, rel_tol=0.2)  # compiles what there is to compile
        found = [estimate(team, inputs, rel_tol=rel_tol, seed=seed + k) for k in range(3)]
        rows.append(
            {
                "n": n,
                "observations": observations,
                "rel_tol": rel_tol,
                "seconds": sorted(one.seconds for one in found),
                "evaluations": [one.policy_evaluations for one in found],
                "met": [bool(one.met) for one in found],
                "design": found[0].design,
                "estimate": found[0].to_dict(),
            }
        )
    return rows
