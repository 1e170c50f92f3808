"""Is a difference real? The SND of two teams on the same observations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError, check_clusters, check_finite, check_integer, check_layout, check_number
from graphsnd.estimation.estimate import Interval
from graphsnd.estimation.intervals import group_observations, population_error
from graphsnd.estimation.measuring import observation_values
from graphsnd.estimation.source import as_source
from graphsnd.teams.policies import Policy
from graphsnd.teams.team import Team

RESAMPLES = 9999


@dataclass(frozen=True)
class TeamsComparison:
    """The SND of two teams on the same observations, and their difference with its interval.

    Example:
        >>> seen = torch.randn(640, 4, generator=torch.Generator().manual_seed(0))
        >>> same = compare([torch.sin, torch.cos], [torch.cos, torch.sin], seen)
        >>> same.difference, same.p_value, same.clusters
        (0.0, 1.0, 32)
    """

    first: float  # SND of the first team
    second: float  # SND of the second team
    difference: float  # first - second
    interval: Interval  # of the difference, for other observations like these, by clusters; asymptotic
    p_value: float  # of the test that each cluster's difference is as likely to have the other sign
    confidence: float  # coverage of the interval
    clusters: int  # number of clusters
    by: str  # definition of the clusters
    observations: int  # number of observations
    distance: str  # name of the distance

    def __float__(self) -> float:
        return self.difference

    def __str__(self) -> str:
        low, high = self.interval
        teams = f"SND {self.first:.6g} and {self.second:.6g}"
        gap = f"difference {self.difference:+.4g} [{low:+.4g}, {high:+.4g}]"
        sure = f"{'significant' if low > 0 or high < 0 else 'not significant'} at {100 * self.confidence:.4g}%"
        where = f"{self.observations:,} shared observations; {self.by}"
        return f"{teams}: {gap}, {sure}, p = {self.p_value:.2g} ({where})"


def compare(
    first: Behavior | Team | Policy | Sequence[Policy],
    second: Behavior | Team | Policy | Sequence[Policy],
    observations: Any = None,
    *,
    clusters: torch.Tensor | Sequence[int] | None = None,
    distance: Distance | str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    backend: str = "auto",
) -> TeamsComparison:
    r"""Compare the SND of two teams on the same observations: is a difference of 0.02 real?

    Both are measured exactly at every observation, so the difference is paired: what makes an observation tell agents
    apart, it does for both teams. What is left to chance is which observations were made. Those of one episode
    resemble each other, so the interval (Student's) and the test (signs of the clusters' differences flipped at random:
    scipy's ``permutation_test``) are over clusters.

    Args:
        first: A behaviour, or policies.
        second: The same; the teams may have different sizes.
        observations: ``[..., features]`` for policies, shown to both teams; None for behaviours, which must have been
            evaluated on the same ones.
        clusters: Episode or environment of each observation, integers of the leading shape or flat; as in
            :func:`graphsnd.measure` when None.
        distance: A distance or its name; the family's default when None.
        confidence: Coverage of the interval.
        seed: Seed of the test.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The comparison.

    Raises:
        InputError: For different numbers or layouts of observations, different distances, or fewer than 2 clusters.

    Example:
        >>> import torch, graphsnd as gs
        >>> seen = torch.randn(640, 4, generator=torch.Generator().manual_seed(0))
        >>> teams = [[(lambda o, k=k, n=n: k * o[:, :n]) for k in range(3)] for n in (2, 1)]
        >>> found = gs.compare(*teams, seen)
        >>> found.interval[0] > 0, found.p_value < 0.01
        (True, True)
    """
    confidence = check_number("confidence", confidence, above=0, below=1)
    seed = check_integer("seed", seed, "to be an integer, at least 0", low=0)
    if first is None or second is None:
        raise InputError("second" if second is None else "first", "to be a team or a behaviour", None)
    sources = [as_source(team, observations, distance, backend) for team in (first, second)]
    count = sources[0].observations
    if sources[1].observations != count:
        raise InputError("second", f"on the same {count} observations", f"{sources[1].observations} of them")
    check_layout("second", sources[1].batch_shape, sources[0].batch_shape)
    with torch.no_grad():
        values = [observation_values(source).double() for source in sources]
    distances = [source.distance for source in sources]
    if distances[0] != distances[1]:  # two Joints may have other weights under one name
        expected = f"with the distance {distances[0]}, as the first"
        raise InputError("second", expected, distances[1], "Choose one: distance=.")
    for value in values:
        check_finite("team", value)
    given = check_clusters(clusters, sources[0].batch_shape)
    groups = group_observations(sources[0].batch_shape, given, sources[0].by_agent)
    difference = values[0] - values[1]
    found = population_error(difference, None, groups, confidence, lowest=-math.inf)
    if found.population_interval is None:
        fix = "Pass clusters=, or more observations. A single episode says nothing about others."
        raise InputError("clusters", "to be at least 2 different ones", found.clusters, fix)
    group = groups[found.clusters]
    one, two = (each.new_zeros(int(group.max()) + 1).index_add_(0, group, each) for each in values)
    test = stats.permutation_test(
        (one.numpy(), two.numpy()), lambda a, b, axis: (a - b).sum(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=RESAMPLES, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return TeamsComparison(
        float(values[0].mean()), float(values[1].mean()), float(difference.mean()), found.population_interval,
        float(test.pvalue), confidence, len(one), found.clusters, count, distances[0].name,
    )  # fmt: skip
