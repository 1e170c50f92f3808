"""The definitions once more, in float64, one pair and one observation at a time; nothing of graphsnd is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy import linalg, special
from scipy.spatial import distance as spatial

PairDistance = Callable[[int, int, int], float]  # observation, agent, agent


def distances(agents: int, observations: int, pair: PairDistance) -> np.ndarray:
    """Equation (1): the matrix of d(i, j)."""
    matrix = np.zeros((agents, agents))
    for i in range(agents):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = math.fsum(pair(o, i, j) for o in range(observations)) / observations
    return matrix


def snd(matrix: np.ndarray) -> float:
    """Equation (2)."""
    n = len(matrix)
    values = [matrix[i, j] for i in range(n) for j in range(i + 1, n)]
    return math.fsum(values) / len(values)


def graph_snd(matrix: np.ndarray, edges: Iterable[tuple[int, int]], weights: Iterable[float] | None = None) -> float:
    """Definition 1."""
    edges = list(edges)
    weights = [1.0] * len(edges) if weights is None else list(weights)
    if sum(weights) == 0:
        return 0.0
    total = math.fsum(w * matrix[i, j] for w, (i, j) in zip(weights, edges, strict=True))
    return total / math.fsum(weights)


def euclidean(x: np.ndarray, y: np.ndarray) -> float:
    return math.sqrt(math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)))


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return math.fsum(abs(float(a) - float(b)) for a, b in zip(p, q, strict=True)) / 2


def hellinger(p: np.ndarray, q: np.ndarray) -> float:
    return euclidean(np.sqrt(p), np.sqrt(q)) / math.sqrt(2)


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    return float(spatial.jensenshannon(p, q))


def bures_wasserstein(loc1: np.ndarray, cov1: np.ndarray, loc2: np.ndarray, cov2: np.ndarray) -> float:
    """Givens and Shortt's formula, with matrix square roots."""
    root = np.real(linalg.sqrtm(cov1))
    cross = np.real(linalg.sqrtm(root @ cov2 @ root))
    squared = np.sum((loc1 - loc2) ** 2) + np.trace(cov1) + np.trace(cov2) - 2 * np.trace(cross)
    return math.sqrt(max(float(squared), 0.0))


# Integrals over (0, 1) by the trapezoidal rule in z, u = Phi(z): it converges faster than any power for smooth
# quantile functions, whatever they do at 0 and 1.
GRID = np.linspace(-8.2, 8.2, 1001)
WEIGHTS = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()


def wasserstein_1d(quantiles: np.ndarray, others: np.ndarray) -> float:
    """2-Wasserstein distance of two one-dimensional distributions from their quantiles at Phi(GRID)."""
    return math.sqrt(float(np.sum(WEIGHTS * (quantiles - others) ** 2)))


def wasserstein_product(quantiles: np.ndarray, others: np.ndarray) -> float:
    """The same for independent dimensions, shape ``[actions, grid]``."""
    return math.sqrt(math.fsum(wasserstein_1d(a, b) ** 2 for a, b in zip(quantiles, others, strict=True)))


def beta_quantiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``[..., grid]``, each half from its own tail."""
    a, b, half = a[..., None], b[..., None], len(GRID) // 2
    lower = special.betaincinv(a, b, special.ndtr(GRID[:half]))
    upper = 1 - special.betaincinv(b, a, special.ndtr(-GRID[half:]))
    return np.concatenate([lower, upper], axis=-1)


def softmax(logits: np.ndarray) -> np.ndarray:
    return special.softmax(logits, axis=-1)
