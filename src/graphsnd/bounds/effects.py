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
from graphsnd.errors import InputError, check_finite, check_shape, check_tensor
from graphsnd.graphs import Graph

TOLERANCE = 1e-12  # relative error at which the fit stops
WORK = 2 * 10**8  # edges times steps of the fit: about four seconds
STEPS = (
    100  # steps that the fit may take in any case, after which its residual variance is at most a few thousandths off
)


@dataclass(frozen=True, eq=False)
class AgentEffects:
    """The distances on the edges of a graph, split into effects of single agents and the rest.

    Example:
        >>> import torch, graphsnd as gs
        >>> graph = gs.graphs.complete(4)
        >>> fit = gs.bounds.agent_effects(5 + torch.tensor([1.0, 0.0, 0.0, -1.0])[graph.edges].sum(1), graph)
        >>> round(fit.explained, 4), fit.freedom
        (1.0, 2)
    """

    effects: Tensor  # float64 [n], a_i, mean 0; a positive one is farther from others than usual
    level: float  # fitted distance of two agents without effects
    residual_variance: float  # unbiased for the variance of the rest; NaN when no degree of freedom is left
    freedom: int  # degrees of freedom of the residual variance, m - rank
    explained: float  # share of the variance of the distances that the effects explain, adjusted for their number


def agent_effects(distances_on_edges: Tensor, graph: Graph) -> AgentEffects:
    r"""Fit d_ij = level + a_i + a_j to measured distances by least squares.

    The rank of the design is n less the number of bipartite components (agents without edges included): in those,
    what one side gains the other may lose, and the solution of least norm is given. On nearly bipartite graphs with
    hundreds of thousands of agents the fit stops early: the residual variance is then up to 0.4% too large, and effects
    that edges hardly tell apart are drawn towards 0.

    Args:
        distances_on_edges: ``[m]`` in the order of ``graph.edges``, as from :func:`graphsnd.pairwise`.
        graph: The graph they were measured on, without weights.

    Raises:
        InputError: For another number of distances, or a graph with weights or without edges.

    Example:
        >>> import torch, graphsnd as gs
        >>> graph = gs.graphs.complete(4)
        >>> a = torch.tensor([1.0, 0.0, 0.0, -1.0])
        >>> fit = agent_effects(5 + a[graph.edges].sum(1), graph)
        >>> fit.effects.round(decimals=4), round(fit.level, 4)
        (tensor([ 1.,  0.,  0., -1.], dtype=torch.float64), 5.0)
    """
    matrix = adjacency(graph)
    if graph.weights is not None or graph.m == 0:
        raise InputError("graph", "with edges and without weights", repr(graph))
    distances = check_tensor("distances_on_edges", distances_on_edges, 1, "(edges,)")
    check_shape("distances_on_edges", distances, (graph.m,))
    check_finite("distances_on_edges", distances)
    values = distances.detach().double().cpu().numpy()
    # The mean goes first, so that the iteration resolves the spread of distances, however small beside their size.
    size = float(np.abs(values).max()) or 1.0
    values = values / size  # squares of 1e-200 are 0, of 1e200 infinite
    mean = float(values.mean())
    fitted, residual = _least_squares(matrix, graph.edges.cpu().numpy(), values - mean)
    freedom = graph.m - graph.n + count_bipartite_components(matrix)
    variance = float((residual**2).sum()) / freedom if freedom else math.nan
    spread = float(values.var(ddof=1)) if graph.m > 1 else 0.0
    return AgentEffects(
        effects=torch.from_numpy((fitted - fitted.mean()) * size),
        level=(mean + 2 * float(fitted.mean())) * size,
        residual_variance=variance * size * size,
        freedom=freedom,
        explained=1 - variance / spread if spread else math.nan,
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


def regular_standard_error(distances_on_edges: Tensor, graph: Graph) -> float:
    r"""Return the standard error of the mean over a random regular graph, from the distances on its edges alone.

    .. math:: \widehat{\mathrm{Var}} = \frac{1 - m/N}{m} \cdot \frac{\mathrm{RSS}}{m - \mathrm{rank}}

    Its square is unbiased over the relabellings of the graph, for every team. The plain formula, which takes the
    variance of the distances for that of the rest, is too large wherever agents differ in how far they are from others.

    Args:
        distances_on_edges: ``[m]`` in the order of ``graph.edges``.
        graph: Regular, without weights, its agents in random order with respect to the distances: a random regular
            graph, or any regular graph after random relabelling. The degree must leave m > rank: 3 is enough.

    Raises:
        InputError: For a graph that is not regular, has weights, or leaves no degree of freedom.

    Example:
        >>> import torch, graphsnd as gs
        >>> graph, a = gs.graphs.random_regular(30, 4, seed=0), torch.arange(30.0)
        >>> regular_standard_error(a[graph.edges].sum(1), graph) < 1e-6
        True
    """
    degrees = graph.degrees()
    if bool((degrees != degrees[0]).any()):
        got = f"degrees from {int(degrees.min())} to {int(degrees.max())}"
        raise InputError("graph", "to be regular", got, "Effects do not cancel where degrees differ.")
    if graph.is_complete:
        return 0.0
    fit = agent_effects(distances_on_edges, graph)
    if not fit.freedom:
        fix = "Degree 3 or more leaves some."
        raise InputError("graph", "with more edges than agents", f"{graph.m} edges, {graph.n} agents", fix)
    return math.sqrt((1 - graph.m / graph.pairs) / graph.m * fit.residual_variance)
