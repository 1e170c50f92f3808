"""How many draws a tolerance will take, and what a budget buys, forecast from a pilot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from graphsnd.designs import Agents, Complete, Design, Pairs, RelabelledDesign, Ring
from graphsnd.errors import InputError
from graphsnd.estimation.costs import counts, work
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import observation_radius, pair_radius, quantile
from graphsnd.estimation.sample import Sample, variance
from graphsnd.estimation.source import Workload
from graphsnd.sums import mean

STEP = 1.1  # between sample sizes that are considered
MARGIN = 0.93  # of the tolerance, since the pilot's variance is itself an estimate
GROWTH = 1.35  # from one look to the next
PILOT = 256  # draws that decide when to look; they are not used for the estimate
NOW, LATER = 0.7, 0.3  # of the failure probability left: for this look, and for all later ones
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # of random subsets of agents
PAIRS = (8, 32, 128, 512, 2048)  # random ones, where no policy has to be evaluated for them
PASSES, DRAWS = 1024, 1 << 20  # over all observations, at most: passes, or more where they are few draws
Price = Callable[[Workload, Design, float], float]


@dataclass(frozen=True)
class Tolerance:
    """The half-width that is good enough.

    A relative tolerance is met when the half-width is at most that share of the *lower* end of the interval, so that
    the relative error is below it whatever the true value in the interval is.
    """

    absolute: float | None = None
    relative: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("tol", self.absolute), ("rel_tol", self.relative)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(name, "to be positive and finite", value)

    def width(self, value: float) -> float:
        """Return the half-width to reach when the value is ``value``."""
        absolute = math.inf if self.absolute is None else self.absolute
        relative = math.inf if self.relative is None else value * self.relative / (1 + self.relative)
        return min(absolute, relative)

    def met(self, estimate: Estimate) -> bool:
        """Return whether an estimate is good enough."""
        low, high = estimate.interval
        reach = max(estimate.value - low, high - estimate.value)
        if reach == 0 and not estimate.guaranteed and estimate.observations < estimate.observations_total:
            return False  # draws that are all alike say nothing about what was not drawn
        narrow = self.absolute is None or reach <= self.absolute
        return narrow and (self.relative is None or reach <= self.relative * low)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a pilot says about the draws of a design, its own or another."""

    source: Workload
    design: RelabelledDesign
    pilot: Sample
    pairs: float  # variance of a draw from the choice of agents
    total: float  # with the choice of the observation
    inside: float  # expected spread of the distances of a draw

    def radius(self, draws: int, d_max: float | None, delta: float) -> float:
        """Return the half-width after that many draws, guaranteed where there is a bound on the distances."""
        n, observations = self.source.agents, self.source.observations
        template = self.design.template(n)
        if d_max is None:
            share = min(1.0, draws / observations)
            both = max(self.pairs, (1 - share) * self.total + share * self.pairs)
            return quantile(delta, draws - 1) * math.sqrt(both / draws)
        ceiling = Sample.pair_variance_ceiling(template, n)
        if draws < observations or ceiling is None:
            return observation_radius(draws, self.total, d_max, delta)[0]
        return pair_radius(draws, self.inside, ceiling, template.m, d_max, delta)[0]

    def draws(self, tolerance: Tolerance, d_max: float | None, delta: float, price: Price = counts) -> int | None:
        """Return the fewest draws whose radius will be within the tolerance; None if all pairs cost no more.

        Args:
            tolerance: What is asked for.
            d_max: Bound on every distance, or None for the asymptotic radius.
            delta: Failure probability of the first look.
            price: What draws cost: as they are counted, where the design was asked for, or by the time they take.
        """
        width = MARGIN * tolerance.width(self.pilot.value())
        everything = price(self.source, Complete(), self.source.observations)
        for draws in _sizes(self.pilot.draws, self.source.observations):
            if price(self.source, self.design, draws) >= everything:
                return None
            if self.radius(draws, d_max, delta) <= width:
                return draws
        return None

    def work_for(self, tolerance: Tolerance, d_max: float | None, delta: float) -> float:
        """Return the work that the tolerance will take; infinite if all pairs take no more."""
        draws = self.draws(tolerance, d_max, delta, work)
        return math.inf if draws is None else work(self.source, self.design, draws)

    def radius_within(self, most: float, d_max: float | None, delta: float) -> float:
        """Return the radius after ``most`` work; infinite if that is not enough for as many draws as the pilot's."""
        sizes = _sizes(self.pilot.draws, self.source.observations)
        draws = max(takewhile(lambda size: work(self.source, self.design, size) <= most, sizes), default=None)
        return math.inf if draws is None else self.radius(draws, d_max, delta)


Score = Callable[[Forecast], float]


def _sizes(start: int, observations: int) -> Iterator[int]:
    size = float(min(start, PILOT, max(2, observations // 4)))  # a pilot that was given may have more draws
    while size < 0.9 * observations:
        yield int(size)
        size *= STEP
    passes = 1
    while passes < most_passes(observations):
        yield passes * observations
        passes = max(passes + 1, int(STEP * passes))


def most_passes(observations: int) -> int:
    """Return the most passes over all observations: a large team may have one observation and 1e12 pairs at it.

    Example:
        >>> most_passes(1), most_passes(100_000)
        (1048576, 1024)
    """
    return max(PASSES, DRAWS // observations)


def forecast(source: Workload, pilot: Sample, measured: RelabelledDesign, design: RelabelledDesign) -> Forecast:
    """Forecast the draws of ``design`` from a pilot of ``measured``.

    The same design has shown its variances; those of another follow from the products of distances.
    """
    n = source.agents
    template, total = design.template(n), pilot.total_variance()
    if design == measured:
        return Forecast(source, design, pilot, pilot.pair_variance(template, n), total, float(mean(pilot.spreads)))
    moments = pilot.moments.mean(dim=0)
    between = max(0.0, total - pilot.pair_variance(measured.template(n), n))
    pairs = variance(moments, n, template.m, template.meeting())
    whole = variance(moments, n, 1, 0)  # one random pair has the variance of all distances
    inside = max(0.0, whole - pairs) * template.m / (template.m - 1) if template.m > 1 else math.nan
    return Forecast(source, design, pilot, pairs, between + pairs, inside)


def best_design(
    source: Workload, pilot: Sample, measured: Agents, score: Score, *also: RelabelledDesign
) -> RelabelledDesign:
    """Return the design with the lowest score: the work, or the radius, that a pilot forecasts.

    Few agents or pairs need more observations, many more work at each; where the guarantee's range term decides, few
    win. Policies are evaluated for random agents only, all pairs of which are measured. ``also`` has other designs.
    """
    if not len(pilot.moments):
        return measured
    designs: list[RelabelledDesign] = [*also, measured, *(Agents(size) for size in SIZES if size <= source.agents)]
    if not (source.policy_cost and source.proportional):  # a ring, where nothing will do: it varies the least
        designs = [Ring(4), *designs, *(Pairs(count) for count in PAIRS if 2 * count <= source.agents)]
    return min(designs, key=lambda design: score(forecast(source, pilot, measured, design)))


def later_looks(first: int | None, limit: int | None, observations: int) -> Iterator[int]:
    """Yield sample sizes at which to stop if the tolerance is met: the forecast, then growing; at last whole passes."""
    size = first or limit or observations
    while True:
        size = size if size < 0.9 * observations else -(-size // observations) * observations
        if limit is not None and size >= limit:
            yield limit if limit < observations else limit - limit % observations
            return
        yield size
        if size >= most_passes(observations) * observations:
            return
        size = int(max(size + 1, GROWTH * size))
