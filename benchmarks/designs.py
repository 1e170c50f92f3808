"""How wrong is each design, for how many distances, policy evaluations and seconds?

rmse: root mean squared relative error over draws, on one evaluation of the team; rmse_interval is for 95%.

distances and evaluations: their numbers for one estimate, over all observations it uses.

rmse_gain, fewer_distances, fewer_evaluations: against the paper's estimator, one Bernoulli graph with p = 0.1.

time: from policies to the number, policy evaluation included; contestants take turns within a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks.timing import Clock, Contestant, Options, race
from graphsnd.behavior import Behavior, Gaussian
from graphsnd.designs.design import Agents, Bernoulli, Complete, Design, Matching, Regular, Ring, Uniform
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import measure as measure_team
from graphsnd.graphs import Graph
from graphsnd.metric import horvitz_thompson, pairwise
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from graphsnd.teams.files import OBSERVATIONS
from graphsnd.teams.team import Team

PAPER = "bernoulli:0.1"


@dataclass(frozen=True)
class Draw:
    """One estimate of a plan."""

    value: float
    standard_error: float
    observations: int  # number of observations that were used


@dataclass(frozen=True)
class SamplingPlan:
    """A design, how its edges are weighted, and at how many observations it is used.

    Example:
        >>> from graphsnd.designs.design import Agents, Bernoulli
        >>> str(SamplingPlan(Bernoulli(0.1), "horvitz-thompson")), str(SamplingPlan(Agents(3), max_observations=1602))
        ('bernoulli:0.1, horvitz-thompson', 'agents:3, 1,602 observations')
    """

    design: Design
    weighting: str = "normalised"
    max_observations: int | None = None  # all when None

    def measure(self, behavior: Behavior, *, seed: int) -> Draw:
        """Measure the behaviour of a team by this plan."""
        generator = torch.Generator().manual_seed(seed)
        if self.weighting == "horvitz-thompson":
            graph = self.design.draw(behavior.agents, generator)
            assert isinstance(graph, Graph)
            assert graph.inclusion is not None
            distances, inclusion = pairwise(behavior, graph=graph).double(), graph.inclusion
            error = math.sqrt((1 - inclusion) * float(distances.square().sum())) / (inclusion * graph.pairs)
            return Draw(float(horvitz_thompson(behavior, graph)), error, behavior.observations)
        total, count = behavior.observations, self.max_observations or behavior.observations
        if count == total:
            one = measure_team(behavior, design=self.design, seed=seed)
            return Draw(one.value, one.standard_error, total)
        rows = torch.randperm(total, generator=generator)[:count].to(behavior.loc.device)  # type: ignore[attr-defined]
        some = Gaussian(behavior.loc.flatten(0, -3)[rows], behavior.scale.flatten(0, -3)[rows])  # type: ignore[attr-defined]
        one = measure_team(some, design=self.design, seed=generator)
        # The variance at t of T observations is (B + V) / t - B / T: B between observations, V from the pairs of one.
        both, pairs = (one.observation_error or 0.0) ** 2, one.standard_error**2
        return Draw(one.value, math.sqrt(max(pairs, both - max(0.0, both - pairs) * count / total)), count)

    def measure_policies(self, team: Team, observations: Tensor, *, seed: int) -> float:
        """Measure policies by this plan, which evaluates only those that it needs."""
        generator = torch.Generator().manual_seed(seed)
        if self.weighting == "horvitz-thompson":
            return self.measure(team.evaluate(observations), seed=seed).value
        if self.max_observations is not None:
            rows = torch.randperm(len(observations), generator=generator)[: self.max_observations]
            observations = observations[rows.to(observations.device)]
        return measure_team(team, observations, design=self.design, seed=seed).value

    def __str__(self) -> str:
        parts = [str(self.design), *([] if self.weighting == "normalised" else [self.weighting])]
        return ", ".join(
            parts if self.max_observations is None else [*parts, f"{self.max_observations:,} observations"]
        )


@dataclass(frozen=True)
class DesignErrors:
    """Errors of one design over many draws, relative to SND, and the cost of one estimate."""

    name: str  # name of the plan
    rmse: float  # root mean square error
    rmse_interval: tuple[float, float]  # 95%, for normal errors
    bias: float
    bias_error: float  # standard error of the bias
    standard_error: float  # mean of the standard errors that the estimates report
    pairs: float  # number of pairs per observation
    observations: int  # number of observations that are used
    distances: float  # pairs times observations
    evaluations: float  # policies times observations
    empty_draws: int  # number of draws without an edge; they have no mean and are left out


def measure_errors(behavior: Behavior, plan: SamplingPlan, truth: float, *, draws: int, seed: int) -> DesignErrors:
    """Return the relative errors of a design over draws.

    Args:
        behavior: Behaviour of the team.
        plan: Plan that chooses the pairs.
        truth: SND over all pairs and observations.
        draws: Number of draws; those without an edge are left out and counted.
        seed: Seed of the first draw; draw k has the seed ``seed + k``.

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Deterministic(torch.randn(50, 6, 2))
        >>> measure_errors(team, SamplingPlan(Matching()), float(gs.snd(team)), draws=5, seed=0).distances
        150
    """
    estimates = [one for k in range(draws) if (one := _draw(behavior, plan, seed + k)) is not None]
    errors = torch.tensor([one.value / truth - 1 for one in estimates], dtype=torch.float64)
    n, design, used = behavior.agents, plan.design, estimates[0].observations
    share = math.sqrt(2 / len(errors))  # relative spread of a mean square of normal errors
    rmse = float(errors.square().mean().sqrt())
    return DesignErrors(
        name=str(plan),
        rmse=rmse,
        rmse_interval=(rmse * math.sqrt(max(0.0, 1 - 1.96 * share)), rmse * math.sqrt(1 + 1.96 * share)),
        bias=float(errors.mean()),
        bias_error=float(errors.std() / len(errors) ** 0.5),
        standard_error=sum(one.standard_error for one in estimates) / len(estimates) / truth,
        pairs=design.pairs(n),
        observations=used,
        distances=design.pairs(n) * used,
        evaluations=design.evaluations(n) * used,
        empty_draws=draws - len(estimates),
    )


def _draw(behavior: Behavior, plan: SamplingPlan, seed: int) -> Draw | None:
    try:
        return plan.measure(behavior, seed=seed)
    except EmptyDrawError:  # an empty draw has no mean
        return None


def measure(options: Options) -> dict[str, Any]:
    """Compare designs on random and on trained teams."""
    sizes, observations, draws = ((20,), 64, 5) if options.quick else ((50, 100, 500), 2048, 60)
    seed, device, compared = options.seed, options.device, []
    for n in sizes:
        options.step(f"designs, random team of {n:,}")
        team, inputs = random_team(n, seed, device), random_observations(observations, seed + 1, device)
        compared.append(compare_designs(team, inputs, options, label="random", draws=draws))
    for folder in options.teams:
        options.step(f"designs, trained team {folder.name}")
        trained, inputs = Team.load(folder, device=device), load_file(folder / OBSERVATIONS)["observations"].to(device)
        compared.append(compare_designs(trained, inputs[:observations], options, label="trained", draws=draws))
    return {"designs": compared}


def random_team(n: int, seed: int, device: torch.device) -> StackedTeam:
    """Return policies as at the start of the paper's runs: 18 observations, two hidden layers of 64, two actions."""
    generator = torch.Generator().manual_seed(seed)
    network = StackedMLP.create((n,), (18, 64, 64, 4), init="linear", generator=generator)
    return StackedTeam(network, GaussianHead(2, mean="tanh", scale="network")).to(device)


def random_observations(count: int, seed: int, device: torch.device) -> Tensor:
    """Return observations that are uniform in [-1, 1]^18."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(count, 18, generator=generator) - 1).to(device)


def contestants(n: int, observations: int) -> list[SamplingPlan]:
    """Return the paper's estimators, and those that redraw their pairs."""
    edges = round(0.1 * n * (n - 1) / 2)
    degree = max(2, 2 * (edges // n))
    whole = [Uniform(edges), Regular(degree), Matching(1), Matching(), Ring(2), Ring(degree)]
    return [
        SamplingPlan(Bernoulli(0.1)),
        SamplingPlan(Bernoulli(0.1), "horvitz-thompson"),
        *map(SamplingPlan, [*whole, Agents(2), Agents(4), Agents(8)]),
        *(SamplingPlan(Agents(4), max_observations=count) for count in (observations // 16, observations // 4)),
    ]


def compare_designs(team: Team, observations: Tensor, options: Options, *, label: str, draws: int) -> dict[str, Any]:
    """Return root mean squared relative error over draws, and time from policies to the number, of every design.

    Errors are taken on one evaluation of the team. Times include the policy evaluations that each design needs.
    """
    seed = options.seed
    with torch.no_grad():
        behavior = team.evaluate(observations)
    truth = measure_team(behavior, design=Complete()).value
    plans = contestants(team.agents, len(observations))
    rows = [asdict(measure_errors(behavior, plan, truth, draws=draws, seed=seed)) for plan in plans]
    calls = [Contestant("all pairs", _timed(team, observations, SamplingPlan(Complete()), seed))]
    calls += [Contestant(str(plan), _timed(team, observations, plan, seed)) for plan in plans]
    times = race(calls, Clock(observations.device), options.rounds)
    for row in rows:
        row["time"] = times[row["name"]]
        row["rmse_gain"] = rows[0]["rmse"] / row["rmse"] if row["rmse"] else None
        for cost in ("distances", "evaluations"):
            row[f"fewer_{cost}"] = rows[0][cost] / row[cost]
    return {
        "team": label,
        "n": team.agents,
        "observations": len(observations),
        "snd": truth,
        "draws": draws,
        "exact_time": times["all pairs"],
        "designs": rows,
    }


def _timed(team: Team, observations: Tensor, plan: SamplingPlan, seed: int) -> Callable[[], object]:
    def call() -> None:
        with suppress(EmptyDrawError):
            plan.measure_policies(team, observations, seed=seed)

    return call
