r"""Is the Horvitz-Thompson estimate unbiased? Eight agents, thousands of Bernoulli graphs (Appendix C of the paper).

With every pair drawn independently with probability p, the estimate has mean SND and, exactly,

.. math:: \mathrm{Var} = \frac{1 - p}{p} \cdot \frac{1}{|P|^2} \sum_{\{i,j\}} d(i,j)^2.

The paper says that the variance scales as 1/p. That is the limit of small p: a complete graph has no variance at all.

The guarantees hold for any bounded distance; the paper mentions synthetic checks without Gaussians. So the experiment
also estimates SND of random categorical policies and random quantile functions. It tests whether the mean is biased,
and how often the error of a uniform sample of pairs exceeds Hoeffding's radius.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import Categorical, Gaussian, Hellinger, Quantiles, TotalVariation, Wasserstein
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import Sampling
from graphsnd.metric import graph_snd, horvitz_thompson, pairwise, snd
from graphsnd.plots.style import BLUE, ESTIMATE, GREEN, MUTED, TRUTH, styled_figure
from graphsnd.rl.streams import hashed
from paper.experiment import Z95, Experiment, Number, Outcome, Scale
from paper.runner import Cells
from paper.shared.draws import indicators
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Snapshot, at_checkpoints

AGENTS = 8
PROBABILITIES = (0.1, 0.25, 0.5, 0.75)
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}
DRAW_SEED = 11
WEIGHTED = 8  # graphs of every cell that are also weighted by 1/p
SMALL = 4  # agents whose graphs are all enumerated
DELTA, SAMPLED = 0.1, 9  # chance that Hoeffding's radius is exceeded, and the number of pairs in its sample
SYNTHETIC_SEED, OBSERVATIONS, CATEGORIES = 12, 256, 5


@dataclass(frozen=True)
class Cell:
    """The estimates of many graphs at one probability and checkpoint, beside the expected values."""

    p: float
    mean: float
    se: float  # standard error of the mean
    z: float  # distance of the mean from SND in standard errors
    variance_ratio: float  # variance over the exact variance
    variance_ratio_error: float
    cancellation_error: float


@dataclass(frozen=True)
class Team:
    """One team at one point of its training."""

    iteration: int
    snd: float
    distances: list[float]
    enumerated_bias: float
    cells: list[Cell]


@dataclass(frozen=True)
class Synthetic:
    """A random team without Gaussians."""

    distance: str
    snd: float
    z: list[float]  # z of the mean estimate, by probability
    violations: float  # share of uniform samples beyond Hoeffding's radius


@dataclass(frozen=True)
class Data:
    """Both teams, and synthetic ones."""

    draws: int
    teams: list[Team]
    synthetic: list[Synthetic]


def run(scale: Scale, cells: Cells) -> Outcome:
    """Estimate SND of both teams from many graphs at every probability."""
    draws = DRAWS[scale]
    settings = {"draws": draws, "probabilities": PROBABILITIES, "draw_seed": DRAW_SEED}
    teams = at_checkpoints(scale, cells, AGENTS, settings, lambda snapshot: _measure_team(snapshot, draws), Team)
    about = {"draws": draws, "probabilities": PROBABILITIES, "seed": SYNTHETIC_SEED}
    synthetic = cells.get("synthetic", about, lambda: measure_synthetic(draws), list[Synthetic])
    data = Data(draws, teams, synthetic)
    return Outcome(data, summarise(data), (TRAINING_SEED, ROLLOUT_SEED, DRAW_SEED))


def _measure_team(snapshot: Snapshot, draws: int) -> Team:
    behavior = snapshot.behavior()
    exact, distances = float(snd(behavior)), pairwise(behavior, graph=graphs.complete(AGENTS))
    cells = []
    for place, p in enumerate(PROBABILITIES):
        generator = hashed(DRAW_SEED, snapshot.iteration, place)
        drawn = [graphs.bernoulli(AGENTS, p, seed=generator) for _ in range(draws)]
        cancellation = max(cancellation_error(behavior, graph) for graph in drawn[:WEIGHTED])
        cells.append(Cell(p, *describe_estimates(exact, distances, indicators(drawn), p), cancellation))
    return Team(snapshot.iteration, exact, distances.tolist(), enumerate_bias(behavior), cells)


def measure_synthetic(draws: int) -> list[Synthetic]:
    """Estimate SND of random teams of categories and of quantile functions, in the same way as for trained teams."""
    generator = hashed(SYNTHETIC_SEED)
    shape = (OBSERVATIONS, AGENTS, CATEGORIES)
    logits, values = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    # Each agent has its own shift, so that the distances of pairs differ.
    shift = torch.randn(AGENTS, CATEGORIES, generator=generator, dtype=torch.float64)
    categories = Categorical(probs=(logits + shift).softmax(-1))
    quantiles = Quantiles((values + shift).sort(-1).values.unsqueeze(-2))
    rows, (i, j) = [], torch.triu_indices(AGENTS, AGENTS, 1)
    teams = ((categories, TotalVariation()), (categories, Hellinger()), (quantiles, Wasserstein()))
    for behavior, distance in teams:
        distances = pairwise(behavior, distance)[i, j].double()
        exact, scores = float(distances.mean()), []
        for p in PROBABILITIES:
            drawn = [graphs.bernoulli(AGENTS, p, seed=generator) for _ in range(draws)]
            scores.append(describe_estimates(exact, distances, indicators(drawn), p)[2])
        sampled = indicators([graphs.uniform(AGENTS, SAMPLED, seed=generator) for _ in range(draws)])
        radius = float(distances.max()) * math.sqrt(math.log(2 / DELTA) / (2 * SAMPLED))
        misses = ((sampled @ distances / SAMPLED - exact).abs() >= radius).double()
        rows.append(Synthetic(distance.name, exact, scores, float(misses.mean())))
    return rows


def estimate(chosen: Tensor, distances: Tensor, p: float) -> Tensor:
    r"""Return the Horvitz-Thompson estimates of many graphs at once, :math:`Z d / (p |P|)`: ``[graphs]``."""
    return chosen @ distances / (p * len(distances))


def describe_estimates(
    exact: float, distances: Tensor, chosen: Tensor, p: float
) -> tuple[float, float, float, float, float]:
    """Return mean, its standard error, z, and variance over the exact one with its error, of one cell.

    Args:
        exact: SND over all pairs.
        distances: Distances of all pairs, float64 ``[pairs]``.
        chosen: Indicators of many graphs, from :func:`~paper.shared.draws.indicators`.
        p: Probability of a pair.
    """
    values = estimate(chosen, distances, p).numpy()
    draws, total = chosen.shape
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    se = math.sqrt(variance / draws)
    exact_variance = (1 - p) / p * float(distances.square().sum()) / total**2
    # The variance of a sample variance, from the fourth moment.
    spread = math.sqrt(max(0.0, float(((values - mean) ** 4).mean()) - variance**2) / draws)
    return mean, se, (mean - exact) / se, variance / exact_variance, spread / exact_variance


def enumerate_bias(behavior: Gaussian) -> float:
    """Return the expectation over every graph on the first four agents, at every probability, relative to their SND."""
    few = Gaussian(behavior.loc[..., :SMALL, :], behavior.scale[..., :SMALL, :])
    exact, complete = float(snd(few)), graphs.complete(SMALL)
    largest = 0.0
    for p in PROBABILITIES:
        expectation = 0.0
        for picks in itertools.product((False, True), repeat=complete.pairs):
            edges = complete.edges[torch.tensor(picks)]
            graph = Graph(SMALL, edges, inclusion=p, sampling=Sampling.INDEPENDENT)
            chance = p**graph.m * (1 - p) ** (graph.pairs - graph.m)
            expectation += chance * float(horvitz_thompson(few, graph))
        largest = max(largest, abs(expectation / exact - 1))
    return largest


def cancellation_error(behavior: Gaussian, graph: Graph) -> float:
    """Return how much Graph-SND with weights 1/p differs from the plain mean over the edges (Remark 8)."""
    if graph.m == 0 or graph.inclusion is None:
        return 0.0
    weighted = Graph(graph.n, graph.edges, torch.full((graph.m,), 1 / graph.inclusion, dtype=torch.float64))
    return abs(float(graph_snd(behavior, weighted)) - float(pairwise(behavior, graph=graph).mean()))


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    cells = [cell for team in data.teams for cell in team.cells]
    scores = [abs(z) for team in data.synthetic for z in team.z]
    return {
        "covering_cells": Number(sum(abs(cell.z) <= Z95 for cell in cells), kind=f"of {len(cells)} cells"),
        "largest_z": Number.range(abs(cell.z) for cell in cells),
        "variance_times_p_ratio": _variance_times_p(cells),
        "enumerated_bias": Number(max(team.enumerated_bias for team in data.teams)),
        "cancellation_error": Number(max(cell.cancellation_error for cell in cells)),
        "synthetic_largest_z": Number.range(scores, "distances and probabilities"),
        "synthetic_violation_share": Number.range((team.violations for team in data.synthetic), "distances"),
    }


def _variance_times_p(cells: list[Cell]) -> Number:
    """Compare p Var at the largest p with that at the smallest, variances in units of each team's exact ones."""

    def pool(p: float) -> tuple[float, float]:
        mine = [cell for cell in cells if cell.p == p]
        mean = sum(cell.variance_ratio for cell in mine) / len(mine)
        return mean, math.sqrt(sum(cell.variance_ratio_error**2 for cell in mine)) / len(mine) / mean

    low, high = min(cell.p for cell in cells), max(cell.p for cell in cells)
    (first, first_error), (last, last_error) = pool(low), pool(high)
    # p times the exact variance is (1 - p) times what does not depend on p.
    value = last * (1 - high) / (first * (1 - low))
    return Number.around(value, Z95 * value * math.hypot(first_error, last_error), "95% interval")


def draw(data: Data) -> Figure:
    """Draw the mean estimates relative to SND, a panel for each checkpoint, and their variance against p."""
    with styled_figure(12.4, 4.2) as figure:
        left, middle, right = figure.subplots(1, 3)
        middle.sharey(left)
        for ax, team in zip((left, middle), data.teams, strict=True):
            _draw_means(ax, team, data.draws)
        left.set_ylabel("mean estimate / SND")
        _draw_variances(right, data.teams)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3)
        return figure


def _draw_means(ax: Axes, team: Team, draws: int) -> None:
    ax.axhline(1, color=TRUTH, linestyle="--", linewidth=1.2, label="SND, all pairs")
    means, half = (np.asarray([(cell.mean, Z95 * cell.se) for cell in team.cells]) / team.snd).T
    label = f"mean of {draws:,} graphs, 95% interval"
    ax.errorbar(range(len(means)), means, half, fmt="o", markersize=5, color=ESTIMATE, capsize=3, label=label)
    for x, cell in enumerate(team.cells):
        top = max((cell.mean + Z95 * cell.se) / team.snd, 1.0)
        ax.annotate(f"z = {cell.z:+.2f}", (x, top), (0, 4), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(range(len(team.cells)), [f"{cell.p:g}" for cell in team.cells])
    ax.set_xlim(-0.6, len(team.cells) - 0.4)
    ax.margins(y=0.3)
    ax.set(xlabel="probability p of a pair", title=f"Iteration {team.iteration},  SND {team.snd:.4f}")


def _draw_variances(ax: Axes, teams: list[Team]) -> None:
    p = np.linspace(0.08, 0.82, 200)
    ax.plot(p, (1 - p) / p, color=TRUTH, linewidth=1.4, label="exact: $(1-p)/p$")
    ax.plot(p, 1 / p, color=MUTED, linewidth=1.2, linestyle=(0, (4, 2)), label="the paper: $1/p$")
    # Open and larger, so that two checkpoints that agree are both seen.
    looks: tuple[dict[str, Any], ...] = (
        {"fmt": "o", "color": BLUE, "markersize": 5},
        {"fmt": "s", "color": GREEN, "markersize": 9, "markerfacecolor": "none"},
    )
    for team, look in zip(teams, looks, strict=True):
        # In units of the sum of squares, the exact variance is (1 - p)/p.
        units = [(1 - cell.p) / cell.p for cell in team.cells]
        means = [cell.variance_ratio * unit for cell, unit in zip(team.cells, units, strict=True)]
        half = [Z95 * cell.variance_ratio_error * unit for cell, unit in zip(team.cells, units, strict=True)]
        label = f"measured, iteration {team.iteration}"
        ax.errorbar([cell.p for cell in team.cells], means, half, capsize=3, label=label, **look)
    ylabel = r"variance $\cdot\ |P|^2 /\ \sum d^2$"
    ax.set(yscale="log", xlabel="probability p of a pair", ylabel=ylabel, title="Variance")
    ax.grid()
    ax.legend(loc="lower left")


EXPERIMENT = Experiment("unbiasedness", "Horvitz-Thompson estimates of eight agents' SND", run, draw, Data)
