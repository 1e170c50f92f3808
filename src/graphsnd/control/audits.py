"""The diversity that control achieved, measured over all pairs and never fed back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from torch import Tensor

from graphsnd.behavior import Distance
from graphsnd.designs import Design
from graphsnd.designs.design import as_design, pool_positions
from graphsnd.errors import check_integer
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import check_graph
from graphsnd.metric import graph_snd, snd
from graphsnd.teams.evaluation import evaluate
from graphsnd.teams.policies import Policy
from graphsnd.teams.team import Team

LAST = 50  # iterations at the end that the paper's summaries use (10 in its study of ten agents)


@torch.no_grad()
def audit(
    team: Team | Mapping[str, Policy] | Sequence[Policy] | Policy,
    observations: Tensor,
    *,
    distance: Distance | str | None = None,
    design: Design | Graph | MovingGraph | str | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Return the SND over all pairs of the scaled policies, or the local measure that was controlled.

    For DiCo's policies the points are mean and standard deviation before the tanh; the standard deviations are equal,
    so only means count. Discrete actions are compared by centred logits, in the units of the target. This, on
    observations that were not used to choose the scale, is the test of control.

    Args:
        team: At the scale in question, as :meth:`~graphsnd.control.ControlledPolicy.team` gives it, or policies of your
            own, as in :func:`~graphsnd.evaluate`.
        observations: ``[..., features]``, pooled.
        distance: The family's default when None.
        design: What a controller held: for ``knn:3``, ``radius:0.5`` or a graph (one for each observation) their
            Graph-SND over all edges; designs that estimate SND are audited by SND, as without one.
        positions: ``[..., agents, d]`` at each observation, for ``knn`` and ``radius``.

    Returns:
        A scalar.

    Example:
        >>> from graphsnd.control import ControlledPolicy
        >>> policy = ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)])
        >>> seen = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))
        >>> bool(torch.isclose(audit(policy.team(0, 0.5), seen) * 2, audit(policy.team(0, 1.0), seen)))
        True
    """
    behavior = evaluate(team, observations)
    held = as_design(design)
    if held.unbiased:
        return snd(behavior, distance)
    graph = held.draw(behavior.agents, positions=pool_positions(positions, behavior.batch_shape, behavior._names))
    assert isinstance(graph, Graph | MovingGraph)  # designs with templates are unbiased
    check_graph(graph, behavior.agents, behavior._names, observations=behavior.observations, argument="design")
    return graph_snd(behavior, graph, distance)


def tracking_error(applied: Sequence[float], target: float, *, last: int = LAST) -> float:
    r"""Return the paper's tracking error, :math:`\tfrac1T \sum_t |x_t - x^\ast| / x^\ast` over the last T iterations.

    The applied signal of an iteration is the last estimate times the mean scale. As every scale is the target over the
    estimate of its moment, this is the target times (last estimate x mean of 1 / estimate): near the target whenever
    the estimate moved little within the iteration, *right or wrong*. It measures drift, not diversity. To
    judge control use :func:`audit_error`.

    Args:
        applied: One number per iteration.
        target: Above 0.
        last: Number of iterations that count.

    Example:
        >>> tracking_error([0.5, 1.5, 1.0], 1.0, last=2)
        0.25
    """
    return fmean(abs(value - target) for value in _last(applied, last)) / target


def audit_error(audits: Sequence[float], target: float, *, last: int = LAST) -> float:
    r"""Return the relative error of the mean audit over the last T iterations.

    .. math:: |\tfrac1T \sum_t x_t - x^\ast| / x^\ast

    Errors of both signs cancel in it. For the mean of the errors, which is never smaller, give the audits to
    :func:`tracking_error`.

    Args:
        audits: One number per iteration.
        target: Above 0.
        last: Number of iterations that count.

    Example:
        >>> audit_error([0.5, 1.5], 1.0), tracking_error([0.5, 1.5], 1.0)
        (0.0, 0.5)
    """
    return abs(fmean(_last(audits, last)) - target) / target


def _last(values: Sequence[float], count: int) -> list[float]:
    return list(map(float, values[-check_integer("last", count, "to be an integer, at least 1", low=1) :]))
