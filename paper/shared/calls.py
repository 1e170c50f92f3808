r"""Calls of the metric for the stopwatch: a Python loop over pairs, as most code computes SND, and the fused kernels.

The loop is the setting in which the paper times its graphs, and in which a tenth of the pairs takes a tenth of the time
whatever the arithmetic costs: each turn pays for the launches of a chain of small operations and for one read of the
result. The kernels behind :mod:`graphsnd.metric` do all pairs in one launch, and are timed beside it.
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
    """What each policy returned, as a loop over agents keeps it: a contiguous tensor for everyone."""

    loc: Tensor  # [agents, observations, actions]
    scale: Tensor  # the same

    @classmethod
    def of(cls, behavior: Gaussian) -> Answers:
        """The same numbers as a behaviour's, agents first."""
        loc, scale = (part.flatten(0, -3).transpose(0, 1).contiguous() for part in (behavior.loc, behavior.scale))
        return cls(loc, scale)


def distance(answers: Answers, i: int, j: int) -> float:
    r"""The behavioural distance of two agents, by eight small operations and one read.

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
    """The mean distance over pairs, one after the other; 0 when there are none.

    Args:
        distance: Distance of two agents.
        pairs: Indices of two agents each, on the host; all pairs give SND, the edges of a graph Graph-SND.

    Example:
        >>> loop_mean(lambda i, j: j - i, all_pairs(3).tolist())
        1.3333333333333333
    """
    total = 0.0
    for i, j in pairs:
        total += distance(i, j)
    return total / len(pairs) if pairs else 0.0


def all_pairs(n: int) -> NDArray[np.int64]:
    """Every two of ``n`` agents once, ``[pairs, 2]``.

    Example:
        >>> all_pairs(3).tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(n, 1), axis=1)


def some_pairs(pairs: NDArray[np.int64], p: float, generator: np.random.Generator) -> list[list[int]]:
    """Each of these pairs with probability ``p``, by one random number for every pair.

    This is what suits a loop over few agents, where :func:`graphsnd.graphs.bernoulli` would take longer than the pairs
    that it leaves. Over many agents it takes longer itself, but no time beside the loop.

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
    """Return a call of the library over the edges of a graph that is drawn inside, or over all pairs."""

    def call() -> int:
        if draw is None:
            float(snd(team))
            return math.comb(team.agents, 2)
        graph = draw()
        float(graph_snd(team, graph))
        return graph.m

    return call
