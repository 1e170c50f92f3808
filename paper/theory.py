r"""Limits of the theorems: where a bound says nothing, and a step of a proof that does not hold as printed.

Bounds are compared with errors on the graphs and teams of the expander ablation, which are read from its result. A
bound on a relative error is *vacuous* from 1 on: Graph-SND is never negative, so below SND nothing is excluded.

The proof of Proposition 19 assumes that the mean over the configuration model is SND. There a stub meets each of the
nd - 1 others equally often, and d - 1 of those belong to its own agent: a loop, at distance 0. So the mean is

.. math:: \mathbb{E}\, \mathrm{SND}_G = \frac{nd - d}{nd - 1} \, \mathrm{SND},

as enumerating all matchings of a small graph shows; over simple graphs alone it is SND. The missing term is
:math:`\mathrm{SND} (d - 1)/(nd - 1) < D_{\max}/n`. The third step takes :math:`e^{-(d^2-1)/4}` for the chance that a
configuration is simple; McKay and Wormald (1991) have, for :math:`d = o(\sqrt n)`,

.. math:: \exp\left(-\frac{d^2 - 1}{4} - \frac{d^3}{12 n} + O(d^2/n)\right).

The second step loses a factor of 2: stubs are matched one after the other, each choice moves the expectation of the
sum within a range of :math:`2 D_{\max}`, and so :math:`P(|f - \mathrm{E} f| \ge t) \le 2 \exp(-t^2 / (n d
D_{\max}^2))`. With all three changes the radius is

.. math:: D_{\max} \left(\frac1n + \sqrt{\frac{4}{nd} \left(\log\frac4\delta + \frac{d^2 - 1}{4} +
    \frac{d^3}{12 n}\right)}\right),

which is below the printed one: the proposition holds as printed for n large enough.

Two statements that need no ablation are checked here too: the fallback of Remark 8 for an empty graph keeps the mean
unbiased, and the root of the Jensen-Shannon divergence is a metric.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from matplotlib.figure import Figure
from scipy.stats import chisquare

from graphsnd import bounds, graphs
from graphsnd.behavior import Categorical, JensenShannon
from graphsnd.bounds.relabelling import paper_random_regular_bound
from graphsnd.control.measurement import measure_points
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import Sampling
from graphsnd.graphs.random import rank
from graphsnd.metric import pairwise
from graphsnd.plots.style import FAINT, GREEN, INK, ORANGE, VERMILLION, styled_figure
from graphsnd.rl.streams import hashed
from paper.expanders.comparison import DELTA, Row
from paper.expanders.comparison import Data as Ablation
from paper.expanders.families import SIZES, Family
from paper.expanders.reported import Reported, report, summarise_reported
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.rows import decode
from paper.runner import Cells, read_result

SEED, AGENTS = 0, 4  # seed and team size for Lemma 16
LOOPED, SIMPLE = (4, 3), (6, 2)  # agents and degree; the only simple graph of the first is complete, so another is used
PROBABILITIES = (0.1, 0.25, 0.5, 0.75)
DRAWS = {Scale.SMOKE: 1000, Scale.LAPTOP: 10_000, Scale.PAPER: 10_000}
# Bounds of the figure: name, colour, marker.
LOOKS = {
    "spectral": ("Proposition 17, spectral", ORANGE, "s"),
    "probabilistic": ("Proposition 19, random regular, 90%", VERMILLION, "D"),
    "exact": ("graphsnd, random regular, 90%", GREEN, "^"),
}


@dataclass(frozen=True)
class Bounded:
    """The relative error of a regular graph on one team, and its bounds."""

    n: int
    degree: int
    random: bool  # whether the graph is a random regular one; only those have the probabilistic bounds
    trained: bool
    error: float  # |Graph-SND / SND - 1|
    spectral: float  # bound of Proposition 17
    ramanujan: float | None  # the same with 2 sqrt(d - 1) for lambda_2; None where the graph is not Ramanujan
    probabilistic: float | None  # Proposition 19, as printed; None for other graphs, as below
    exact: float | None  # :func:`graphsnd.bounds.random_regular_bound`


@dataclass(frozen=True)
class Data:
    """The data of the experiment; without rows if the ablation was not run at this scale."""

    draws: int
    uniformity: list[float]  # chances of counts as uneven as those of Bernoulli graphs, for each p and number of edges
    configuration_mean: float  # mean Graph-SND over SND, all matchings of the stubs
    simple_mean: float  # mean Graph-SND over SND, matchings that give a simple graph
    rows: list[Bounded]
    fallback_bias: float  # bias of the normalised mean with the fallback of Remark 8, relative to SND
    triangle_excess: float  # largest d(i, k) - d(i, j) - d(j, k) of the root of the Jensen-Shannon divergence
    reported: list[Reported]  # the paper's measures, at paper scale


def run(scale: Scale, cells: Cells) -> Outcome:
    """Enumerate and draw small graphs, and read the ablation of this scale if it exists."""
    draws, name = DRAWS[scale], f"expanders/{scale.value}.json"
    uniformity = cells.get("lemma", {"draws": draws, "seed": SEED}, lambda: uniformity_chances(draws), list[float])
    means = configuration_means(*LOOPED)[0], configuration_means(*SIMPLE)[1]
    rows: list[Bounded] = []
    sources: tuple[str, ...] = ()
    reported: list[Reported] = []
    if path := cells.find(name):
        ablation = decode(Ablation, read_result(path).data)
        rows, sources = read_bounds(ablation), (f"results/{name}",)
        own = ablation.rows(trained=False, own=True)
        for n in SIZES if scale is Scale.PAPER else ():
            reported += cells.get(f"reported,n={n}", {"n": n}, partial(report, own, n), list[Reported])
    data = Data(draws, uniformity, *means, rows, fallback_bias(), triangle_excess(), reported)
    return Outcome(data, summarise(data), (SEED,), sources)


def uniformity_chances(draws: int) -> list[float]:
    """Return chi-square p-values of Lemma 16: given the edge count, all graphs of four agents are equally likely."""
    chances = []
    for place, p in enumerate(PROBABILITIES):
        generator = hashed(SEED, place)
        drawn = [graphs.bernoulli(AGENTS, p, seed=generator) for _ in range(draws)]
        codes = [sum(1 << int(place) for place in rank(graph.edges, AGENTS)) for graph in drawn]
        for m in range(1, math.comb(AGENTS, 2)):
            alike = [sum(1 << k for k in some) for some in itertools.combinations(range(math.comb(AGENTS, 2)), m)]
            counts = [codes.count(code) for code in alike]
            if sum(counts) >= 5 * len(counts):  # fewer counts are too few for the chi-square approximation
                chances.append(float(chisquare(counts).pvalue))
    return chances


def matchings(stubs: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield every way to join stubs in pairs.

    Example:
        >>> len(list(matchings(range(6))))
        15
    """
    if not stubs:
        yield []
        return
    first, *rest = stubs
    for at, other in enumerate(rest):
        for others in matchings(rest[:at] + rest[at + 1 :]):
            yield [(first, other), *others]


def configuration_means(n: int, degree: int) -> tuple[float, float]:
    """Return the mean Graph-SND over SND of all configurations, and of the simple ones.

    Example:
        >>> [round(mean, 9) for mean in configuration_means(4, 2)]  # 6/7 with loops
        [0.857142857, 1.0]
    """
    matrix = torch.rand(n, n, generator=hashed(SEED), dtype=torch.float64).triu(1)
    distances, snd = (matrix + matrix.T).tolist(), float(matrix.sum()) / math.comb(n, 2)
    every, simple = [], []
    for matching in matchings(range(n * degree)):
        edges = [tuple(sorted((a // degree, b // degree))) for a, b in matching]
        every.append(statistics.fmean(distances[i][j] for i, j in edges) / snd)
        if len(set(edges)) == len(edges) and all(i != j for i, j in edges):
            simple.append(every[-1])
    return statistics.fmean(every), statistics.fmean(simple)


def fallback_bias() -> float:
    """Return the bias of a controller's measurement: its mean over all Bernoulli graphs of four agents, against SND.

    Every graph is measured as a controller does; an empty one by all pairs (Remark 8). At low p this is frequent.

    Example:
        >>> fallback_bias() < 1e-12
        True
    """
    points, complete = torch.rand(8, AGENTS, 2, generator=hashed(SEED), dtype=torch.float64), graphs.complete(AGENTS)
    exact, largest = float(measure_points(complete, points).value), 0.0
    for p in PROBABILITIES:
        mean = 0.0
        for picks in itertools.product((False, True), repeat=complete.pairs):
            edges = complete.edges[torch.tensor(picks)]
            graph = Graph(AGENTS, edges, inclusion=p, sampling=Sampling.INDEPENDENT)
            mean += p**graph.m * (1 - p) ** (graph.pairs - graph.m) * float(measure_points(graph, points).value)
        largest = max(largest, abs(mean / exact - 1))
    return largest


def triangle_excess() -> float:
    """Return by how much the worst of many triples of random categories misses the triangle inequality.

    Example:
        >>> triangle_excess() < 1e-12
        True
    """
    logits = 3 * torch.randn(1, 60, 4, generator=hashed(SEED, 1), dtype=torch.float64)
    apart = pairwise(Categorical(probs=logits.softmax(-1)), JensenShannon())
    return float((apart[:, None, :] - apart[:, :, None] - apart[None, :, :]).max())


def repaired_over_printed(n: int, degree: int) -> float:
    """Return the radius with a repaired proof of Proposition 19 over the printed radius.

    Example:
        >>> round(repaired_over_printed(500, 9), 2)
        0.72
    """
    common = math.log(4 / DELTA) + (degree**2 - 1) / 4
    radius = 1 / n + math.sqrt(4 / (n * degree) * (common + degree**3 / (12 * n)))
    return radius / paper_random_regular_bound(1.0, n, degree, DELTA)


def read_bounds(ablation: Ablation) -> list[Bounded]:
    """Return errors and bounds of all regular graphs, teams on shared observations."""
    return [_bounded(row, team.trained) for team in ablation.teams if not team.own for row in team.rows if row.spectral]


def _bounded(row: Row, trained: bool) -> Bounded:
    n, degree, rho, spectral = row.n, row.degree, row.rho or math.nan, row.spectral or math.nan
    second, best, rest = spectral / rho * degree - degree / (n - 1), 2 * math.sqrt(degree - 1), degree / (n - 1)
    exact = None
    if row.probabilistic is not None:
        # The printed bound is proportional to D_max / SND, which the row does not keep.
        largest = row.probabilistic / paper_random_regular_bound(1.0, n, degree, DELTA)
        exact = bounds.random_regular_bound(largest, n, degree, DELTA)
    return Bounded(
        n=n,
        degree=degree,
        random=row.family == Family.REGULAR,
        trained=trained,
        error=abs((row.ratio or math.nan) - 1),
        spectral=spectral,
        # Rows keep seven digits.
        ramanujan=rho * (best + rest) / degree if second <= best * (1 + 1e-6) else None,
        probabilistic=row.probabilistic if row.family == Family.REGULAR else None,
        exact=exact if row.family == Family.REGULAR else None,
    )


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of a run."""
    tests, (n, degree), (m, other) = len(data.uniformity), LOOPED, SIMPLE
    numbers: dict[str, Number | None] = {
        "conditional_uniformity_p": Number(
            min(1.0, tests * min(data.uniformity)), kind=f"smallest of {tests} p-values times {tests}"
        ),
        "configuration_mean": Number(data.configuration_mean, kind=f"{n} agents, degree {degree}, all matchings"),
        "simple_mean": Number(data.simple_mean, kind=f"{m} agents, degree {other}, simple graphs"),
        "fallback_bias": Number(data.fallback_bias),
        "triangle_excess": Number(data.triangle_excess),
    }
    if not data.rows:
        return numbers
    good = [row for row in data.rows if row.ramanujan is not None]
    drawn = [row for row in data.rows if row.random and not row.trained]
    dense = [row.degree**2 / row.n for row in data.rows if (row.probabilistic or 0) >= 1]
    cells = {(row.n, row.degree) for row in drawn}
    beyond = sum(row.error > row.ramanujan * (1 + 1e-6) for row in good if row.ramanujan is not None)
    return numbers | {
        "ramanujan_violations": Number(beyond, kind=f"of {len(good)} Ramanujan graphs and teams"),
        "ramanujan_share": _share([row.ramanujan is not None for row in drawn], "random regular graphs"),
        "spectral_vacuous": _share([row.spectral >= 1 for row in data.rows], "regular graphs and teams"),
        "probabilistic_vacuous": _vacuous(row.probabilistic for row in data.rows),
        "exact_vacuous": _vacuous(row.exact for row in data.rows),
        "vacuous_density": Number.range(dense, "vacuous cases", pick=min),
        "repaired_over_printed": Number.range((repaired_over_printed(*cell) for cell in cells), "sizes and degrees"),
        **(summarise_reported(data.reported) if data.reported else {}),
    }


def _vacuous(values: Iterator[float | None]) -> Number:
    return _share([value >= 1 for value in values if value is not None], "random regular graphs and teams")


def _share(outcomes: Sequence[bool], what: str) -> Number:
    return Number(sum(outcomes) / len(outcomes), kind=f"{sum(outcomes)} of {len(outcomes)} {what}")


def draw(data: Data) -> Figure:
    """Draw bounds against errors."""
    with styled_figure(6.6, 5.2) as figure:
        ax, ends = figure.subplots(), (0.004, 10)
        for (name, (label, colour, marker)), trained in itertools.product(LOOKS.items(), (False, True)):
            mine = [row for row in data.rows if row.random and row.trained == trained]
            x, y = ([100 * getattr(row, key) for row in mine] for key in ("error", name))
            look: dict[str, Any] = {"markerfacecolor": "none"} if trained else {"label": label}
            ax.plot(x, y, marker, color=colour, markersize=4, alpha=0.8, **look)
        ax.plot(ends, ends, "--", color=INK, linewidth=1)
        ax.annotate("bound = error", (0.6, 0.6), (4, -12), textcoords="offset points", fontsize=9, color=INK)
        ax.axhspan(100, 1000, color=FAINT, zorder=0)
        ax.text(0.02, 0.98, "vacuous: 100% and more", transform=ax.transAxes, va="top", fontsize=9, color=INK)
        ax.set(xscale="log", xlim=ends, xlabel="relative error of Graph-SND  [%]", ylabel="bound on it  [%]")
        ax.set(yscale="log", ylim=(0.01, 400), title="Random regular graphs: fresh teams full, trained open")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
        ax.grid()
        figure.legend(*ax.get_legend_handles_labels(), ncols=1, loc="outside lower center")
        return figure


EXPERIMENT = Experiment("theory", "What the theorems do not give", run, draw, Data)
