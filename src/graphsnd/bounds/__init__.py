"""How sure: concentration of sampled graphs, distortion and spectra of fixed ones, and a certified diameter."""

from graphsnd.bounds.concentration import bernoulli, diameter, edges_for, empirical_bernstein, hoeffding, serfling
from graphsnd.bounds.discrepancy import spectral_bound, spectral_ratio
from graphsnd.bounds.distortion_theorem import distortion
from graphsnd.bounds.effects import agent_effects, regular_standard_error
from graphsnd.bounds.forwarding import forwarding_index
from graphsnd.bounds.relabelling import (
    paper_random_regular_bound,
    random_regular_bound,
    relabelling_bound,
    relabelling_variance,
)
from graphsnd.bounds.spectral import spectrum

__all__ = [
    "agent_effects",
    "bernoulli",
    "diameter",
    "distortion",
    "edges_for",
    "empirical_bernstein",
    "forwarding_index",
    "hoeffding",
    "paper_random_regular_bound",
    "random_regular_bound",
    "regular_standard_error",
    "relabelling_bound",
    "relabelling_variance",
    "serfling",
    "spectral_bound",
    "spectral_ratio",
    "spectrum",
]
