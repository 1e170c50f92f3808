r"""How long the graphs themselves take to draw or to find, beside the metric that they are drawn for.

The complexity proposition counts distances and leaves the graph out; the paper's table puts a time on it. Here the
builders take turns, and after them the metric on as many agents, which would empty their caches:
:func:`graphsnd.snd` over all pairs, :func:`graphsnd.graph_snd` on a graph that is there already, and the Python loop
over all pairs. All have one thread. Edge budgets are matched,
:math:`|E| = nd/2` with :math:`d = \lceil \log_2 n \rceil`: the Bernoulli graph has them on average, the nearest-
neighbour graph, the undirected union with k = d, a few more. The row of 10 000 agents is not in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.graphs import Graph
from graphsnd.metric import graph_snd, snd
from graphsnd.plots.provenance import processor_name
from paper.cells import Cells
from paper.construction.figure import construction_figure
from paper.construction.numbers import BUILDERS, numbers
from paper.experiment import Experiment, Outcome, Scale
from paper.rows import encode
from paper.shared.pairloop import Answers, all_pairs, loop_mean
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import Conditions, take_turns

SEED, ACTIONS, OBSERVATIONS = 0, 2, 4096
LOOP_AGENTS, LOOP_PAIRS, WARM_CALLS = 20, 100, 3

Calls = dict[str, Callable[[], int]]


@dataclass(frozen=True)
class Size:
    """A team size, its degree, and how it is timed."""

    n: int
    degree: int
    trials: int
    metric_trials: int = 20
    observations: int = OBSERVATIONS  # of the fused calls, whose time is scaled up where there are fewer


_TABLE = (Size(50, 6, 50), Size(100, 7, 50), Size(500, 9, 20))
SIZES: dict[Scale, Sequence[Size]] = {
    Scale.SMOKE: (Size(50, 6, 3, 3, 256), Size(100, 7, 3, 3, 256)),
    Scale.LAPTOP: (*_TABLE, Size(10_000, 14, 20, 3, 16)),
    Scale.PAPER: (*_TABLE, Size(10_000, 14, 20, 5, 16)),
}


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Time builders and metric at every size, on the CPU."""
    rows = [
        cells.get(f"n={size.n}", {**asdict(size), "maker": processor_name()}, partial(measure, size))
        for size in SIZES[scale]
    ]
    return Outcome({"sizes": rows}, numbers(rows), (SEED,))


def measure(size: Size) -> dict[str, Any]:
    """Time the builders and then the metric at one size, with one thread.

    Returns:
        The size, the conditions ``before`` and ``after``, and ``calls``: what
        :func:`~paper.shared.stopwatch.take_turns` gives for every builder and for ``"snd"``,
        ``"graph_snd"`` and ``"loop"``, each with ``whole``, by which its seconds are to be multiplied where a part of
        the work was timed.

    Example:
        >>> found = measure(Size(50, 6, 2, 2, 16))
        >>> found["calls"]["regular"]["pairs"], found["calls"]["snd"]["whole"], found["calls"]["loop"]["whole"]
        ([150, 150], 256.0, 12.25)
    """
    device = torch.device("cpu")
    parts = OBSERVATIONS / size.observations
    whole = {"snd": parts, "graph_snd": parts, "loop": math.comb(size.n, 2) / LOOP_PAIRS}
    with one_thread():
        before = encode(Conditions.now(device))
        found = {**_timed(builder_calls(size), size.trials), **_timed(metric_calls(size), size.metric_trials)}
        rows = {name: {**one, "whole": whole.get(name, 1.0)} for name, one in found.items()}
        return {**asdict(size), "before": before, "after": encode(Conditions.now(device)), "calls": rows}


def _timed(calls: Calls, trials: int) -> dict[str, Any]:
    for _ in range(WARM_CALLS):
        for call in calls.values():
            call()
    return encode(take_turns(calls, trials=dict.fromkeys(calls, trials), device=torch.device("cpu")))


def builder_calls(size: Size) -> Calls:
    """The paper's four builders; positions are standard normal, in as many dimensions as there are actions."""
    n, edges = size.n, size.n * size.degree // 2
    generator = torch.Generator().manual_seed(SEED)
    positions = torch.randn(n, ACTIONS, generator=generator)
    ways: dict[str, Callable[[], Graph]] = {
        "bernoulli": lambda: graphs.bernoulli(n, edges / math.comb(n, 2), seed=generator),
        "uniform": lambda: graphs.uniform(n, edges, seed=generator),
        "regular": lambda: graphs.random_regular(n, size.degree, seed=generator),
        "knn": lambda: graphs.knn(positions, size.degree),
    }

    def edges_of(way: Callable[[], Graph]) -> int:
        return way().m

    return {name: partial(edges_of, ways[name]) for name in BUILDERS}


def metric_calls(size: Size) -> Calls:
    """What the graphs are drawn for. The loop is timed on pairs of a few agents: each pair is like any other."""
    generator = torch.Generator().manual_seed(SEED)
    team, few = (_team(n, o, generator) for n, o in ((size.n, size.observations), (LOOP_AGENTS, OBSERVATIONS)))
    graph = graphs.random_regular(size.n, size.degree, seed=SEED)
    answers, some = Answers.of(few), all_pairs(LOOP_AGENTS)[:LOOP_PAIRS].tolist()

    def exact() -> int:
        float(snd(team))
        return math.comb(size.n, 2)

    def on_graph() -> int:
        float(graph_snd(team, graph))
        return graph.m

    def loop() -> int:
        loop_mean(answers, some)
        return LOOP_PAIRS

    return {"snd": exact, "graph_snd": on_graph, "loop": loop}


def _team(n: int, observations: int, generator: torch.Generator) -> Gaussian:
    shape = (observations, n, ACTIONS)
    return Gaussian(torch.randn(shape, generator=generator), torch.rand(shape, generator=generator) + 0.1)


EXPERIMENT = Experiment("construction", "Time to build a graph, beside the metric on it", run, construction_figure)
