r"""Random regular graphs: what their exact second moments guarantee.

Given its isomorphism class, a uniform random d-regular graph is a uniformly random relabelling of a fixed graph, the
subject of :mod:`graphsnd.bounds.relabel`. Two given pairs of agents are both edges with a probability that depends
only on whether they share an agent:

.. math:: p_a = \frac{d(d-1)}{(n-1)(n-2)}, \qquad
    p_d = \frac{\binom{m}{2} - n\binom{d}{2}}{\binom{N}{2} - n\binom{n-1}{2}},

with m = nd/2 edges and N = n(n-1)/2 pairs, by counting neighbouring and disjoint pairs of edges. With x = d - SND over
all pairs and r_i the sum of x over the pairs of agent i, the variance of the mean over the edges is exactly

.. math:: m^{-2} \left[ (p - 2 p_a + p_d) \sum x^2 - (p_d - p_a) \sum_i r_i^2 \right], \qquad p = m / N.

For d < n - 1, p_a < p_d: the second term only helps, and it takes away everything that is a sum of effects of single
agents. Dropping it leaves a bound for every team.
"""

from __future__ import annotations

import math

from graphsnd.bounds.concentration import check_arguments
from graphsnd.bounds.relabel import factor
from graphsnd.errors import InputError


def variance_factor(n: int, degree: int) -> float:
    """The c for which Var(mean over edges) <= c * (mean of x^2 over all pairs); 0 for the complete graph.

    Example:
        >>> variance_factor(5, 4)
        0.0
    """
    _check_degree(n, degree)
    return factor(n, n * degree // 2, n * math.comb(degree, 2))


def random_regular_bound(d_max: float, n: int, degree: int, delta: float) -> float:
    r"""Radius that holds with probability 1 - delta for a uniform random regular graph, for every n and degree.

    The smaller of two, neither of which looks at the data: Chebyshev's inequality with the variance above and
    :math:`\sum x^2 \le N D_{\max}^2 / 4`, and :func:`relabelling`. The paper's proposition needs d^2 = o(n) and an
    asymptotic count of simple graphs; it is :func:`paper_random_regular_bound`.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        degree: Degree of the graph.
        delta: Failure probability.

    Example:
        >>> random_regular_bound(1.0, 100, 10, 0.05) < relabelling(1.0, 100, 0.05) / 4
        True
    """
    chebyshev = d_max / 2 * math.sqrt(variance_factor(n, degree) / delta)
    return min(chebyshev, relabelling(d_max, n, delta))


def paper_random_regular_bound(d_max: float, n: int, degree: int, delta: float) -> float:
    r"""The radius of the paper's proposition on random regular graphs, as printed.

    .. math:: D_{\max} \sqrt{\frac{8}{nd} \left( \log \frac{4}{\delta} + \frac{d^2 - 1}{4} \right)}

    Stated for d >= 3, nd even and d^2 = o(n), and for n large enough that the configuration model is simple with
    probability at least exp(-(d^2-1)/4) / 2, for which no such n is named. Its proof also takes the mean over the
    configuration model for SND, which :func:`configuration_mean` corrects. :func:`random_regular_bound` needs none of
    that, and is the smaller of the two unless delta is very small.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        degree: Degree of the graph, at least 3.
        delta: Failure probability.

    Example:
        >>> round(paper_random_regular_bound(1.0, 500, 6, 0.05), 3)
        0.187
    """
    check_arguments(d_max, 1, delta)
    _check_degree(n, degree)
    if degree < 3:
        raise InputError("degree", "to be at least 3, as in the proposition", degree)
    return d_max * math.sqrt(8 / (n * degree) * (math.log(4 / delta) + (degree**2 - 1) / 4))


def configuration_mean(snd: float, n: int, degree: int) -> float:
    r"""Mean of Graph-SND over the configuration model, the random multigraph behind the paper's proof.

    .. math:: \mathrm{SND} \cdot \frac{nd - d}{nd - 1}

    A stub meets each of the nd - 1 others equally often, and d - 1 of those belong to its own agent: a loop, at
    distance 0. Less than SND by a share (d-1)/(nd-1); simple graphs have no loops, and their mean is SND.

    Args:
        snd: SND of the team.
        n: Number of agents.
        degree: Stubs of each agent.

    Example:
        >>> round(configuration_mean(1.0, 10, 3), 4)
        0.931
    """
    _check_degree(n, degree, simple=False)
    return snd * (n * degree - degree) / (n * degree - 1)


def relabelling(d_max: float, n: int, delta: float) -> float:
    r"""Radius for a uniformly random relabelling of any fixed regular graph on ``n`` agents.

    .. math:: D_{\max} \sqrt{8 \log(2/\delta) / n}

    Swapping two labels moves at most 2d of the nd/2 edges, so the mean moves by at most 4 D_max / n, and the
    bounded-difference inequality for permutations gives the radius. Its logarithm in delta beats Chebyshev's square
    root for very small delta.

    Args:
        d_max: Upper bound on every distance.
        n: Number of agents.
        delta: Failure probability.

    Example:
        >>> round(relabelling(1.0, 500, 0.1), 3)
        0.219
    """
    check_arguments(d_max, 1, delta)
    if n < 2:
        raise InputError("n", "to be at least 2", n)
    return d_max * math.sqrt(8 * math.log(2 / delta) / n)


def _check_degree(n: int, degree: int, *, simple: bool = True) -> None:
    """Raise unless a graph on ``n`` agents can have this degree; a multigraph can have more than n - 1."""
    if degree < 1 or (simple and degree >= n):
        raise InputError("degree", f"in 1 .. {n - 1} for n = {n}" if simple else "to be at least 1", degree)
    if n * degree % 2:
        raise InputError("degree", "such that n * degree is even", f"n = {n} and degree = {degree}", "No such graph.")
