"""Calls of the metric as the stopwatch times them: each does its work, reads the result and returns its pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from graphsnd.behavior import Behavior
from graphsnd.graphs import Graph
from graphsnd.metric import graph_snd, snd

Call = Callable[[], int]
Pairs = Sequence[Sequence[int]]


def loop_call(mean: Callable[[Pairs], float], draw: Callable[[], Pairs]) -> Call:
    """Return a call that draws pairs and takes the mean over them in a Python loop."""

    def call() -> int:
        pairs = draw()
        mean(pairs)
        return len(pairs)

    return call


def fused_call(team: Behavior, draw: Callable[[], Graph] | None = None) -> Call:
    """Return a call of the library over the edges of a graph that is drawn inside, or over all pairs."""

    def call() -> int:
        if draw is None:
            float(snd(team))
            return math.comb(team.agents, 2)
        graph = draw()
        float(graph_snd(team, graph))
        return graph.m

    return call
