"""How differently do the agents of a team behave, how sure is that number, and what does it cost?

The package is the paper's pipeline, one stage a folder, each using only the stages above it:

    behavior     what every agent would do on every observation, and the distances between two answers
    teams        policies evaluated on shared observations
    graphs       which pairs of agents count
    kernels      sums of pair distances, fast
    metric       SND, Graph-SND, the Horvitz-Thompson estimator
    bounds       how far a sampled graph can be off
    estimation   measurements with intervals, at a tolerance or a budget
    control      hold diversity at a level (DiCo)
    worlds       batched environments
    training     teams that learn, stacked
    report, cli  tables, figures and the command line

>>> import torch, graphsnd as gs
>>> team = gs.Gaussian(torch.randn(256, 10, 2), torch.ones(2))
>>> torch.allclose(gs.graph_snd(team, gs.graphs.complete(10)), gs.snd(team))
True
"""

from graphsnd import bounds, control, graphs
from graphsnd.behavior import (
    Behavior,
    Categorical,
    Deterministic,
    Distance,
    Gaussian,
    Hellinger,
    JensenShannon,
    MultivariateGaussian,
    Quantiles,
    TotalVariation,
    Wasserstein,
    from_distribution,
)
from graphsnd.errors import InputError, MissingExtraError
from graphsnd.estimation import (
    Advice,
    AgentSubset,
    AllPairs,
    Budget,
    Estimate,
    FixedGraph,
    FreshCirculant,
    FreshMatching,
    Goal,
    ObservationSubset,
    SndAccumulator,
    SortedProjections,
    advise,
    difference_estimate,
    estimate,
    measure,
)
from graphsnd.graphs import Graph
from graphsnd.metric import contributions, edge_distances, graph_snd, horvitz_thompson, pairwise, snd
from graphsnd.teams import StackedMLP, StackedTeam, Team, as_team, evaluate

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "AgentSubset",
    "AllPairs",
    "Behavior",
    "Budget",
    "Categorical",
    "Deterministic",
    "Distance",
    "Estimate",
    "FixedGraph",
    "FreshCirculant",
    "FreshMatching",
    "Gaussian",
    "Goal",
    "Graph",
    "Hellinger",
    "InputError",
    "JensenShannon",
    "MissingExtraError",
    "MultivariateGaussian",
    "ObservationSubset",
    "Quantiles",
    "SndAccumulator",
    "SortedProjections",
    "StackedMLP",
    "StackedTeam",
    "Team",
    "TotalVariation",
    "Wasserstein",
    "advise",
    "as_team",
    "bounds",
    "contributions",
    "control",
    "difference_estimate",
    "edge_distances",
    "estimate",
    "evaluate",
    "from_distribution",
    "graph_snd",
    "graphs",
    "horvitz_thompson",
    "measure",
    "pairwise",
    "snd",
]
