r"""Calls of the metric for the stopwatch: a Python loop over pairs, as most code computes SND, and the fused kernels.

The paper times its graphs in such a loop. There a tenth of the pairs takes a tenth of the time, whatever the arithmetic
costs: each pair pays for the launches of several small operations and for one read of the result. The kernels behind
:mod:`graphsnd.metric` compute all pairs in one launch, and are timed beside the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.behavior import Behavior, Gaussian
from graphsnd.graphs import Graph
from graphsnd.metric import graph_snd, snd

Call = Callable[[], int]  # does its work, reads the result, and returns the number of pairs it looked at
Pairs = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Answers:
    """The outputs of each policy as a loop over agents stores them: a contiguous tensor for each agent."""

    loc: Tensor  # [agents, observations, actions]
    scale: Tensor  # [agents, observations, actions]

    @classmethod
    def of(cls, behavior: Gaussian) -> Answers:
        """Return the numbers of a behaviour, agents first."""
        loc, scale = (part.flatten(0, -3).transpose(0, 1).contiguous() for part in (behavior.loc, behavior.scale))
        return cls(loc, scale)


def distance(answers: Answers, i: int, j: int) -> float:
    r"""Return the behavioural distance of two agents, by eight small operations and one read.

    .. math:: d(i,j) = \frac{1}{|O|} \sum_{o \in O} \sqrt{\|\mu_i - \mu_j\|^2 + \|\sigma_i - \sigma_j\|^2} \qquad (1)

    Example:
        >>> import torch
        >>> distance(Answers(torch.tensor([[[0.0]], [[3.0]]]), torch.tensor([[[1.0]], [[5.0]]])), 0, 1)
        5.0
    """
    loc, scale = answers.loc, answers.scale
    squares = (loc[i] - loc[j]).square() + (scale[i] - scale[j]).square()
    return squares.sum(dim=-1).sqrt().mean().item()


def loop_mean(distance: Callable[[int, int], float], pairs: Pairs) -> float:
    """Return the mean distance over pairs, computed one after the other; 0 without pairs.

    Args:
        distance: Function that returns the distance of two agents.
        pairs: Pairs of agent indices, on the host. All pairs give SND; the edges of a graph give Graph-SND.

    Example:
        >>> loop_mean(lambda i, j: j - i, all_pairs(3).tolist())
        1.3333333333333333
    """
    total = 0.0
    for i, j in pairs:
        total += distance(i, j)
    return total / len(pairs) if pairs else 0.0


def all_pairs(n: int) -> NDArray[np.int64]:
    """Return every pair of ``n`` agents once, ``[pairs, 2]``.

    Example:
        >>> all_pairs(3).tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(n, 1), axis=1)


def some_pairs(pairs: NDArray[np.int64], p: float, generator: np.random.Generator) -> list[list[int]]:
    """Return each of these pairs with probability ``p``, by one random number for every pair.

    For few agents this is faster than :func:`graphsnd.graphs.bernoulli`, which would take longer than the loop over the
    kept pairs. For many agents it is slower than that builder, but takes little time compared with the loop.

    Example:
        >>> len(some_pairs(all_pairs(100), 0.1, np.random.default_rng(0)))
        520
    """
    return list(pairs[generator.random(len(pairs)) < p].tolist())


def loop_call(mean: Callable[[Pairs], float], draw: Callable[[], Pairs]) -> Call:
    """Return a call that draws pairs and takes the mean over them in a Python loop."""

    def call() -> int:
        pairs = draw()
        mean(pairs)
        return len(pairs)

    return call


def fused_call(team: Behavior, draw: Callable[[], Graph] | None = None) -> Call:
    """Return a call of the library over all pairs, or over the edges of a graph that is drawn inside the call."""

    def call() -> int:
        if draw is None:
            float(snd(team))
            return math.comb(team.agents, 2)
        graph = draw()
        float(graph_snd(team, graph))
        return graph.m

    return call
