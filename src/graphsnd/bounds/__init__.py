"""How sure: concentration of sampled graphs, distortion and spectra of fixed ones, and a certified diameter."""

from graphsnd.bounds.concentration import bernoulli, diameter, edges_for, empirical_bernstein, hoeffding, serfling
from graphsnd.bounds.distortion_theorem import distortion
from graphsnd.bounds.forwarding import forwarding_index
from graphsnd.bounds.relabelling import random_regular_bound
from graphsnd.bounds.spectral import spectral_bound, spectral_ratio, spectrum

__all__ = [
    "bernoulli",
    "diameter",
    "distortion",
    "edges_for",
    "empirical_bernstein",
    "forwarding_index",
    "hoeffding",
    "random_regular_bound",
    "serfling",
    "spectral_bound",
    "spectral_ratio",
    "spectrum",
]
