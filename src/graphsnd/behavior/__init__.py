"""1 WHAT every agent would do on every observation.

A behaviour holds the action distributions of ``n`` agents on shared observations; a distance embeds it as
points ``[observations, agents, features]`` under a norm. Everything after this package is blind to the action
space.
"""

from graphsnd.behavior.behavior import AgentsAxisWarning, Behavior
from graphsnd.behavior.categorical import Categorical
from graphsnd.behavior.deterministic import Deterministic
from graphsnd.behavior.distances import (
    DISTANCES,
    Distance,
    Energy,
    Hellinger,
    JensenShannon,
    Sliced,
    TotalVariation,
    Wasserstein,
    default_distance,
    embed,
)
from graphsnd.behavior.distributions import from_distribution
from graphsnd.behavior.gaussian import Gaussian, MultivariateGaussian
from graphsnd.behavior.joint import Joint
from graphsnd.behavior.points import Norm, Points
from graphsnd.behavior.quantiles import Quantiles
from graphsnd.behavior.samples import Samples

__all__ = [
    "DISTANCES",
    "AgentsAxisWarning",
    "Behavior",
    "Categorical",
    "Deterministic",
    "Distance",
    "Energy",
    "Gaussian",
    "Hellinger",
    "JensenShannon",
    "Joint",
    "MultivariateGaussian",
    "Norm",
    "Points",
    "Quantiles",
    "Samples",
    "Sliced",
    "TotalVariation",
    "Wasserstein",
    "default_distance",
    "embed",
    "from_distribution",
]
