r"""How close Graph-SND on one graph is to SND, beside everything that is said to explain it.

A row holds the measured ratio and, for the same graph and the same team,

*for every metric*: the forwarding index of the graph and the distortion theorem;
*for every distance of negative type*: the eigenvalues of its Laplacian;
*for this matrix of distances*: the paper's spectral bound, and the sharper one from the same proof;
*for its largest entry, over random regular graphs*: the paper's probabilistic bound, and one that holds for every n;
*for this matrix, the agents numbered at random*: the exact standard deviation of the ratio.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphsnd import bounds
from graphsnd.bounds.discrepancy import check_symmetric
from graphsnd.bounds.relabelling import split_squares
from graphsnd.errors import InputError
from graphsnd.graphs import Graph
from paper.expanders.facts import Facts, look

DELTA = 0.1  # of the probabilistic bounds


@dataclass(frozen=True)
class Row(Facts):
    """One graph on one team. What is not defined for them is None."""

    snd: float
    graph_snd: float
    ratio: float | None  # Graph-SND / SND; None for identical agents
    reciprocal: float | None  # SND / Graph-SND, the theorem's ratio; None where Graph-SND is 0
    difference: float  # |Graph-SND - SND|
    spectral: float | None  # the paper's bound on |Graph-SND / SND - 1|; regular graphs only, as below
    spectral_low: float | None  # Graph-SND / SND, for this matrix, from the centred form of the paper's proof
    spectral_high: float | None
    rho: float | None  # normalised nuclear norm
    probabilistic: float | None  # the paper's bound on the same, all but DELTA of random regular graphs
    probabilistic_finite: float | None  # the one that needs no limit of n
    nuclear_norm: float  # of the matrix of distances
    largest: float  # of its entries
    effect_share: float  # of the variance of the distances that is due to single agents
    predicted: float | None  # standard deviation of the ratio over random numberings; None for graphs not drawn
    sampled: float | None  # the same for a uniform sample of as many pairs; None for identical agents


@dataclass(frozen=True, eq=False)
class Distances:
    """A team's matrix of distances and what does not depend on the graph."""

    matrix: Tensor  # float64 [n, n]
    snd: float
    nuclear_norm: float
    effect_share: float
    variance: float  # of the distances of all pairs

    @classmethod
    def of(cls, matrix: Tensor) -> Distances:
        """From :func:`graphsnd.pairwise`."""
        values = check_symmetric(matrix)
        n = len(values)
        effects, rest = (float(part) for part in split_squares(values))
        share = effects / (effects + rest) if effects + rest else 0.0
        variance = (effects + rest) / max(1, math.comb(n, 2) - 1)
        return cls(values, float(values.sum()) / (n * (n - 1)), bounds.nuclear_norm(values).value, share, variance)

    def uniform_error(self, edges: int) -> float:
        """Standard deviation of the mean over so many pairs, a simple random sample of all."""
        return math.sqrt(self.variance * (1 / edges - 1 / math.comb(len(self.matrix), 2)))


def compare(
    distances: Distances,
    graph: Graph,
    *,
    family: str,
    degree: int,
    asked_degree: int | None = None,
    seed: int | None = None,
    forwarding: bool = True,
    seconds: float | None = None,
    facts: Facts | None = None,
) -> Row:
    """Measure one graph.

    Args:
        distances: Of the team.
        graph: On the same agents, without weights, with an edge.
        family: For people to read.
        degree: Mean degree that the graph was built for.
        asked_degree: What the protocol asks for; ``degree`` when None.
        seed: Of the draw; None for a graph that was not drawn.
        forwarding: Whether to compute the forwarding index.
        seconds: Time limit of its search, see :func:`~graphsnd.bounds.forwarding.forwarding_index`.
        facts: Of this graph, where they are known already; the options above are then not looked at.

    Raises:
        InputError: For a graph on other agents, with weights or without edges.

    Example:
        >>> import torch, graphsnd as gs
        >>> line = torch.arange(6.0)
        >>> row = compare(Distances.of((line[:, None] - line).abs()), gs.graphs.complete(6), family="all", degree=5)
        >>> round(row.ratio, 9), round(row.forwarding_upper, 6), row.predicted
        (1.0, 1.0, None)
    """
    n, snd = len(distances.matrix), distances.snd
    if graph.n != n or graph.m == 0 or graph.weights is not None:
        raise InputError("graph", f"on {n} agents, with edges and without weights", repr(graph))
    if facts is None:
        options: dict[str, Any] = {"asked_degree": asked_degree, "seed": seed, "seconds": seconds}
        facts = look(graph, family=family, degree=degree, forwarding=forwarding, **options)
    i, j = graph.edges.cpu().T
    value = float(distances.matrix[i, j].mean())
    drawn = graph.inclusion is not None and snd > 0
    error = math.sqrt(float(bounds.relabelling_variance(distances.matrix, graph.degrees()))) if drawn else 0.0
    return Row(
        **facts.to_dict(),
        snd=snd,
        graph_snd=value,
        ratio=value / snd if snd else None,
        reciprocal=snd / value if value else None,
        difference=abs(value - snd),
        **_regular_bounds(graph, distances),
        nuclear_norm=distances.nuclear_norm,
        largest=float(distances.matrix.max()),
        effect_share=distances.effect_share,
        predicted=error / snd if drawn else None,
        sampled=distances.uniform_error(graph.m) / snd if snd else None,
    )


def _regular_bounds(graph: Graph, distances: Distances) -> dict[str, Any]:
    names = ("spectral", "spectral_low", "spectral_high", "rho", "probabilistic", "probabilistic_finite")
    counts = graph.degrees()
    degree = int(counts[0])
    if not bool((counts == degree).all()):
        return dict.fromkeys(names)
    bound = bounds.spectral_bound(graph, distances.matrix)
    chances: list[float | None] = [None, None]
    if graph.inclusion is not None and degree >= 3 and distances.snd > 0:
        size = float(distances.matrix.max()) / distances.snd, graph.n, degree, DELTA
        chances = [bounds.paper_random_regular_bound(*size), bounds.random_regular_bound(*size)]
    return dict(zip(names, (bound.relative, bound.low, bound.high, bound.rho, *chances), strict=True))


@dataclass(frozen=True)
class Summary:
    """The graphs of one family, size and degree."""

    n: int
    degree: int
    family: str
    graphs: int
    connected: int
    smallest: float  # Graph-SND / SND
    largest: float
    spread: float | None  # root mean square of ratio - 1: drawn graphs are unbiased, so 1 is the mean
    predicted: float | None  # the same from the exact variance


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Rows by size, degree and family, in the order in which these first appear; identical agents are left out.

    Example:
        >>> summarise([])
        []
    """
    groups: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        if row.ratio is not None:
            groups.setdefault((row.n, row.degree, row.family), []).append(row)
    return [_summary(key, group) for key, group in groups.items()]


def _summary(key: tuple[int, int, str], group: list[Row]) -> Summary:
    ratios = [row.ratio for row in group if row.ratio is not None]
    expected = [row.predicted**2 for row in group if row.predicted is not None]
    return Summary(
        *key,
        graphs=len(group),
        connected=sum(row.connected for row in group),
        smallest=min(ratios),
        largest=max(ratios),
        spread=math.sqrt(statistics.fmean((ratio - 1) ** 2 for ratio in ratios)) if expected else None,
        predicted=math.sqrt(statistics.fmean(expected)) if expected else None,
    )
