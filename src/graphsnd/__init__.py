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
    analysis     roles: groups of agents that act alike; whether two teams differ, and how much diversity pays
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

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.3.0"

# The module of each public name, from the imports that type checkers read. A stage's home is graphsnd itself.
_HOMES = {
    name.name: str(node.module)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for name in node.names
}
__all__ = sorted(name for name, home in _HOMES.items() if home != __name__)


def __getattr__(name: str) -> Any:
    # torch and numba take two seconds to load, matplotlib one more; `graphsnd --help` needs none of them.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOMES[name] == __name__:
        return import_module(f"graphsnd.{name}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
