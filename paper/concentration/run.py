r"""How far the mean over m sampled pairs is from SND: sixteen agents, six sizes, thousands of draws (Appendix B).

With N pairs and the variance :math:`S^2` of their distances (N - 1 in its denominator), the error of a uniform draw of
m pairs has the standard deviation

.. math:: \frac{S}{\sqrt m} \sqrt{1 - \frac{m}{N}}

exactly. So it falls like :math:`1/\sqrt m` only where m is small against N; from 5% to 80% of the pairs it falls
faster, as Serfling's radius does and Hoeffding's does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from graphsnd import bounds, graphs
from graphsnd.metric import edge_distances, graph_snd, pairwise, snd
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.concentration.figure import figure
from paper.concentration.numbers import numbers
from paper.expanders import initial_team
from paper.experiment import Experiment, Outcome, Scale
from paper.shared.draws import indicators, many_bernoulli
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Checkpoint, Snapshot, at_checkpoints

AGENTS = 16
SIZES = (6, 12, 24, 48, 72, 96)
PROBABILITIES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # of Bernoulli graphs with as many edges on average
DELTA = 0.1
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}
LARGE = {Scale.SMOKE: 0, Scale.LAPTOP: 500, Scale.PAPER: 500}  # agents for which the theorem's edges are counted
LARGE_OBSERVATIONS = 1024
DRAW_SEED = 33
DIRECT = 8  # graphs of every cell whose mean is also computed by the kernel, not from the matrix
LEVEL = 0.95  # of the errors, the curve of the paper's figure
CHERNOFF_AGENTS = (4, 8, 16, 50, 100, 500)
CHERNOFF_PROBABILITIES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Draw many graphs of every size for both teams."""
    draws, large = DRAWS[scale], LARGE[scale]
    settings = {"draws": draws, "sizes": SIZES, "p": PROBABILITIES, "seed": DRAW_SEED, "delta": DELTA}
    teams = at_checkpoints(scale, cells, AGENTS, settings, lambda found: _team(found, draws), dict)
    data = {"agents": AGENTS, "pairs": math.comb(AGENTS, 2), "draws": draws, "delta": DELTA, "teams": teams}
    data["chernoff_ratio"] = chernoff_ratio()
    if large:
        about = {"agents": large, "observations": LARGE_OBSERVATIONS, "delta": DELTA}
        data["enough"] = cells.get(f"enough,n={large}", about, lambda: enough(large, LARGE_OBSERVATIONS))
    return Outcome(data, numbers(data), (TRAINING_SEED, ROLLOUT_SEED, DRAW_SEED))


def _team(found: Snapshot, draws: int) -> dict[str, Any]:
    behavior = found.behavior()
    exact, distances = float(snd(behavior)), edge_distances(behavior, graphs.complete(AGENTS))
    cells, bernoulli = [], []
    for place, (m, p) in enumerate(zip(SIZES, PROBABILITIES, strict=True)):
        generator = hashed(DRAW_SEED, found.iteration, place)
        drawn = [graphs.uniform(AGENTS, m, seed=generator) for _ in range(draws)]
        means = indicators(drawn) @ distances / m
        direct = torch.stack([graph_snd(behavior, graph) for graph in drawn[:DIRECT]])
        cell = summarise(means - exact, distances, m)
        cells.append({**cell, "direct_difference": float((means[:DIRECT] - direct).abs().max())})
        bernoulli.append(unconditional(distances, p, draws, generator))
    return {
        **vars(Checkpoint(*found.about)),
        "snd": exact,
        "distances": distances.tolist(),
        "cells": cells,
        "bernoulli": bernoulli,
    }


def summarise(errors: Tensor, distances: Tensor, m: int) -> dict[str, float]:
    """Errors of one size beside their bounds and their exact standard deviation.

    Args:
        errors: float64 ``[draws]``, of the means over m pairs.
        distances: float64 ``[pairs]``; the largest is the D_max of the bounds.
        m: Pairs of a draw.
    """
    total, d_max = len(distances), float(distances.max())
    hoeffding, serfling = bounds.hoeffding(d_max, m, DELTA), bounds.serfling(d_max, m, total, DELTA)
    sizes = errors.abs().sort().values.numpy()
    low, middle, high = _quantile(sizes, LEVEL)
    return {
        "m": m,
        "hoeffding": hoeffding,
        "serfling": serfling,
        "quantile": middle,
        "quantile_low": low,
        "quantile_high": high,
        "largest": float(sizes[-1]),
        "rms": float(errors.square().mean().sqrt()),
        "exact_sd": float(distances.std(correction=1)) * math.sqrt((1 - m / total) / m),
        "hoeffding_violations": int((sizes >= hoeffding).sum()),
        "serfling_violations": int((sizes >= serfling).sum()),
    }


def _quantile(ordered: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """A quantile with a 95% interval, whose ends are order statistics as a binomial count has them."""
    count = len(ordered)
    half = 1.96 * math.sqrt(count * level * (1 - level))
    ranks = (max(0, math.floor(count * level - half)), min(count - 1, math.ceil(count * level + half)))
    return float(ordered[ranks[0]]), float(np.quantile(ordered, level)), float(ordered[ranks[1]])


def unconditional(distances: Tensor, p: float, draws: int, generator: torch.Generator) -> dict[str, float]:
    """How often a Bernoulli graph that has an edge is beyond the radius of Remark 10, beside what is allowed."""
    chosen = many_bernoulli(AGENTS, p, draws, generator)
    counts = chosen.sum(1)
    errors = (chosen @ distances / counts.clamp(min=1) - distances.mean()).abs()
    bound = bounds.bernoulli(float(distances.max()), p, AGENTS, DELTA)
    beyond = float(((counts > 0) & (errors > bound.radius)).double().mean())
    empty = float((counts == 0).double().mean())
    return {"p": p, "radius": bound.radius, "allowed": bound.failure, "beyond": beyond, "empty": empty}


def chernoff_ratio() -> float:
    r"""Largest :math:`P(|E| < \mu/2) / e^{-\mu/8}` over team sizes and probabilities, from the binomial distribution.

    Example:
        >>> 0 < chernoff_ratio() < 1
        True
    """
    logs = []
    for n in CHERNOFF_AGENTS:
        for p in CHERNOFF_PROBABILITIES:
            mean = p * math.comb(n, 2)
            logs.append(float(stats.binom.logcdf(math.ceil(mean / 2) - 1, math.comb(n, 2), p)) + mean / 8)
    return math.exp(max(logs))


def enough(n: int, observations: int) -> dict[str, float]:
    """Edges that Theorem 9 asks for so that the error of a team of ``n`` initial policies is a tenth of its SND."""
    matrix = pairwise(initial_team(n, observations=observations)).double()
    value, d_max = float(matrix.sum()) / (n * (n - 1)), float(matrix.max())
    edges = bounds.edges_for(0.1 * value, d_max, DELTA)
    return {"agents": n, "snd": value, "d_max": d_max, "edges": edges, "share": edges / math.comb(n, 2)}


EXPERIMENT = Experiment("concentration", "How far sampled pairs are from SND, and how far they may be", run, figure)
