"""How wrong is a design, drawn many times on the same team, and what does one draw cost?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from graphsnd.behavior import Behavior
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import Design, Estimate, Weighting, estimate


@dataclass(frozen=True)
class DesignErrors:
    """Errors of one design over many draws, relative to SND, and the cost of one estimate."""

    name: str  # of the design
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


def measure_errors(behavior: Behavior, design: Design, truth: float, *, draws: int, seed: int) -> DesignErrors:
    """Return the relative errors of a design over draws.

    Args:
        behavior: Of the team.
        design: Which pairs are measured.
        truth: SND over all pairs and observations.
        draws: Number of draws; those without an edge are left out and counted.
        seed: Of the first draw; draw k has the seed ``seed + k``.

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Deterministic(torch.randn(50, 6, 2))
        >>> measure_errors(team, gs.FreshMatching(), float(gs.snd(team)), draws=5, seed=0).distances
        150
    """
    estimates = [one for k in range(draws) if (one := _draw(behavior, design, seed + k)) is not None]
    errors = torch.tensor([one.value / truth - 1 for one in estimates], dtype=torch.float64)
    n, used = behavior.agents, estimates[0].observations
    share = math.sqrt(2 / len(errors))  # relative spread of a mean square of normal errors
    rmse = float(errors.square().mean().sqrt())
    return DesignErrors(
        name=design_name(design),
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


def design_name(design: Design) -> str:
    """Return a design's name, with its weighting where that is not the mean over the edges.

    Example:
        >>> from graphsnd.estimation import FixedGraph
        >>> design_name(FixedGraph.bernoulli(0.1, Weighting.HORVITZ_THOMPSON))
        'fixed bernoulli:0.1, HT'
    """
    return f"{design.name}, HT" if getattr(design, "weighting", None) is Weighting.HORVITZ_THOMPSON else design.name


def _draw(behavior: Behavior, design: Design, seed: int) -> Estimate | None:
    try:
        return estimate(behavior, design=design, seed=seed)
    except EmptyDrawError:  # has no mean
        return None
