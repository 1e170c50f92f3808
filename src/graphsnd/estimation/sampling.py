"""Draw observations and agents: once for each observation, or until the interval is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphsnd.designs import RelabelledDesign, Template
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import PairError, check_bound, errors, guaranteed_radius, population_error, quantile
from graphsnd.estimation.on_graph import make_estimate
from graphsnd.estimation.sample import Sample, draw, join
from graphsnd.estimation.source import Source

FIRST, GROWTH = 256, 1.35  # draws before the first look, and how much they grow until the next
PASSES, DRAWS = 1024, 1 << 20  # over all observations, at most: passes, or more where they are few draws
# Prices in distances of the sweep over all pairs, measured by `python -m benchmarks share` on a CPU.
REDRAWN, POLICY = 50, 1000  # a redrawn pair; a policy on one observation
CHEAP = 1 << 31  # distances of the sweep that take about a second


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

    def met(self, estimate: Estimate) -> bool:
        """Return whether an estimate is good enough."""
        low, high = estimate.interval
        reach = max(estimate.value - low, high - estimate.value)
        if reach == 0 and not estimate.guaranteed and estimate.observations < estimate.observations_total:
            return False  # draws that are all alike say nothing about what was not drawn
        narrow = self.absolute is None or reach <= self.absolute
        return narrow and (self.relative is None or reach <= self.relative * low)


@dataclass(frozen=True, eq=False)
class Task:
    """A design on a source, and everything that was asked about the result."""

    source: Source
    design: RelabelledDesign
    confidence: float
    d_max: float | None  # certified bound on every distance, None when there is none
    clusters: Tensor | None
    seed: int
    redrawn: float = 1.0  # price of a redrawn pair; as it is counted where the design was asked for

    def template(self) -> Template:
        """Return the design's template for this team."""
        return self.design.template(self.source.agents)

    def evaluations(self, draws: int) -> int:
        """Return the policies times observations of that many draws; 0 where all agents have been evaluated."""
        each = self.template().size if self.source.proportional else self.source.agents
        return draws * each if self.source.policies else 0

    def price(self, draws: int) -> float:
        """Return the price of that many draws."""
        pairs = draws * self.template().m * (self.redrawn + self.source.slowness - 1)
        return pairs + POLICY * self.evaluations(draws)


def complete_price(source: Source) -> float:
    """Return the price of all pairs at all observations."""
    pairs = source.observations * math.comb(source.agents, 2) * source.slowness
    return pairs + POLICY * source.policies * source.observations * source.agents


class Stream:
    """Every observation once in random order, with other random agents at each; then all of them again."""

    def __init__(self, task: Task) -> None:
        self.task, self.template = task, task.template()
        self.generator = torch.Generator().manual_seed(task.seed)
        self.pending = torch.empty(0, dtype=torch.int64)  # observations of the pass that was begun
        self.parts: list[Sample] = []
        self.draws = 0

    def extend(self, count: int) -> Sample:
        """Draw ``count`` more, at least one; returns all."""
        observations = self.task.source.observations
        passes = range(math.ceil((count - len(self.pending)) / observations))
        orders = [torch.randperm(observations, generator=self.generator) for _ in passes]
        self.pending = torch.cat([self.pending, *orders])  # once: few observations take many passes
        index, self.pending = self.pending[:count], self.pending[count:]
        self.parts.append(draw(self.task.source, self.template, index, self.generator))
        self.draws += count
        return join(self.parts)


def sample_once(task: Task) -> Estimate:
    """Draw once for each observation."""
    return report(task, Stream(task).extend(task.source.observations), 1 - task.confidence)


def sample_until(task: Task, tolerance: Tolerance) -> Estimate | None:
    """Draw growing samples until the tolerance is met.

    The sample sizes are fixed before anything is drawn. Look k fails with probability (1 - confidence) / (k (k + 1)) at
    most. These sum to 1 - confidence, so the intervals of all looks hold together, and stopping at any of them is safe.

    Returns:
        The estimate at the look where it stopped; None where all pairs are cheaper than going on.
    """
    stream, delta = Stream(task), 1 - task.confidence
    for look, draws in enumerate(_looks(task.source.observations), start=1):
        if task.price(draws) >= complete_price(task.source):
            return None
        estimate = report(task, stream.extend(draws - stream.draws), delta / (look * (look + 1)))
        estimate = replace(estimate, looks=look, met=tolerance.met(estimate))
        if estimate.met:
            return estimate
    return estimate


def _looks(observations: int) -> Iterator[int]:
    """Yield growing numbers of draws; from about one pass on whole passes, so that all observations count the same."""
    size, most = min(FIRST, observations), max(PASSES * observations, DRAWS)
    while size <= most:
        size = size if size < 0.9 * observations else -(-size // observations) * observations
        yield size
        size = math.ceil(GROWTH * size)


def report(task: Task, sample: Sample, delta: float) -> Estimate:
    """Return what a sample says, with an interval that fails with probability ``delta``."""
    source, template = task.source, task.template()
    n, value = source.agents, sample.value()
    check_bound(sample.means, task.d_max)
    error, pair_error = errors(sample, template, n, source.observations, task.d_max)
    reach = quantile(delta, sample.draws - 1) * error if error else 0.0
    if task.d_max is None:
        radius, method = reach, "asymptotic: no bound on the distances is known, pass d_max for a guarantee"
    else:
        radius, method = guaranteed_radius(sample, template, n, source.observations, task.d_max, delta)
    highest = math.inf if task.d_max is None else max(task.d_max, value)
    around = population_error(sample.means, sample.index, task.clusters, source.observations, 1 - delta)
    interval = max(0.0, value - radius), min(highest, value + radius)
    sampled = PairError(error, interval, method, guaranteed=task.d_max is not None)
    estimate = make_estimate(source, value, "SND", sampled, around, task.confidence, template.m, str(task.design))
    return replace(
        estimate,
        asymptotic_interval=(max(0.0, value - reach), value + reach),
        observations=min(sample.draws, source.observations),
        policy_evaluations=task.evaluations(sample.draws) or source.observations * n,
        pair_error=pair_error,
        distances=sample.draws * template.m,
    )
