"""6 HOW SURE: concentration of sampled graphs and a certified diameter."""

from graphsnd.bounds.concentration import (
    BernoulliBound,
    bernoulli,
    edges_for,
    empirical_bernstein,
    hoeffding,
    serfling,
)
from graphsnd.bounds.diameter import diameter
from graphsnd.bounds.regular import random_regular_bound, relabelling, variance_factor

__all__ = [
    "BernoulliBound",
    "bernoulli",
    "diameter",
    "edges_for",
    "empirical_bernstein",
    "hoeffding",
    "random_regular_bound",
    "relabelling",
    "serfling",
    "variance_factor",
]
