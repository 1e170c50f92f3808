"""How wrong is a design, drawn many times on the same team, and what does one draw cost?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.designs import Design
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import Estimate, measure
from graphsnd.teams import Team


@dataclass(frozen=True)
class SamplingPlan:
    """A design, how its edges are weighted, and at how many observations it is used.

    Example:
        >>> from graphsnd.designs import Agents, Bernoulli
        >>> str(SamplingPlan(Bernoulli(0.1), "horvitz-thompson")), str(SamplingPlan(Agents(3), max_observations=1602))
        ('bernoulli:0.1, horvitz-thompson', 'agents:3, 1,602 observations')
    """

    design: Design
    weighting: str = "normalised"
    max_observations: int | None = None  # all when None

    def measure(self, team: Behavior | Team, observations: Tensor | None = None, *, seed: int) -> Estimate:
        """Measure a team by this plan."""
        options = {"weighting": self.weighting, "max_observations": self.max_observations}
        return measure(team, observations, design=self.design, seed=seed, **options)  # type: ignore[arg-type]

    def __str__(self) -> str:
        parts = [str(self.design), *([] if self.weighting == "normalised" else [self.weighting])]
        return ", ".join(
            parts if self.max_observations is None else [*parts, f"{self.max_observations:,} observations"]
        )


@dataclass(frozen=True)
class DesignErrors:
    """Errors of one design over many draws, relative to SND, and the cost of one estimate."""

    name: str  # of the plan
    rmse: float  # root mean square error
    rmse_interval: tuple[float, float]  # 95%, for normal errors
    bias: float
    bias_error: float  # standard error of the bias
    standard_error: float  # mean of the standard errors that the estimates report
    pairs: float  # per observation
    observations: int  # that are used
    distances: float  # pairs times observations
    evaluations: float  # policies times observations
    empty_draws: int  # have no mean and are left out


def measure_errors(behavior: Behavior, plan: SamplingPlan, truth: float, *, draws: int, seed: int) -> DesignErrors:
    """Return the relative errors of a design over draws.

    Args:
        behavior: Of the team.
        plan: Which pairs are measured.
        truth: SND over all pairs and observations.
        draws: Number of draws; those without an edge are left out and counted.
        seed: Of the first draw; draw k has the seed ``seed + k``.

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Deterministic(torch.randn(50, 6, 2))
        >>> measure_errors(team, SamplingPlan(gs.designs.Matching()), float(gs.snd(team)), draws=5, seed=0).distances
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


def _draw(behavior: Behavior, plan: SamplingPlan, seed: int) -> Estimate | None:
    try:
        return plan.measure(behavior, seed=seed)
    except EmptyDrawError:  # has no mean
        return None
