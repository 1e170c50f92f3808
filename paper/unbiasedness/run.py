r"""Is the Horvitz-Thompson estimate unbiased? Eight agents, thousands of Bernoulli graphs (Appendix B of the paper).

With every pair drawn independently with probability p, the estimate has mean SND and, exactly,

.. math:: \mathrm{Var} = \frac{1 - p}{p} \cdot \frac{1}{|P|^2} \sum_{\{i,j\}} d(i,j)^2.

The paper says that the variance scales as 1/p. That is the limit of small p: a complete graph has no variance at all.

Every cell is repeated with a hundred times as many graphs, which shows a bias that is ten times as small.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.graphs import Graph, Sampling
from graphsnd.metric import edge_distances, graph_snd, horvitz_thompson, snd
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.experiment import Experiment, Outcome, Scale
from paper.shared.draws import indicators, many_bernoulli
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Checkpoint, Snapshot, at_checkpoints
from paper.unbiasedness.figure import figure
from paper.unbiasedness.numbers import Z95, numbers

AGENTS = 8
PROBABILITIES = (0.1, 0.25, 0.5, 0.75)
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}
LONG = {Scale.SMOKE: 4000, Scale.LAPTOP: 200_000, Scale.PAPER: 200_000}  # graphs of a test ten times as sharp
DRAW_SEED = 11
DIRECT = 8  # graphs of every cell whose estimate is also computed by the kernel, not from the matrix
SMALL = 4  # agents whose graphs are all enumerated


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Estimate SND of both teams from many graphs at every probability."""
    draws, long = DRAWS[scale], LONG[scale]
    settings = {"draws": draws, "long": long, "probabilities": PROBABILITIES, "draw_seed": DRAW_SEED}
    teams = at_checkpoints(scale, cells, AGENTS, settings, lambda found: _team(found, draws, long), dict)
    data = {"agents": AGENTS, "pairs": math.comb(AGENTS, 2), "draws": draws, "long": long, "teams": teams}
    return Outcome(data, numbers(teams), (TRAINING_SEED, ROLLOUT_SEED, DRAW_SEED))


def _team(found: Snapshot, draws: int, long: int) -> dict[str, Any]:
    behavior = found.behavior()
    exact, distances = float(snd(behavior)), edge_distances(behavior, graphs.complete(AGENTS))
    cells: list[dict[str, Any]] = []
    for place, p in enumerate(PROBABILITIES):
        generator = hashed(DRAW_SEED, found.iteration, place)
        drawn = [graphs.bernoulli(AGENTS, p, seed=generator) for _ in range(draws)]
        chosen = indicators(drawn)
        direct = torch.stack([horvitz_thompson(behavior, graph) for graph in drawn[:DIRECT]])
        cells.append(
            {
                **summarise(exact, distances, chosen, p),
                "long": summarise(exact, distances, many_bernoulli(AGENTS, p, long, generator), p),
                "direct_difference": float((estimates(chosen[:DIRECT], distances, p) - direct).abs().max()),
                "cancellation_error": max(cancellation(behavior, graph) for graph in drawn[:DIRECT]),
            }
        )
    values = {"snd": exact, "distances": distances.tolist(), "enumerated_bias": enumerate_bias(behavior)}
    return {**vars(Checkpoint(*found.about)), **values, "cells": cells}


def estimates(chosen: Tensor, distances: Tensor, p: float) -> Tensor:
    r"""Horvitz-Thompson estimates of many graphs at once, :math:`Z d / (p |P|)`: ``[graphs]``."""
    return chosen @ distances / (p * len(distances))


def summarise(exact: float, distances: Tensor, chosen: Tensor, p: float) -> dict[str, float]:
    """Mean, error and variance of the estimates of one cell, beside what they should be.

    Args:
        exact: SND.
        distances: float64 ``[pairs]``.
        chosen: What :func:`indicators` gives.
        p: Probability of a pair.
    """
    found = estimates(chosen, distances, p).numpy()
    draws, total = chosen.shape
    mean, variance = float(found.mean()), float(found.var(ddof=1))
    se = math.sqrt(variance / draws)
    exact_variance = (1 - p) / p * float(distances.square().sum()) / total**2
    # The variance of a sample variance, from the fourth moment.
    spread = math.sqrt(max(0.0, float(((found - mean) ** 4).mean()) - variance**2) / draws)
    counts = chosen.sum(0).numpy()
    return {
        "p": p,
        "mean": mean,
        "se": se,
        "bias": mean - exact,
        "z": (mean - exact) / se,
        "low": mean - Z95 * se,
        "high": mean + Z95 * se,
        "variance": variance,
        "exact_variance": exact_variance,
        "variance_ratio": variance / exact_variance,
        "variance_ratio_error": spread / exact_variance,
        "inclusion_chi2": float(((counts - draws * p) ** 2).sum() / (draws * p * (1 - p))),
        "empty": float((chosen.sum(1) == 0).double().mean()),
    }


def enumerate_bias(behavior: Gaussian) -> float:
    """The expectation over every graph on the first four agents, at every probability, relative to their SND."""
    few = Gaussian(behavior.loc[..., :SMALL, :], behavior.scale[..., :SMALL, :])
    exact, everyone = float(snd(few)), graphs.complete(SMALL)
    largest = 0.0
    for p in PROBABILITIES:
        expectation = 0.0
        for picks in itertools.product((False, True), repeat=everyone.pairs):
            edges = everyone.edges[torch.tensor(picks)]
            graph = Graph(SMALL, edges, inclusion=p, sampling=Sampling.INDEPENDENT)
            chance = p**graph.m * (1 - p) ** (graph.pairs - graph.m)
            expectation += chance * float(horvitz_thompson(few, graph))
        largest = max(largest, abs(expectation / exact - 1))
    return largest


def cancellation(behavior: Gaussian, graph: Graph) -> float:
    """How much Graph-SND with weights 1/p differs from the plain mean over the edges (Remark 8 of the paper)."""
    if graph.m == 0 or graph.inclusion is None:
        return 0.0
    weighted = Graph(graph.n, graph.edges, torch.full((graph.m,), 1 / graph.inclusion, dtype=torch.float64))
    return abs(float(graph_snd(behavior, weighted)) - float(edge_distances(behavior, graph).mean()))


EXPERIMENT = Experiment("unbiasedness", "Horvitz-Thompson estimates of eight agents' SND", run, figure)
