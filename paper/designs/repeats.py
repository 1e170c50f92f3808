"""One design, drawn again and again on the same team: how wrong it is, and what it costs."""

from __future__ import annotations

import math
from typing import Any

import torch

from graphsnd.behavior import Behavior
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation import Design, Estimate, Weighting, estimate


def repeat(behavior: Behavior, design: Design, truth: float, *, draws: int, seed: int) -> dict[str, Any]:
    """Relative errors of a design over draws.

    Args:
        behavior: Of the team.
        design: Which pairs are measured.
        truth: SND over all pairs and observations.
        draws: How often; those without an edge have no mean and are left out and counted.
        seed: Of the first draw; the others follow it.

    Returns:
        Root mean square error relative to SND with a 95% interval, bias with its standard error, the mean of the
        standard errors that the estimates give themselves, and distances and policy evaluations of one estimate.

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Deterministic(torch.randn(50, 6, 2))
        >>> repeat(team, gs.FreshMatching(), float(gs.snd(team)), draws=5, seed=0)["distances"]
        150
    """
    found = [one for k in range(draws) if (one := _draw(behavior, design, seed + k)) is not None]
    errors = torch.tensor([one.value / truth - 1 for one in found], dtype=torch.float64)
    n = behavior.agents
    used = found[0].observations
    share = math.sqrt(2 / len(errors))  # relative spread of a mean square of normal errors
    rmse = float(errors.square().mean().sqrt())
    return {
        "name": name(design),
        "rmse": rmse,
        "rmse_interval": [rmse * math.sqrt(max(0.0, 1 - 1.96 * share)), rmse * math.sqrt(1 + 1.96 * share)],
        "bias": float(errors.mean()),
        "bias_error": float(errors.std() / len(errors) ** 0.5),
        "standard_error": sum(one.standard_error for one in found) / len(found) / truth,
        "pairs": design.pairs(n),
        "observations": used,
        "distances": design.pairs(n) * used,
        "evaluations": design.evaluations(n) * used,
        "empty_draws": draws - len(found),
    }


def name(design: Design) -> str:
    """What a design is called, with its weighting where that is not the mean over the edges.

    Example:
        >>> from graphsnd.estimation import FixedGraph
        >>> name(FixedGraph.bernoulli(0.1, Weighting.HORVITZ_THOMPSON))
        'fixed bernoulli:0.1, HT'
    """
    return f"{design.name}, HT" if getattr(design, "weighting", None) is Weighting.HORVITZ_THOMPSON else design.name


def _draw(behavior: Behavior, design: Design, seed: int) -> Estimate | None:
    try:
        return estimate(behavior, design=design, seed=seed)
    except EmptyDrawError:  # has no mean
        return None
