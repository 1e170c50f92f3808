"""Behaviours: what every agent would do on every observation, and the distances between two answers.

A behaviour holds the action distributions of ``n`` agents on shared observations. For a distance it embeds itself as
points ``[observations, agents, features]`` under a norm; everything after this package is blind to the action space.
"""

from graphsnd.behavior.behavior import Behavior, Deterministic
from graphsnd.behavior.categorical import Categorical
from graphsnd.behavior.distances import Distance, Hellinger, JensenShannon, Sliced, TotalVariation, Wasserstein
from graphsnd.behavior.distributions import from_distribution
from graphsnd.behavior.gaussian import Gaussian, MultivariateGaussian
from graphsnd.behavior.joint import Joint
from graphsnd.behavior.quantiles import Quantiles
from graphsnd.behavior.samples import Samples

__all__ = [
    "Behavior",
    "Categorical",
    "Deterministic",
    "Distance",
    "Gaussian",
    "Hellinger",
    "JensenShannon",
    "Joint",
    "MultivariateGaussian",
    "Quantiles",
    "Samples",
    "Sliced",
    "TotalVariation",
    "Wasserstein",
    "from_distribution",
]
