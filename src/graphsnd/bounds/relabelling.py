r"""A fixed graph on randomly numbered agents: the exact second moments of the mean over its edges.

Number the agents of a template graph H uniformly at random. Two given pairs of agents are then both edges with a
probability that depends only on whether they share an agent. With m edges, A pairs of edges that meet in an agent,
N = n(n-1)/2 pairs of agents, and x = d - SND, r_i the sum of x over the pairs of agent i,

.. math:: \mathrm{Var} = m^{-2} \Big[ (p - 2 p_a + p_d) \sum x^2 + (p_a - p_d) \sum_i r_i^2 \Big], \qquad
    p = \frac{m}{N}, \quad p_a = \frac{A}{n \binom{n-1}{2}}, \quad
    p_d = \frac{\binom{m}{2} - A}{\binom{N}{2} - n \binom{n-1}{2}}.

It is easier to read by parts. Split x into effects of single agents and the rest, x_ij = a_i + a_j + e_ij with
a_i = r_i / (n - 2); the a sum to 0 and so does e over the pairs of every agent, so the two parts are orthogonal. The
effects alone have row sums (n - 2) a_i and squares :math:`\sum (a_i + a_j)^2 = (n-2) \sum a_i^2`; e has none. Hence
:math:`\sum_i r_i^2 = (n-2) \sum (a_i + a_j)^2 \le (n-2) \sum x^2`, with equality when e = 0, and

.. math:: \mathrm{Var} = m^{-2} \Big[ \alpha \sum e^2 + (\alpha + (n-2) \beta) \sum (a_i + a_j)^2 \Big],
    \qquad \alpha = p - 2 p_a + p_d, \quad \beta = p_a - p_d.

Both coefficients are variances, so not negative, and each is reached by a team. For a regular graph the second is 0:
whatever is an effect of single agents cancels.

Given its isomorphism class, a uniform random d-regular graph is such a relabelling. With m = nd/2, p_a is
d(d-1) / ((n-1)(n-2)), below p_d for d < n - 1, so that dropping the effects leaves a bound for every team
(:func:`random_regular_bound`).

Effects can be fitted to the distances on the edges (:func:`fit_effects`). On a randomly relabelled d-regular graph
every agent has d edges, so the effects add up to nothing and only e varies:

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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.concentration import check_arguments
from graphsnd.bounds.spectral import Floats, Ints, adjacency, count_bipartite_components
from graphsnd.errors import InputError, check_agents, check_finite, check_tensor, shape_of
from graphsnd.graphs import Graph
from graphsnd.graphs.edges import check_degree
from graphsnd.sums import add_last

TOLERANCE = 1e-12  # relative error at which the fit stops
WORK = 2 * 10**8  # edges times steps of the fit: about four seconds
STEPS = 100  # of the fit in any case, after which its residual variance is at most a few thousandths off


def relabelling_variance(distances: Tensor, degrees: Sequence[int] | Tensor) -> Tensor:
    """Return the exact variance of the mean over the edges of a randomly relabelled graph (Mantel's permutation test).

    Args:
        distances: Symmetric ``[..., n, n]``, as from :func:`graphsnd.pairwise`; the diagonal is not read.
        degrees: Degree of every vertex of the graph, n of them, isolated vertices (0) included.

    Returns:
        float64 ``[...]``.

    Raises:
        InputError: For degrees that no simple graph has, or that are all 0, and for distances of another size.

    Example:
        >>> line = torch.arange(4.0)
        >>> relabelling_variance((line[:, None] - line).abs(), [1, 1, 1, 1])
        tensor(0.2222, dtype=torch.float64)
    """
    distances = check_tensor("distances", distances, 2, "(..., n, n)")
    n = distances.shape[-1]
    if n < 2 or distances.shape[-2] != n:
        raise InputError("distances", "with shape (..., n, n), at least 2 agents", shape_of(distances))
    check_finite("distances", distances)
    edges, meeting = _count_edges(n, degrees)
    rest, effects = _coefficients(n, edges, meeting)
    # Squares of 1e200 are infinite: in units of a power of two, which change no bit.
    size = torch.exp2(torch.frexp(distances.detach().double().abs().max()).exponent.clamp(-1000, 1000).double())
    of_effects, of_rest = split_squares(distances.double() / size)
    return (float(rest) * of_rest + float(effects) * of_effects) / edges**2 * size * size


def relabelling_factor(n: int, degrees: Sequence[int] | Tensor) -> float:
    r"""Return the smallest c with Var(mean over edges) <= c * (mean of x^2 over all pairs) for every team of n agents.

    .. math:: c = \frac{N}{m^2} \max\{ \alpha,\; \alpha + (n-2) \beta \}

    A team of effects alone has the second coefficient, one without effects the first. Three agents have effects only
    (every three numbers are a_i + a_j), and two agents have no variance at all.

    Args:
        n: Number of agents.
        degrees: Degree of every vertex of the graph, n of them. A perfect matching has all 1 (for odd n a single 0),
            a clique of k agents has k times k-1 and n-k times 0.

    Raises:
        InputError: For degrees that no simple graph has, or that are all 0.

    Example:
        >>> c = relabelling_factor
        >>> c(6, [1] * 6), c(6, [3, 3, 3, 3, 0, 0]), c(6, [5] * 6)  # matching, clique of 4, all agents
        (0.4444444444444444, 0.25, 0.0)
    """
    n = check_agents(n)
    return factor_from_counts(n, *_count_edges(n, degrees))


def factor_from_counts(n: int, edges: int, meeting: int) -> float:
    """Return :func:`relabelling_factor` from the number of edges and of pairs of edges that meet in an agent."""
    return float(math.comb(n, 2) * max(_coefficients(n, edges, meeting)) / edges**2)


def random_regular_bound(d_max: float, n: int, degree: int, delta: float) -> float:
    r"""Return the radius for a uniform random regular graph of any size and degree, which fails with chance delta.

    The smaller of two, neither of which depends on the data: Chebyshev's inequality with the exact variance and
    :math:`\sum x^2 \le N D_{\max}^2 / 4`, and :func:`relabelling_bound`. The paper's Proposition 19 needs d^2 = o(n)
    and an asymptotic count of simple graphs; it is :func:`paper_random_regular_bound`.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        degree: Degree of the graph.
        delta: Failure probability.

    Example:
        >>> random_regular_bound(1.0, 100, 10, 0.05) < relabelling_bound(1.0, 100, 0.05) / 4
        True
    """
    d_max, _, delta = check_arguments(d_max, 1, delta)
    n = check_agents(n)
    degree = check_degree(n, degree)
    variance = factor_from_counts(n, n * degree // 2, n * math.comb(degree, 2))
    return min(d_max / 2 * math.sqrt(variance / delta), relabelling_bound(d_max, n, delta))


def paper_random_regular_bound(d_max: float, n: int, degree: int, delta: float) -> float:
    r"""Return the radius of the paper's Proposition 19 on random regular graphs, as printed.

    .. math:: D_{\max} \sqrt{\frac{8}{nd} \left( \log \frac{4}{\delta} + \frac{d^2 - 1}{4} \right)}

    Stated for d >= 3, nd even and d^2 = o(n), and for n large enough that the configuration model is simple with
    probability at least exp(-(d^2-1)/4) / 2, for which no such n is named. Its proof also takes the mean over the
    configuration model for SND. But there a stub meets each of the nd - 1 others equally often, and d - 1 of those
    belong to its own agent: a loop, at distance 0. So that mean is :math:`\mathrm{SND} (nd - d) / (nd - 1)`, and only
    over simple graphs it is SND. :func:`random_regular_bound` needs none of that, and is the smaller of the two unless
    delta is very small.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        degree: Degree of the graph, at least 3.
        delta: Failure probability.

    Example:
        >>> round(paper_random_regular_bound(1.0, 500, 6, 0.05), 3)
        0.187
    """
    d_max, _, delta = check_arguments(d_max, 1, delta)
    n = check_agents(n)
    degree = check_degree(n, degree)
    if degree < 3:
        raise InputError("degree", "to be at least 3, as in the proposition", degree)
    return d_max * math.sqrt(8 / (n * degree) * (math.log(4) - math.log(delta) + (degree**2 - 1) / 4))


def relabelling_bound(d_max: float, n: int, delta: float) -> float:
    r"""Return the radius for a uniformly random relabelling of any fixed regular graph on ``n`` agents.

    .. math:: D_{\max} \sqrt{8 \log(2/\delta) / n}

    Swapping two labels moves at most 2d of the nd/2 edges, so the mean moves by at most 4 D_max / n, and the
    bounded-difference inequality for permutations gives the radius. Its logarithm in delta beats Chebyshev's square
    root for very small delta.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        delta: Failure probability.

    Example:
        >>> round(relabelling_bound(1.0, 500, 0.1), 3)
        0.219
    """
    d_max, _, delta = check_arguments(d_max, 1, delta)
    return d_max * math.sqrt(8 * (math.log(2) - math.log(delta)) / check_agents(n))


def split_squares(distances: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums over all pairs of the squared agent effects a_i + a_j and of the squared rest, float64 ``[...]``.

    Example:
        >>> line = torch.arange(4.0)
        >>> [round(float(part), 4) for part in split_squares((line[:, None] - line).abs())]
        [2.0, 1.3333]
    """
    n = distances.shape[-1]
    others = ~torch.eye(n, dtype=torch.bool, device=distances.device)
    # The symmetric half is taken, so that a matrix symmetric only up to rounding has one answer.
    values = distances.detach().double()
    values = (values + values.mT) / 2
    level = add_last((values * others).flatten(-2)) / (n * (n - 1))
    centred = (values - level[..., None, None]) * others
    if n == 2:
        return centred.sum((-1, -2)), centred.sum((-1, -2))
    effects = centred.sum(-1) / (n - 2)
    # Squared after subtracting: from the sum of squares, a small rest beside large effects would be lost.
    rest = (centred - effects.unsqueeze(-1) - effects.unsqueeze(-2)) * others
    return (n - 2) * effects.square().sum(-1), add_last(rest.square().flatten(-2)) / 2


def _coefficients(n: int, edges: int, meeting: int) -> tuple[Fraction, Fraction]:
    """Return the factors of the squared rest and of the squared effects, exactly; 0 where n leaves no such part."""
    if n == 2:
        return Fraction(0), Fraction(0)
    pairs = math.comb(n, 2)
    pairs_meeting = n * math.comb(n - 1, 2)
    pairs_apart = math.comb(pairs, 2) - pairs_meeting
    both_meeting = Fraction(meeting, pairs_meeting)
    both_apart = Fraction(math.comb(edges, 2) - meeting, pairs_apart) if pairs_apart else Fraction(0)
    rest = Fraction(edges, pairs) - 2 * both_meeting + both_apart
    return rest if n > 3 else Fraction(0), rest + (n - 2) * (both_meeting - both_apart)


def _count_edges(n: int, degrees: Sequence[int] | Tensor) -> tuple[int, int]:
    """Return the number of edges, and of pairs of edges that meet, of a graph with these degrees."""
    expected, fix = f"to be {n} integers", "Isolated agents have degree 0. For a Graph use graph.degrees()."
    if len(degrees) != n:
        raise InputError("degrees", expected, f"{len(degrees)} of them", fix)
    given = torch.as_tensor(degrees).detach().cpu()
    if given.dim() != 1 or given.is_floating_point():
        raise InputError("degrees", expected, f"{given.dtype} of {shape_of(given)}", fix)
    import networkx

    given = given.long()
    if not bool(given.any()):
        raise InputError("degrees", "of a graph with an edge", "all 0")
    if not networkx.is_graphical(given.tolist()):
        got = f"{given.tolist()}" if n <= 12 else f"degrees from {int(given.min())} to {int(given.max())}"
        raise InputError("degrees", "of a simple graph", got, "Their sum is even, and hubs need enough neighbours.")
    return int(given.sum()) // 2, int((given * (given - 1)).sum()) // 2


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
