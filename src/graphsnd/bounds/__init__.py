"""6 HOW SURE: concentration of sampled graphs, distortion and spectra of fixed ones, and a certified diameter."""

from graphsnd.bounds.concentration import (
    BernoulliBound,
    bernoulli,
    diameter,
    edges_for,
    empirical_bernstein,
    hoeffding,
    serfling,
)
from graphsnd.bounds.discrepancy import SpectralBound, SpectralRatio, nuclear_norm, spectral_bound, spectral_ratio
from graphsnd.bounds.distortion_theorem import Distortion, distortion
from graphsnd.bounds.effects import AgentEffects, agent_effects, regular_standard_error
from graphsnd.bounds.forwarding import ForwardingIndex, forwarding_index
from graphsnd.bounds.relabelling import (
    paper_random_regular_bound,
    random_regular_bound,
    relabelling_bound,
    relabelling_factor,
    relabelling_variance,
)
from graphsnd.bounds.spectral import Spectrum, spectrum

__all__ = [
    "AgentEffects",
    "BernoulliBound",
    "Distortion",
    "ForwardingIndex",
    "SpectralBound",
    "SpectralRatio",
    "Spectrum",
    "agent_effects",
    "bernoulli",
    "diameter",
    "distortion",
    "edges_for",
    "empirical_bernstein",
    "forwarding_index",
    "hoeffding",
    "nuclear_norm",
    "paper_random_regular_bound",
    "random_regular_bound",
    "regular_standard_error",
    "relabelling_bound",
    "relabelling_factor",
    "relabelling_variance",
    "serfling",
    "spectral_bound",
    "spectral_ratio",
    "spectrum",
]
