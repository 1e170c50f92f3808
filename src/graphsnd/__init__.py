"""How differently do the agents of a team behave, how sure is that number, and what does it cost?

The package is the paper's pipeline, one folder per stage, each using only the stages above it:

    behavior     what every agent would do on every observation, and the distances between two answers
    teams        policies evaluated on shared observations
    graphs       which pairs of agents count
    kernels      sums of pair distances, fast
    metric       SND, Graph-SND, the Horvitz-Thompson estimator
    bounds       how far a sampled graph can be off
    designs      the one language for which pairs: ``bernoulli:0.1``
    estimation   measure(): intervals, tolerances, advice
    analysis     roles: groups of agents that act alike; whether two teams differ
    control      hold diversity at a level (DiCo)
    distributed  the same numbers over several processes and devices
    rl           batched worlds, and teams that learn in them, stacked
    integrations adapters to BenchMARL, TorchRL, torchmetrics, ...
    plots        figures, tables and pages
    cli          the command line

A stage is loaded when one of its names is first used.

>>> import torch, graphsnd as gs
>>> team = gs.Gaussian(torch.randn(256, 10, 2), torch.ones(2))
>>> torch.allclose(gs.graph_snd(team, gs.graphs.complete(10)), gs.snd(team))
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphsnd import analysis as analysis
    from graphsnd import bounds as bounds
    from graphsnd import control as control
    from graphsnd import designs as designs
    from graphsnd import distributed as distributed
    from graphsnd import graphs as graphs
    from graphsnd import metric as metric
    from graphsnd import plots as plots
    from graphsnd import teams as teams
    from graphsnd.analysis import compare, roles
    from graphsnd.behavior import (
        Behavior,
        Categorical,
        Deterministic,
        Distance,
        Gaussian,
        Hellinger,
        JensenShannon,
        Joint,
        MultivariateGaussian,
        Quantiles,
        Samples,
        Sliced,
        TotalVariation,
        Wasserstein,
        from_distribution,
    )
    from graphsnd.errors import InputError
    from graphsnd.estimation import Estimate, SndAccumulator, advise, measure
    from graphsnd.graphs import Graph
    from graphsnd.metric import (
        contributions,
        decompose,
        graph_snd,
        horvitz_thompson,
        pairwise,
        snd,
    )
    from graphsnd.teams.evaluation import draw_samples, evaluate
    from graphsnd.teams.files import load_behavior, save_behavior
    from graphsnd.teams.team import Team

__version__ = "0.2.0"

__all__ = [
    "Behavior",
    "Categorical",
    "Deterministic",
    "Distance",
    "Estimate",
    "Gaussian",
    "Graph",
    "Hellinger",
    "InputError",
    "JensenShannon",
    "Joint",
    "MultivariateGaussian",
    "Quantiles",
    "Samples",
    "Sliced",
    "SndAccumulator",
    "Team",
    "TotalVariation",
    "Wasserstein",
    "advise",
    "compare",
    "contributions",
    "decompose",
    "draw_samples",
    "evaluate",
    "from_distribution",
    "graph_snd",
    "horvitz_thompson",
    "load_behavior",
    "measure",
    "pairwise",
    "roles",
    "save_behavior",
    "snd",
]

_STAGES = ["errors", "behavior", "teams", "graphs", "kernels", "metric", "bounds", "designs", "estimation", "analysis"]
_STAGES += ["control", "distributed", "rl", "integrations", "plots", "cli"]
# The modules of names that no stage has.
_MODULES = ["teams.evaluation", "teams.files", "teams.team"]


def _load(name: str) -> Any:
    # torch and numba take two seconds to load, matplotlib one more; `graphsnd --help` needs none of them.
    if name in _STAGES:
        return importlib.import_module(f"graphsnd.{name}")
    for stage in [*_STAGES, *_MODULES] if name in __all__ else ():
        value = getattr(importlib.import_module(f"graphsnd.{stage}"), name, None)
        if value is not None:
            return globals().setdefault(name, value)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # type checkers see the imports above, and so report names that do not exist
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_STAGES})
