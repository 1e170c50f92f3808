"""6 HOW SURE: concentration of sampled graphs, distortion and spectra of fixed ones, and a certified diameter."""

from graphsnd.bounds.choose import best_of
from graphsnd.bounds.concentration import (
    BernoulliBound,
    bernoulli,
    edges_for,
    empirical_bernstein,
    hoeffding,
    serfling,
)
from graphsnd.bounds.diameter import diameter
from graphsnd.bounds.discrepancy import SpectralBound, SpectralRatio, spectral_bound, spectral_ratio
from graphsnd.bounds.distortion import Distortion, distortion
from graphsnd.bounds.effects import AgentEffects, agent_effects, regular_standard_error
from graphsnd.bounds.forwarding import ForwardingIndex, Routing, forwarding_index
from graphsnd.bounds.nuclear import NuclearNorm, nuclear_norm
from graphsnd.bounds.regular import (
    configuration_mean,
    paper_random_regular_bound,
    random_regular_bound,
    relabelling,
    variance_factor,
)
from graphsnd.bounds.relabel import relabelling_factor, relabelling_variance
from graphsnd.bounds.spectral import Spectrum, spectrum

__all__ = [
    "AgentEffects",
    "BernoulliBound",
    "Distortion",
    "ForwardingIndex",
    "NuclearNorm",
    "Routing",
    "SpectralBound",
    "SpectralRatio",
    "Spectrum",
    "agent_effects",
    "bernoulli",
    "best_of",
    "configuration_mean",
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
    "relabelling",
    "relabelling_factor",
    "relabelling_variance",
    "serfling",
    "spectral_bound",
    "spectral_ratio",
    "spectrum",
    "variance_factor",
]
