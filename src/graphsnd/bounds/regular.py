r"""Random regular graphs: what their exact second moments guarantee.

Given its isomorphism class, a uniform random d-regular graph is a uniformly random relabelling of a fixed graph. Two
given pairs of agents are then both edges with a probability that depends only on whether they share an agent:

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
from graphsnd.errors import InputError


def variance_factor(n: int, degree: int) -> float:
    """The c for which Var(mean over edges) <= c * (mean of x^2 over all pairs); 0 for the complete graph.

    Example:
        >>> variance_factor(5, 4)
        0.0
    """
    if not 1 <= degree < n:
        raise InputError("degree", f"in 1 .. {n - 1} for n = {n}", degree)
    if degree == n - 1:
        return 0.0
    edges, pairs = n * degree / 2, n * (n - 1) / 2
    p = edges / pairs
    adjacent = degree * (degree - 1) / ((n - 1) * (n - 2))
    disjoint_pairs = math.comb(n * (n - 1) // 2, 2) - n * math.comb(n - 1, 2)
    disjoint = 0.0
    if disjoint_pairs:
        disjoint = (math.comb(n * degree // 2, 2) - n * math.comb(degree, 2)) / disjoint_pairs
    return pairs * (p - 2 * adjacent + disjoint) / edges**2


def random_regular_bound(d_max: float, n: int, degree: int, delta: float) -> float:
    r"""Radius that holds with probability 1 - delta for a uniform random regular graph, for every n and degree.

    The smaller of two, neither of which looks at the data: Chebyshev's inequality with the variance above and
    :math:`\sum x^2 \le N D_{\max}^2 / 4`, and :func:`relabelling`. The paper's proposition needs d^2 = o(n) and an
    asymptotic count of simple graphs.

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
