"""The measurement panel: three sparse graphs on the distances of one team, thousands of draws each.

The mean over the edges of a Bernoulli graph is unbiased given that the graph has an edge. Draws without one (0.9 per
cent of them at n = 10 and p = 0.1) have no mean and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from torch import Tensor

from graphsnd import bounds
from graphsnd.designs.design import Bernoulli, Regular
from graphsnd.rl.streams import hashed
from paper.shared.draws import indicators

THRESHOLD, DELTA = 0.05, 0.1
DRAW_SEED = 55


# The paper calls a random graph of degree 2 an expander; it is a union of rings.
TENTH, QUARTER, RINGS = Bernoulli(0.1), Bernoulli(0.25), Regular(2)
DESIGNS: tuple[Bernoulli | Regular, ...] = (TENTH, QUARTER, RINGS)


@dataclass(frozen=True)
class TeamRow:
    """The distances of one team."""

    regime: str  # "trained" or "random-init"
    seed: int
    protocol: str  # "rollout" or "noise", the source of its observations
    distances: list[float]  # distances of all pairs, in lexicographic order


@dataclass(frozen=True)
class PanelRow:
    """The errors of one design on one team."""

    regime: str
    seed: int
    protocol: str
    estimator: str
    draws: int
    disconnected: float  # share of graphs that are disconnected
    bias: float
    bias_error: float  # standard error of the bias
    violations: float  # share of draws off by more than 0.05
    hoeffding_violations_largest: float  # share off by Hoeffding's radius or more, with the largest distance as D_max
    radius: float  # Hoeffding's radius, with the largest distance and the mean number of edges


def draw_pairs(design: Bernoulli | Regular, n: int, draws: int, seed: int) -> Tensor:
    """Return the pairs of many graphs: float64 ``[draws, pairs]`` of 0 and 1, pairs in lexicographic order.

    The same graphs for every team of a seed, so that teams are compared on the same draws.

    Example:
        >>> draw_pairs(RINGS, 10, 3, 0).sum(1).tolist()
        [10.0, 10.0, 10.0]
    """
    generator = hashed(DRAW_SEED, seed, DESIGNS.index(design))
    return indicators([design.draw(n, generator) for _ in range(draws)])


def measure_seed(teams: Sequence[TeamRow], seed: int, draws: int) -> list[PanelRow]:
    """Measure all designs on the teams of a seed, on the same graphs."""
    rows = []
    mine = [team for team in teams if team.seed == seed]
    for design in DESIGNS:
        chosen = draw_pairs(design, len(squareform(mine[0].distances)), draws, seed)
        apart = disconnected_share(chosen)
        rows += [measure_design(design, chosen, apart, team) for team in mine]
    return rows


def measure_design(design: Bernoulli | Regular, chosen: Tensor, disconnected: float, team: TeamRow) -> PanelRow:
    """Compare the estimates of many graphs with the SND of one team.

    Args:
        design: Design of the graphs.
        chosen: Pairs of the graphs, from :func:`draw_pairs`.
        disconnected: Share of disconnected graphs, copied into the row.
        team: Team with its distances.
    """
    distances = torch.tensor(team.distances, dtype=torch.float64)
    counts = chosen.sum(1)
    full = counts > 0
    exact, m = float(distances.mean()), counts[full]
    errors = chosen[full] @ distances / m - exact
    radius = torch.tensor([bounds.hoeffding(1.0, int(k), DELTA) for k in m.tolist()], dtype=torch.float64)
    largest = float(distances.max())
    return PanelRow(
        *(team.regime, team.seed, team.protocol, str(design), len(chosen), disconnected),
        bias=float(errors.mean()),
        bias_error=float(errors.std(correction=1)) / math.sqrt(len(errors)),
        violations=float((errors.abs() > THRESHOLD).double().mean()),
        hoeffding_violations_largest=float((errors.abs() >= largest * radius).double().mean()),
        radius=largest * bounds.hoeffding(1.0, 1, DELTA) / math.sqrt(float(counts.mean())),
    )


def disconnected_share(chosen: Tensor) -> float:
    """Return the share of graphs that are disconnected.

    Args:
        chosen: Pairs of the graphs, from :func:`draw_pairs`.

    Example:
        >>> disconnected_share(torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))  # a path; an edge and a lone agent
        0.5
    """
    pieces = [connected_components(squareform(row), directed=False)[0] for row in chosen.numpy()]
    return sum(count > 1 for count in pieces) / len(pieces)
