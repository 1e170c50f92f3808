r"""How far the mean over m sampled pairs is from SND: sixteen agents, six sizes, thousands of draws (Appendix C).

With N pairs and the variance :math:`S^2` of their distances (N - 1 in its denominator), the error of a uniform draw of
m pairs has the standard deviation

.. math:: \frac{S}{\sqrt m} \sqrt{1 - \frac{m}{N}}

exactly. So it falls like :math:`1/\sqrt m` only where m is small against N; from 5% to 80% of the pairs it falls
faster, as Serfling's radius does and Hoeffding's does not.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from graphsnd import bounds, graphs
from graphsnd.metric import pairwise, snd
from graphsnd.plots.style import ESTIMATE, GREEN, INK, MUTED, ORANGE, TRUTH, styled_figure
from graphsnd.rl.streams import hashed
from paper.expanders import initial_team
from paper.experiment import Z95, Experiment, Number, Outcome, Scale
from paper.runner import Cells
from paper.shared.draws import indicators, many_bernoulli
from paper.shared.navigation import ROLLOUT_SEED, TRAINING_SEED, Snapshot, at_checkpoints

AGENTS = 16
SIZES = (6, 12, 24, 48, 72, 96)
PROBABILITIES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # of Bernoulli graphs with as many edges on average
DELTA = 0.1
DRAWS = {Scale.SMOKE: 200, Scale.LAPTOP: 2000, Scale.PAPER: 2000}
LARGE = {Scale.SMOKE: 0, Scale.LAPTOP: 500, Scale.PAPER: 500}  # agents for which the theorem's edges are counted
LARGE_OBSERVATIONS = 1024
DRAW_SEED = 33
LEVEL = 0.95  # quantile of the errors, the curve of the paper's figure
CHERNOFF_AGENTS = (4, 8, 16, 50, 100, 500)
CHERNOFF_PROBABILITIES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Cell:
    """Errors of the means over m pairs, beside their bounds."""

    m: int
    hoeffding: float  # Hoeffding's radius
    serfling: float
    quantile: float  # 95% of the errors are below, with its interval
    quantile_low: float
    quantile_high: float
    largest: float
    hoeffding_violations: int
    serfling_violations: int


@dataclass(frozen=True)
class BernoulliCell:
    """Bernoulli graphs beside the radius of Remark 10."""

    p: float
    allowed: float  # share of graphs that may be beyond the radius
    beyond: float


@dataclass(frozen=True)
class Team:
    """One team at one point of its training."""

    iteration: int
    snd: float
    distances: list[float]
    cells: list[Cell]
    bernoulli: list[BernoulliCell]


@dataclass(frozen=True)
class Data:
    """Both teams."""

    agents: int
    pairs: int
    draws: int
    teams: list[Team]
    chernoff_ratio: float
    enough: float | None = None  # share of pairs that Theorem 9 asks for; None at smoke scale


def run(scale: Scale, cells: Cells) -> Outcome:
    """Draw many graphs of every size for both teams."""
    draws, large = DRAWS[scale], LARGE[scale]
    settings = {"draws": draws, "sizes": SIZES, "p": PROBABILITIES, "seed": DRAW_SEED, "delta": DELTA}
    teams = at_checkpoints(scale, cells, AGENTS, settings, lambda snapshot: _measure_team(snapshot, draws), Team)
    enough = None
    if large:
        settings = {"agents": large, "observations": LARGE_OBSERVATIONS, "delta": DELTA}
        make = partial(enough_edges_share, large, LARGE_OBSERVATIONS)
        enough = cells.get(f"enough,n={large}", settings, make, float)
    data = Data(AGENTS, math.comb(AGENTS, 2), draws, teams, chernoff_ratio(), enough)
    return Outcome(data, summarise(data), (TRAINING_SEED, ROLLOUT_SEED, DRAW_SEED))


def _measure_team(snapshot: Snapshot, draws: int) -> Team:
    behavior = snapshot.behavior()
    exact, distances = float(snd(behavior)), pairwise(behavior, graph=graphs.complete(AGENTS))
    cells, bernoulli = [], []
    for place, (m, p) in enumerate(zip(SIZES, PROBABILITIES, strict=True)):
        generator = hashed(DRAW_SEED, snapshot.iteration, place)
        drawn = [graphs.uniform(AGENTS, m, seed=generator) for _ in range(draws)]
        means = indicators(drawn) @ distances / m
        cells.append(describe_errors(means - exact, distances, m))
        bernoulli.append(describe_bernoulli(distances, p, draws, generator))
    return Team(snapshot.iteration, exact, distances.tolist(), cells, bernoulli)


def describe_errors(errors: Tensor, distances: Tensor, m: int) -> Cell:
    """Return the errors of one size beside their bounds.

    Args:
        errors: Errors of the means over m pairs, float64 ``[draws]``.
        distances: Distances, float64 ``[pairs]``; the largest is the D_max of the bounds.
        m: Number of pairs in a draw.
    """
    total, d_max = len(distances), float(distances.max())
    hoeffding, serfling = bounds.hoeffding(d_max, m, DELTA), bounds.serfling(d_max, m, total, DELTA)
    sizes = errors.abs().sort().values.numpy()
    low, middle, high = _quantile(sizes, LEVEL)
    beyond = (int((sizes >= radius).sum()) for radius in (hoeffding, serfling))
    return Cell(m, hoeffding, serfling, middle, low, high, float(sizes[-1]), *beyond)


def _quantile(ordered: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """Return a quantile with a 95% interval, whose ends are order statistics chosen by the binomial distribution."""
    count = len(ordered)
    half = Z95 * math.sqrt(count * level * (1 - level))
    ranks = (max(0, math.floor(count * level - half)), min(count - 1, math.ceil(count * level + half)))
    return float(ordered[ranks[0]]), float(np.quantile(ordered, level)), float(ordered[ranks[1]])


def describe_bernoulli(distances: Tensor, p: float, draws: int, generator: torch.Generator) -> BernoulliCell:
    """Return how often a Bernoulli graph that has an edge is beyond the radius of Remark 10."""
    chosen = many_bernoulli(AGENTS, p, draws, generator)
    counts = chosen.sum(1)
    errors = (chosen @ distances / counts.clamp(min=1) - distances.mean()).abs()
    bound = bounds.bernoulli(float(distances.max()), p, AGENTS, DELTA)
    beyond = float(((counts > 0) & (errors > bound.radius)).double().mean())
    return BernoulliCell(p, bound.failure, beyond)


def chernoff_ratio() -> float:
    r"""Return the largest :math:`P(|E| < \mu/2) / e^{-\mu/8}` over team sizes and probabilities, by the binomial law.

    Example:
        >>> 0 < chernoff_ratio() < 1
        True
    """
    logs = []
    for n, p in itertools.product(CHERNOFF_AGENTS, CHERNOFF_PROBABILITIES):
        mean = p * math.comb(n, 2)
        logs.append(float(stats.binom.logcdf(math.ceil(mean / 2) - 1, math.comb(n, 2), p)) + mean / 8)
    return math.exp(max(logs))


def enough_edges_share(n: int, observations: int) -> float:
    """Return the share of pairs that Theorem 9 asks for so that the error is a tenth of the SND of an initial team."""
    matrix = pairwise(initial_team(n, observations=observations)).double()
    value, d_max = float(matrix.sum()) / (n * (n - 1)), float(matrix.max())
    return bounds.edges_for(0.1 * value, d_max, DELTA) / math.comb(n, 2)


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    cells = [cell for team in data.teams for cell in team.cells]
    ratios = [cell.serfling / cell.hoeffding for cell in data.teams[0].cells]
    excess = [cell.beyond - cell.allowed for team in data.teams for cell in team.bernoulli]
    return {
        "hoeffding_violation": _violation(max(cell.hoeffding_violations for cell in cells), data.draws),
        "serfling_violation": _violation(max(cell.serfling_violations for cell in cells), data.draws),
        "serfling_over_hoeffding": Number.range(ratios, "sizes"),
        "serfling_gap_growth": Number(min(a - b for a, b in itertools.pairwise(ratios))),
        "empirical_slope": _mean_slope([slope(team) for team in data.teams]),
        "adjusted_slope": _mean_slope([slope(team, adjusted=True) for team in data.teams]),
        "empirical_over_serfling": Number.range(cell.quantile / cell.serfling for cell in cells),
        "bernoulli_violation_excess": Number.range(excess),
        "chernoff_ratio": Number(data.chernoff_ratio),
        "edges_for_ten_percent_share": Number(data.enough) if data.enough else None,
    }


def slope(team: Team, *, adjusted: bool = False) -> tuple[float, float]:
    """Return the slope of the log of the 95th percentile against log m, and its standard error.

    Args:
        team: A team with its cells.
        adjusted: Divide the percentiles by sqrt(1 - m/N) first.
    """
    cells, total = team.cells, len(team.distances)
    x = np.log([cell.m for cell in cells])
    y = np.log([cell.quantile for cell in cells])
    if adjusted:
        y -= np.log([1 - cell.m / total for cell in cells]) / 2
    errors = np.asarray([math.log(cell.quantile_high / cell.quantile_low) for cell in cells]) / (2 * Z95)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return float(weights @ y), float(np.sqrt((weights**2) @ errors**2))


def _violation(count: int, draws: int) -> Number:
    """Return the largest share of a cell, with the Clopper-Pearson interval of that cell."""
    interval = stats.binomtest(count, draws).proportion_ci(0.95, method="exact")
    kind = f"95% interval of the cell with the most, {draws} draws"
    return Number(count / draws, interval.low, interval.high, kind=kind)


def _mean_slope(slopes: list[tuple[float, float]]) -> Number:
    value = sum(slope for slope, _ in slopes) / len(slopes)
    half = Z95 * math.sqrt(sum(error**2 for _, error in slopes)) / len(slopes)
    return Number.around(value, half, "95% interval of the mean of two teams")


def draw(data: Data) -> Figure:
    """Draw measured errors and two radii against the number of sampled pairs, a panel for each checkpoint."""
    with styled_figure(10.4, 4.5) as figure:
        axes = figure.subplots(1, 2)
        for ax, team in zip(axes, data.teams, strict=True):
            _draw_team(ax, team, data.pairs)
        axes[0].set_ylabel("|Graph-SND - SND|  [action units]")
        handles, labels = axes[0].get_legend_handles_labels()
        title = f"{data.draws:,} draws of each size, {data.agents} agents, {data.pairs} pairs"
        figure.legend(handles, labels, loc="outside lower center", ncols=3, title=title)
        return figure


def _draw_team(ax: Axes, team: Team, pairs: int) -> None:
    cells = team.cells
    m, middle = (np.asarray(column) for column in zip(*((cell.m, cell.quantile) for cell in cells), strict=True))
    ax.plot(m, [cell.hoeffding for cell in cells], color=TRUTH, marker="^", label="Hoeffding's radius")
    ax.plot(m, [cell.serfling for cell in cells], color=ORANGE, marker="v", label="Serfling's radius")
    ax.plot(m, [cell.largest for cell in cells], "x", color=MUTED, label="largest error of all draws")
    ends = [middle - [cell.quantile_low for cell in cells], [cell.quantile_high for cell in cells] - middle]
    label = "95% of the errors are below, with interval"
    ax.errorbar(m, middle, ends, fmt="o", color=ESTIMATE, capsize=3, label=label, zorder=3)
    fine = np.geomspace(m[0], m[-1], 200)
    exact = Z95 * float(np.std(team.distances, ddof=1)) * np.sqrt((1 - fine / pairs) / fine)
    ax.plot(fine, exact, color=ESTIMATE, linewidth=1.2, label=r"$1.96\, S \sqrt{(1 - m/N)/m}$, no fit", zorder=2)
    start = exact[0] * math.sqrt(m[0]) / np.sqrt(fine)
    ax.plot(fine, start, color=GREEN, linewidth=1.1, linestyle=(0, (4, 2)), label=r"slope $-1/2$", zorder=1)
    ax.set(xscale="log", yscale="log", xlabel="sampled pairs m, and their share")
    ax.set_xticks(m, [f"{each}\n{each / pairs:.0%}" for each in m])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_title(f"Iteration {team.iteration},  SND {team.snd:.4f}", color=INK)
    ax.grid()


TITLE = "How far sampled pairs are from SND, and how far they may be"
EXPERIMENT = Experiment("concentration", TITLE, run, draw, Data)
