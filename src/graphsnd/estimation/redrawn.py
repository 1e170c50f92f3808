"""Pairs that are redrawn for each observation: once for each, or until the interval is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphsnd.designs.template import Template
from graphsnd.errors import check_number
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import (
    FREEDOM,
    PairError,
    check_bound,
    guaranteed_radius,
    make_estimate,
    population_error,
    quantile,
    standard_errors,
)
from graphsnd.estimation.moments import Draws, draw, join
from graphsnd.estimation.source import Source
from graphsnd.kernels.reference import slowness

# Draws before the first look, and how much they grow until the next. 1,024 draws miss what happens at 1% of all
# observations with chance 3e-5, 256 draws 8 times in 100.
FIRST, GROWTH = 1024, 1.35
PASSES, DRAWS = 1024, 1 << 20  # over all observations, at most: passes, or more where they are few draws
# Prices in distances of the sweep over all pairs, measured by `python -m benchmarks share` on a CPU.
REDRAWN_PRICE, POLICY_PRICE = 50, 1000  # a redrawn pair; a policy on one observation
CHEAP = 1 << 31  # distances of the sweep that take about a second


@dataclass(frozen=True)
class Tolerance:
    """The largest half-width that is accepted.

    A relative tolerance is met when the half-width is at most that share of the *lower* end of the interval, so that
    the relative error is below it whatever the true value in the interval is.
    """

    absolute: float | None = None
    relative: float | None = None

    def __post_init__(self) -> None:
        if self.absolute is not None:
            check_number("tol", self.absolute, above=0)
        if self.relative is not None:
            check_number("rel_tol", self.relative, above=0, below=1, fix="Write 0.01 for 1%.")

    def met(self, estimate: Estimate) -> bool:
        """Return whether an estimate meets the tolerance."""
        low, high = estimate.interval
        reach = max(estimate.value - low, high - estimate.value)
        if not estimate.guaranteed and estimate.freedom < FREEDOM:
            return False  # too few draws, or too few that differ, to say how much they vary
        narrow = self.absolute is None or reach <= self.absolute
        return narrow and (self.relative is None or reach <= self.relative * low)


def complete_price(source: Source) -> float:
    """Return the price of all pairs at all observations."""
    pairs = math.comb(source.agents, 2) * slowness(source.like)
    return source.observations * (pairs + POLICY_PRICE * source.evaluations)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A template on new random agents at each observation of a source, with the requested tolerance."""

    source: Source
    template: Template
    name: str  # of the design
    confidence: float
    groups: Mapping[str, Tensor]  # ways to part the observations into clusters
    d_max: float | None  # certified bound on every distance, None where there is none
    generator: torch.Generator  # is advanced

    def measure_once(self) -> Estimate:
        """Draw once for each observation."""
        (draws,) = self._extend([self.source.observations])
        return self._report(draws, 1 - self.confidence)

    def measure_until(self, tolerance: Tolerance, pair_price: float) -> Estimate | None:
        """Draw until the tolerance is met.

        The numbers of draws are fixed before anything is drawn. Look k fails with probability
        (1 - confidence) / (k (k + 1)) at most. These sum to 1 - confidence, so the intervals of all looks hold
        together, and stopping at any of them is safe.

        Args:
            tolerance: The largest half-width that is accepted.
            pair_price: Price of a redrawn pair, in pairs of the sweep over all of them.

        Returns:
            The estimate at the look where it stopped; None where all pairs are cheaper than going on.
        """
        most, counts, estimate = complete_price(self.source), list(_looks(self.source.observations)), None
        affordable = [count for count in counts if self._price(count, pair_price) < most]
        for look, draws in enumerate(self._extend(affordable), start=1):
            estimate = self._report(draws, (1 - self.confidence) / (look * (look + 1)))
            estimate = replace(estimate, looks=look, met=tolerance.met(estimate))
            if estimate.met:
                return estimate
        return estimate if affordable == counts else None

    def _extend(self, counts: Iterable[int]) -> Iterator[Draws]:
        """Yield all draws so far for growing counts: each observation once in random order, then all of them again."""
        observations, drawn, parts = self.source.observations, 0, []
        pending = torch.empty(0, dtype=torch.int64)  # observations left of the current pass
        for count in counts:
            passes = range(math.ceil((count - drawn - len(pending)) / observations))
            orders = [torch.randperm(observations, generator=self.generator) for _ in passes]
            pending = torch.cat([pending, *orders])  # once: few observations take many passes
            index, pending = pending[: count - drawn], pending[count - drawn :]
            parts.append(draw(self.source, self.template, index, self.generator))
            drawn = count
            yield join(parts)

    def _evaluations(self, draws: int) -> int:
        """Return the policies times observations of that many draws; 0 where all agents have been evaluated."""
        team = self.source.team
        each = self.template.size if team is None or team.proportional else self.source.agents
        return draws * min(each, self.source.evaluations)

    def _price(self, draws: int, pair_price: float) -> float:
        pairs = draws * self.template.m * (pair_price + slowness(self.source.like) - 1)
        return pairs + POLICY_PRICE * self._evaluations(draws)

    def _report(self, draws: Draws, delta: float) -> Estimate:
        """Return the estimate of the draws, with an interval that fails with probability ``delta``."""
        source, template, d_max = self.source, self.template, self.d_max
        n, value, count = source.agents, draws.value(), draws.count
        check_bound(draws.means, d_max)
        error, pair_error, freedom = standard_errors(draws, template, n, source.observations, d_max)
        if d_max is None:
            radius = quantile(delta, freedom) * error if error else 0.0
            method = "asymptotic: no bound on the distances is known, pass d_max for a guarantee"
        else:
            radius, method = guaranteed_radius(draws, template, n, source.observations, d_max, delta)
        highest = math.inf if d_max is None else max(d_max, value)
        others = population_error(draws.means, draws.index, self.groups, 1 - delta)
        interval = max(0.0, value - radius), min(highest, value + radius)
        sampled = PairError(error, interval, method, d_max is not None, freedom)
        estimate = make_estimate(
            value, "SND", sampled, others, source, confidence=self.confidence, design=self.name, delta=delta
        )
        return replace(
            estimate,
            observations=min(count, source.observations),
            pairs_used=template.m,
            policy_evaluations=self._evaluations(count) or source.observations * n,
            pair_error=pair_error,
            distances=count * template.m,
            redrawn=True,
        )


def _looks(observations: int) -> Iterator[int]:
    """Yield growing numbers of draws; after about one pass only whole passes, so that observations count equally."""
    size, most = min(FIRST, observations), max(PASSES * observations, DRAWS)
    while size <= most:
        size = size if size < 0.9 * observations else -(-size // observations) * observations
        yield size
        size = math.ceil(GROWTH * size)
