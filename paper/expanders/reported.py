"""The paper's reported measures of its graphs: the spectral gap, and the load of equal splits over shortest paths.

The paper uses this load as the forwarding index. But nothing is minimised and pairs are ordered, so it is a different
measure, and the families differ more by it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr

from graphsnd import bounds
from paper.expanders.ablation import initial_team, mean_actions
from paper.expanders.comparison import Row, ordered_split, select
from paper.expanders.families import AS_PUBLISHED, SIZES, Family, build
from paper.experiment import Number

LARGE = max(SIZES)


@dataclass(frozen=True)
class Reported:
    """One graph on fresh policies, each on its own observations, as in the paper."""

    n: int
    degree: int
    family: str
    off: float  # |Graph-SND / SND - 1|
    gap: float  # 1 - second eigenvalue / largest degree
    split: float | None  # load of equal splits; only for the largest teams


def report(rows: Sequence[Row], n: int) -> list[Reported]:
    """Draw the graphs of ``n`` agents again, and return the measures that the paper's figures show.

    Args:
        rows: Rows of fresh policies on their own observations.
        n: Number of agents.
    """
    positions, found = mean_actions(initial_team(n, own=True)), []
    for row in (row for family in AS_PUBLISHED for row in select(rows, family, n=n)):
        graph = build(Family(row.family), n, row.degree, row.seed or 0, positions)
        load = ordered_split(graph) if n == LARGE else None
        found.append(Reported(n, row.degree, row.family, row.difference / row.snd, bounds.spectrum(graph).gap, load))
    return found


def summarise_reported(rows: Sequence[Reported]) -> dict[str, Number]:
    """Return how the error depends on the gap at equal degrees, and loads over those of regular graphs."""
    groups = [[row for row in rows if (row.n, row.degree) == cell] for cell in sorted({(r.n, r.degree) for r in rows})]
    order = [float(spearmanr([row.gap for row in mine], [row.off for row in mine]).statistic) for mine in groups]
    over = []
    for mine in (mine for mine in groups if mine[0].n == LARGE):
        loads = {f: statistics.median(row.split or 0.0 for row in mine if row.family == f) for f in AS_PUBLISHED}
        regular = loads.pop(Family.REGULAR)
        over += [Number(load / regular, unit="x", kind=f"{f.value}, d = {mine[0].degree}") for f, load in loads.items()]
    return {
        "gap_correlation": Number.range(order, "sizes and degrees", pick=statistics.median),
        f"split_over_regular_smallest_n{LARGE}": min(over, key=lambda one: one.value),
        f"split_over_regular_largest_n{LARGE}": max(over, key=lambda one: one.value),
    }
