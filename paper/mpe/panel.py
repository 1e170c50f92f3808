"""The measurement panel: three sparse graphs on the distances of one team, thousands of draws each.

The mean over the edges of a Bernoulli graph is unbiased given that the graph has an edge. Draws without one (0.9 per
cent of them at n = 10 and p = 0.1) have no mean and are left out. They are counted, and the bias is also given with the
paper's convention that Graph-SND is then 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd import bounds, graphs
from graphsnd.graphs import Graph, pairs
from graphsnd.training.streams import hashed
from paper.shared.draws import indicators
from paper.shared.expected import bernoulli_error, regular_error

THRESHOLD, DELTA = 0.05, 0.1
D_MAX = 1.0  # of total variation
DRAW_SEED = 55


@dataclass(frozen=True)
class Estimator:
    """A sparse graph that is drawn anew for every estimate: each pair with a probability, or each agent with a degree.

    The paper calls a random graph of degree 2 an expander. It is a union of rings.
    """

    name: str
    label: str  # for people to read
    p: float | None = None
    degree: int | None = None

    def build(self, n: int, generator: torch.Generator) -> Graph:
        """Draw one."""
        if self.degree is not None:
            return graphs.random_regular(n, self.degree, seed=generator)
        return graphs.bernoulli(n, self.share(n), seed=generator)

    def share(self, n: int) -> float:
        """Probability of a pair.

        Example:
            >>> ESTIMATORS[0].share(10), round(ESTIMATORS[2].share(10), 3)
            (0.1, 0.222)
        """
        return self.p if self.p is not None else (self.degree or 0) / (n - 1)

    def error(self, distances: Tensor) -> float:
        """Exact standard deviation of its mean, given an edge, from the matrix of distances ``[n, n]``."""
        if self.degree is not None:
            return regular_error(distances, self.degree)
        return bernoulli_error(distances, self.share(len(distances)))


ESTIMATORS = (
    Estimator("bernoulli_010", "Bernoulli 0.1", p=0.1),
    Estimator("bernoulli_025", "Bernoulli 0.25", p=0.25),
    Estimator("regular_2", "2-regular", degree=2),
)


def draw(estimator: Estimator, n: int, draws: int, seed: int) -> Tensor:
    """The pairs of many graphs: float64 ``[draws, pairs]`` of 0 and 1, pairs in lexicographic order.

    The same graphs for every team of a seed, so that teams are compared on the same draws.

    Example:
        >>> draw(ESTIMATORS[2], 10, 3, 0).sum(1).tolist()
        [10.0, 10.0, 10.0]
    """
    generator = hashed(DRAW_SEED, seed, [one.name for one in ESTIMATORS].index(estimator.name))
    return indicators([estimator.build(n, generator) for _ in range(draws)])


def summarise(estimator: Estimator, chosen: Tensor, distances: Tensor) -> dict[str, Any]:
    """What an estimator did on one team.

    Args:
        estimator: Which.
        chosen: From :func:`draw`.
        distances: float64 ``[pairs]``, in lexicographic order.

    Returns:
        Bias with its standard error, share of draws off by more than 0.05, root mean square error beside the exact
        one, share of draws off by Hoeffding's radius or more (with 1 and with the largest distance as D_max), and that
        radius at the mean number of edges and with the largest distance.
    """
    counts = chosen.sum(1)
    full = counts > 0
    exact, m = float(distances.mean()), counts[full]
    errors = chosen[full] @ distances / m - exact
    radius = torch.tensor([bounds.hoeffding(1.0, int(k), DELTA) for k in m.tolist()], dtype=torch.float64)
    draws, largest = len(chosen), float(distances.max())
    convention = torch.where(full, (chosen @ distances) / counts.clamp(min=1), 0.0) - exact
    return {
        "estimator": estimator.name,
        "draws": draws,
        "empty": int(draws - full.sum()),
        "mean_pairs": float(counts.mean()),
        "bias": float(errors.mean()),
        "bias_error": float(errors.std(correction=1)) / math.sqrt(len(errors)),
        "bias_empty_as_zero": float(convention.mean()),
        "rmse": float(errors.square().mean().sqrt()),
        "exact_rmse": estimator.error(matrix(distances)),
        "violations": float((errors.abs() > THRESHOLD).double().mean()),
        "hoeffding_violations": float((errors.abs() >= D_MAX * radius).double().mean()),
        "hoeffding_violations_largest": float((errors.abs() >= largest * radius).double().mean()),
        "radius": largest * bounds.hoeffding(1.0, 1, DELTA) / math.sqrt(float(counts.mean())),
    }


def disconnected(chosen: Tensor) -> float:
    """The share of graphs that fall into several pieces.

    Args:
        chosen: From :func:`draw`.

    Example:
        >>> disconnected(torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))  # a path, and an edge beside a lone agent
        0.5
    """
    from scipy.sparse.csgraph import connected_components

    pieces = [connected_components(matrix(row).numpy(), directed=False)[0] for row in chosen]
    return sum(count > 1 for count in pieces) / len(pieces)


def matrix(distances: Tensor) -> Tensor:
    """Distances ``[pairs]`` as the symmetric matrix ``[n, n]``.

    Example:
        >>> matrix(torch.tensor([1.0, 2.0, 3.0]))
        tensor([[0., 1., 2.],
                [1., 0., 3.],
                [2., 3., 0.]])
    """
    n = (1 + math.isqrt(1 + 8 * len(distances))) // 2
    i, j = pairs.unrank(torch.arange(len(distances)), n).T
    found = distances.new_zeros(n, n)
    found[i, j] = found[j, i] = distances
    return found
