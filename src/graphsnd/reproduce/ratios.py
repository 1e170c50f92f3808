r"""How close Graph-SND on one graph is to SND, beside everything that is said to explain it.

A row holds the measured ratio and, for the same graph and the same team,

*for every metric*: the forwarding index of the graph and the distortion theorem;
*for every distance of negative type*: the eigenvalues of its Laplacian;
*for this matrix of distances*: the paper's spectral bound, and the sharper one from the same proof;
*for this matrix, the agents numbered at random*: the exact standard deviation of the ratio.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from graphsnd import bounds
from graphsnd.bounds.distortion import Distortion, distortion
from graphsnd.bounds.nuclear import symmetric
from graphsnd.bounds.relabel import split_squares
from graphsnd.errors import InputError
from graphsnd.graphs import Graph


@dataclass(frozen=True)
class Row:
    """One graph on one team. What is not defined for it is None, never a number that looks like one."""

    n: int
    asked_degree: int  # of the protocol
    degree: int  # that was used: one more where n times the asked one is odd
    family: str
    seed: int | None  # None where the graph is not drawn
    edges: int
    connected: bool
    snd: float
    graph_snd: float
    ratio: float | None  # Graph-SND / SND; None for identical agents
    reciprocal: float | None  # SND / Graph-SND, the theorem's ratio; None where Graph-SND is 0
    difference: float  # |Graph-SND - SND|
    lambda_2: float  # largest absolute eigenvalue after the first
    gap: float
    ramanujan: bool
    forwarding_lower: float | None  # of the fractional index, certified; None when disconnected or not asked for
    forwarding_upper: float | None
    integral_lower: float | None  # of the index with one path a pair
    integral_upper: float | None
    distortion_low: float | None  # SND / Graph-SND is at least this for every metric ...
    distortion_high: float | None  # ... and at most this
    ratio_low: float  # Graph-SND / SND, for every distance of negative type, from the Laplacian ...
    ratio_high: float
    spectral: float | None  # the paper's bound on |Graph-SND / SND - 1|; regular graphs only, as below
    spectral_low: float | None  # Graph-SND / SND, for this matrix, from the centred form of the paper's proof
    spectral_high: float | None
    rho: float | None  # normalised nuclear norm
    nuclear_norm: float  # of the matrix of distances
    effect_share: float  # of the variance of the distances that is due to single agents
    predicted: float | None  # standard deviation of the ratio over random numberings; None for graphs not drawn

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Distances:
    """A team's matrix of distances and what does not depend on the graph."""

    matrix: Tensor  # float64 [n, n]
    snd: float
    nuclear_norm: float
    effect_share: float

    @classmethod
    def of(cls, matrix: Tensor) -> Distances:
        """From :func:`graphsnd.pairwise`."""
        values = symmetric(matrix)
        n = len(values)
        effects, rest = (float(part) for part in split_squares(values))
        share = effects / (effects + rest) if effects + rest else 0.0
        return cls(values, float(values.sum()) / (n * (n - 1)), bounds.nuclear_norm(values).value, share)


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
    i, j = graph.edges.cpu().T
    value = float(distances.matrix[i, j].mean())
    found = bounds.spectrum(graph)
    drawn = graph.inclusion is not None and snd > 0
    error = math.sqrt(float(bounds.relabelling_variance(distances.matrix, graph.degrees()))) if drawn else 0.0
    routed = distortion(graph, seconds=seconds) if forwarding and found.connected else None
    laplacian = bounds.spectral_ratio(graph)
    return Row(
        n=n,
        asked_degree=degree if asked_degree is None else asked_degree,
        degree=degree,
        family=family,
        seed=seed,
        edges=graph.m,
        connected=found.connected,
        snd=snd,
        graph_snd=value,
        ratio=value / snd if snd else None,
        reciprocal=snd / value if value else None,
        difference=abs(value - snd),
        lambda_2=found.second,
        gap=found.gap,
        ramanujan=found.ramanujan,
        **_routes(routed),
        ratio_low=laplacian.low,
        ratio_high=laplacian.high,
        **_spectral(graph, distances.matrix, regular=found.regular),
        nuclear_norm=distances.nuclear_norm,
        effect_share=distances.effect_share,
        predicted=error / snd if drawn else None,
    )


def _routes(found: Distortion | None) -> dict[str, float | None]:
    low, high = (None, None) if found is None else found.interval(1.0)
    index = None if found is None else found.index
    return {
        "forwarding_lower": None if index is None else index.lower,
        "forwarding_upper": None if index is None else index.upper,
        "integral_lower": None if index is None else index.integral_lower,
        "integral_upper": None if index is None else index.integral,
        "distortion_low": low,
        "distortion_high": high,
    }


def _spectral(graph: Graph, matrix: Tensor, *, regular: bool) -> dict[str, float | None]:
    names = ("spectral", "spectral_low", "spectral_high", "rho")
    if not regular:
        return dict.fromkeys(names)
    bound = bounds.spectral_bound(graph, matrix)
    return dict(zip(names, (bound.relative, bound.low, bound.high, bound.rho), strict=True))


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
