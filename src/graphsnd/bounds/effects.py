r"""Effects of single agents, and the error that a regular graph is left with once they cancel.

Distances split into what is due to single agents and the rest, :math:`d_{ij} = \mathrm{SND} + a_i + a_j + e_ij`
(see :mod:`graphsnd.bounds.relabelling`). On a randomly relabelled d-regular graph every agent has d edges, so the
effects add up to nothing and only e varies:

.. math:: \mathrm{Var}(\mathrm{SND}_G) = \frac{1 - m/N}{m} \sigma_e^2, \qquad
    \sigma_e^2 = \frac{1}{N - n} \sum_{i<j} e_{ij}^2,

which is the variance of a simple random sample of m pairs, but of e instead of d. The least-squares fit of agent
effects to the m measured distances has a residual sum of squares whose expectation over the relabellings is exactly
:math:`(m - \mathrm{rank}) \sigma_e^2`. For: the fit removes every function a_i + a_j, so the quadratic form acts on the
rest only. That space is irreducible under relabelling, so the average of the form is a multiple of the identity on it,
and the trace says which: m - rank over its N - n dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.spectral import Floats, Ints, adjacency, count_bipartite_components
from graphsnd.graphs import Graph

TOLERANCE = 1e-12  # relative error at which the fit stops
WORK = 2 * 10**8  # edges times steps of the fit: about four seconds
STEPS = 100  # of the fit in any case, after which its residual variance is at most a few thousandths off


@dataclass(frozen=True, eq=False)
class AgentEffects:
    """The distances on the edges of a graph, split into effects of single agents and the rest."""

    effects: Tensor  # float64 [n], a_i, mean 0; a positive one is farther from others than usual
    level: float  # fitted distance of two agents without effects
    residual_variance: float  # unbiased for the variance of the rest; NaN when no degree of freedom is left
    freedom: int  # degrees of freedom of the residual variance, m - rank


def fit_effects(distances: Tensor, graph: Graph) -> AgentEffects:
    r"""Fit d_ij = level + a_i + a_j to measured distances by least squares.

    The rank of the design is n less the number of bipartite components (agents without edges included): in those,
    what one side gains the other may lose, and the solution of least norm is given. On nearly bipartite graphs with
    hundreds of thousands of agents the fit stops early: the residual variance is then up to 0.4% too large, and effects
    that edges hardly tell apart are drawn towards 0.

    Args:
        distances: ``[m]`` in the order of ``graph.edges``, as from :func:`graphsnd.pairwise`.
        graph: The graph they were measured on, with edges and without weights.

    Example:
        >>> import torch, graphsnd as gs
        >>> graph = gs.graphs.complete(4)
        >>> a = torch.tensor([1.0, 0.0, 0.0, -1.0])
        >>> fit = fit_effects(5 + a[graph.edges].sum(1), graph)
        >>> fit.effects.round(decimals=4), round(fit.level, 4)
        (tensor([ 1.,  0.,  0., -1.], dtype=torch.float64), 5.0)
    """
    matrix = adjacency(graph)
    values = distances.detach().double().cpu().numpy()
    # The mean goes first, so that the iteration resolves the spread of distances, however small beside their size.
    size = float(np.abs(values).max()) or 1.0
    values = values / size  # squares of 1e-200 are 0, of 1e200 infinite
    mean = float(values.mean())
    fitted, residual = _least_squares(matrix, graph.edges.cpu().numpy(), values - mean)
    freedom = graph.m - graph.n + count_bipartite_components(matrix)
    variance = float((residual**2).sum()) / freedom if freedom else math.nan
    return AgentEffects(
        effects=torch.from_numpy((fitted - fitted.mean()) * size),
        level=(mean + 2 * float(fitted.mean())) * size,
        residual_variance=variance * size * size,
        freedom=freedom,
    )


def _least_squares(matrix: Any, edges: Ints, values: Floats) -> tuple[Floats, Floats]:
    """Return the solution of least norm of a_i + a_j = values on the edges, and its residual.

    The normal equations have the degrees on the diagonal and the adjacency matrix beside it. Conjugate gradients from
    0 stay out of its kernel.
    """
    from scipy.sparse import diags
    from scipy.sparse.linalg import cg

    n, (i, j) = matrix.shape[0], edges.T
    degrees, sums = (np.bincount(edges.ravel(), each, n) for each in (None, np.repeat(values, 2)))
    # Below this gradient the solution is as good as rounding lets it be, also where nothing is left to fit.
    least = TOLERANCE * math.sqrt(2 * degrees.max() * (values**2).sum())
    steps = min(20 * n, max(STEPS, WORK // len(values)))
    solution, _ = cg(diags(degrees) + matrix, sums, rtol=TOLERANCE, atol=least, maxiter=steps)
    return solution, values - solution[i] - solution[j]
