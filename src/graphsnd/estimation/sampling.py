"""Draw observations and agents until the estimate is good enough, or the budget is spent."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from time import perf_counter

import torch
from torch import Tensor

from graphsnd.designs import Agents, Complete, RelabelledDesign, Template
from graphsnd.errors import InputError
from graphsnd.estimation.costs import Budget, Cost, choose, complete_seconds, counts, to_seconds, work
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.forecast import (
    LATER,
    NOW,
    PILOT,
    Forecast,
    Score,
    Tolerance,
    best_design,
    forecast,
    later_looks,
    most_passes,
)
from graphsnd.estimation.intervals import PairError, check_bound, errors, guaranteed_radius, population_error, quantile
from graphsnd.estimation.on_graph import make_estimate
from graphsnd.estimation.sample import Sample, draw, join
from graphsnd.estimation.source import Source

Callback = Callable[[Estimate], None]
FEWEST = 8  # draws that a budget must allow for a pilot beside the answer
MANY = 1024  # draws that are enough: the guarantee's range term, 4.1 / 3 of the bound over their number, is small
SHARE = 16  # a pilot takes at most a sixteenth of a budget of distances


@dataclass(frozen=True, eq=False)
class Task:
    """A design on a source, and everything that was asked about the result."""

    source: Source
    design: RelabelledDesign
    confidence: float
    d_max: float | None  # certified bound on every distance, None when there is none
    clusters: Tensor | None
    seed: int
    budget: Budget | None
    callback: Callback | None
    why: str
    began: float  # seconds, of perf_counter
    most: int | None = None  # observations to draw, at most
    resize: bool = False  # whether a pilot may choose another design

    def template(self) -> Template:
        """Return the design's template for this team."""
        return self.design.template(self.source.agents)

    def limit(self, spent: Cost = Cost()) -> int | None:  # noqa: B008
        """Return the draws that the budget and the number of observations allow; None without a limit."""
        limits = [] if self.most is None else [min(self.most, self.source.observations)]
        if self.budget is not None:
            counted = self.budget.draws(self.source, self.design, spent)
            limits += [] if counted is None else [counted]
        if limits and min(limits) < 2 and spent == Cost():
            two = Cost.of(self.source, self.design, 2)
            need = f"for two observations: {two.distances} distances and {two.evaluations} policy evaluations"
            raise InputError("budget", need, self.budget)
        return min(limits) if limits else None

    def seconds_left(self) -> float:
        """Return the time until the budget's is over."""
        if self.budget is None or self.budget.seconds is None:
            return math.inf
        return self.budget.seconds - (perf_counter() - self.began)

    def first_draws(self, share: float) -> int:
        """Return a first number of draws, at least 2, that is forecast to take at most a share of the time left."""
        each = to_seconds(work(self.source, self.design, 2) - work(self.source, self.design, 1), self.source)
        return int(min(PILOT, max(2, share * self.seconds_left() / each)))


class Stream:
    """Every observation once in random order, with other random agents at each; then all of them again."""

    def __init__(self, task: Task, generator: torch.Generator) -> None:
        self.task, self.template, self.choice = task, task.template(), generator
        self.pending = torch.empty(0, dtype=torch.int64)  # observations of the pass that was begun
        self.parts: list[Sample] = []
        self.draws, self.seconds = 0, 0.0

    @property
    def pace(self) -> float:
        """Seconds per draw."""
        return self.seconds / max(1, self.draws)

    def extend(self, count: int) -> Sample:
        """Draw ``count`` more, at least one; returns all."""
        observations = self.task.source.observations
        passes = range(math.ceil((count - len(self.pending)) / observations))
        orders = [torch.randperm(observations, generator=self.choice) for _ in passes]
        self.pending = torch.cat([self.pending, *orders])  # once: few observations take many passes
        index, self.pending = self.pending[:count], self.pending[count:]
        begin = perf_counter()
        self.parts.append(draw(self.task.source, self.template, index, self.choice))
        self.seconds, self.draws = self.seconds + perf_counter() - begin, self.draws + count
        return join(self.parts)


def sample_once(task: Task) -> Estimate:
    """Inspect the data once: all observations, or the draws that the budget allows.

    The clock may decide when to stop, but not the values, so the interval needs no correction.
    """
    generator, spent = torch.Generator().manual_seed(task.seed), Cost()
    timed = not math.isinf(task.seconds_left())
    if _has_few_draws(task):
        task, spent = _find_narrowest(task, generator)
    elif task.resize and task.limit() is None:
        task, spent = _find_surest(task, Stream(task, generator))
    stream, count = Stream(task, generator), _count_draws(task, spent)
    sample = stream.extend(min(task.first_draws(0.5), count) if timed else count)
    while (more := min(count - sample.draws, _fitting(stream, stream.pace, share=0.5))) > 0:
        sample = stream.extend(more)
    estimate = report(task, sample, 1 - task.confidence, spent)
    if task.callback is not None:
        task.callback(estimate)
    return estimate


def _count_draws(task: Task, spent: Cost) -> int:
    """Return the draws to make: of the observations, or of all that the budget allows after what was spent."""
    observations, limit = task.source.observations, task.limit(spent)
    timed, most = not math.isinf(task.seconds_left()), most_passes(observations) * observations
    count = limit if limit is not None else most if timed else observations
    count = min(count, most) if spent.distances else count  # so a pilot prefers more distances at each draw to more
    # With more distances than there are pairs, all pairs would have been the better choice.
    count = min(count, observations * max(1, math.comb(task.source.agents, 2) // task.template().m))
    # Whole passes, so that every observation counts the same.
    return min(count, observations) if task.budget is None or count < observations else count - count % observations


def _has_few_draws(task: Task) -> bool:
    """Return whether a budget of distances goes into few draws, by whose number the guarantee goes."""
    if not task.resize or task.d_max is None or task.source.policy_cost or task.most is not None:
        return False
    draws = None if task.budget is None or task.budget.seconds else task.budget.draws(task.source, task.design)
    return draws is not None and draws < MANY and task.source.agents > 8


def _find_narrowest(task: Task, generator: torch.Generator) -> tuple[Task, Cost]:
    """Return the task with the design of the narrowest interval for its distances, and the cost of a pilot of them."""
    source, first = task.source, replace(task, design=Agents(8))
    assert task.budget is not None
    draws = min(PILOT, (task.budget.distances or 0) // SHARE // first.template().m)
    if draws < 2:
        return task, Cost()
    seen, spent = Stream(first, generator).extend(draws), Cost.of(source, first.design, draws)
    left = replace(task.budget, distances=(task.budget.distances or 0) - spent.distances)
    even, _ = choose(source, left, tolerance=False)
    assert isinstance(even, RelabelledDesign)
    return _resize(first, seen, _afforded_radius(first, spent), "surest", even), spent


def _afforded_radius(task: Task, spent: Cost) -> Score:
    """Return what forecasts the radius of a design after the draws that the budget allows."""

    def radius(ahead: Forecast) -> float:
        draws = _count_draws(replace(task, design=ahead.design), spent)
        return ahead.radius(draws, task.d_max, 1 - task.confidence) if draws > 1 else math.inf

    return radius


def _find_surest(task: Task, pilot: Stream) -> tuple[Task, Cost]:
    """Return the task with the design of the narrowest interval after half of the time left, and the pilot's cost."""
    seen = pilot.extend(min(task.first_draws(0.25), max(2, task.source.observations // 4)))
    spent, delta = Cost.of(task.source, task.design, seen.draws), 1 - task.confidence
    most = spent.work * task.seconds_left() / (2 * pilot.seconds)
    if most > spent.work:
        task = _resize(task, seen, lambda ahead: ahead.radius_within(most, task.d_max, delta), "surest")
    return task, spent


def _resize(task: Task, seen: Sample, score: Score, best: str, *also: RelabelledDesign) -> Task:
    """Return the task with the design that a pilot found to be the best."""
    if not (task.resize and isinstance(task.design, Agents)):
        return task
    chosen = best_design(task.source, seen, task.design, score, *also)
    why = f"{task.why}; a pilot of {seen.draws} draws found {chosen} {best}"
    return replace(task, design=chosen, why=why)


def _fitting(stream: Stream, pace: float, *, share: float = 1.0) -> int:
    """Return the draws that a share of the time left allows; once all observations were drawn, whole passes of them.

    A pass that ends early would count some observations once more than others.
    """
    task, observations = stream.task, stream.task.source.observations
    left = task.seconds_left()
    if math.isinf(left):
        return sys.maxsize
    fits = max(0, int(share * left / pace))
    total = stream.draws + fits
    return fits if total < observations else total - total % observations - stream.draws


def sample_until(task: Task, tolerance: Tolerance) -> Estimate | None:
    """Draw growing samples until the tolerance is met.

    When to look, and at how many agents, is decided by a pilot of its own draws. The looks are therefore fixed before
    the data they look at, and the intervals of all looks hold together, with failure probabilities that sum to
    1 - confidence. Stopping at any of them is safe.

    Returns:
        The estimate at the look where it stopped; None when measuring everything is cheaper than going on.
    """
    generator = torch.Generator().manual_seed(task.seed)
    observations, limit = task.source.observations, task.limit()
    if limit is not None and limit < FEWEST:  # too little for a pilot: all of it goes into the answer
        estimate = sample_once(task)
        return replace(estimate, met=tolerance.met(estimate))
    pilot, measured = Stream(task, generator), task.design
    fewest = max(2, observations // 4), observations if limit is None else max(2, limit // 4)
    seen = pilot.extend(min(task.first_draws(0.25), *fewest))
    delta = NOW * (1 - task.confidence)
    spent, asked = Cost.of(task.source, measured, seen.draws), task
    task = _resize(task, seen, lambda ahead: ahead.work_for(tolerance, task.d_max, delta), "cheapest")
    price = work if task.resize else counts
    first = forecast(task.source, seen, measured, task.design).draws(tolerance, task.d_max, delta, price)
    if limit is not None and (first is None or (task.limit(spent) or 0) < first):  # then as near as the budget allows
        task, first = _resize(asked, seen, _afforded_radius(asked, spent), "surest"), None

    def can_measure_all() -> bool:
        return limit is None and complete_seconds(task.source) <= task.seconds_left()

    def is_cheaper(draws: int) -> bool:
        return price(task.source, task.design, draws) < price(task.source, Complete(), observations)

    if first is None and can_measure_all():
        return None
    left = None if limit is None else max(2, task.limit(spent) or 0)
    # A pilot may have missed what is rare, and forecast too few draws.
    looks = takewhile(lambda n: is_cheaper(n) or not can_measure_all(), later_looks(first, left, observations))
    answer = _look(task, Stream(task, generator), looks, tolerance, spent, pilot.pace)
    return answer if answer is not None and (answer.met or not can_measure_all()) else None


def _look(
    task: Task, stream: Stream, looks: Iterator[int], tolerance: Tolerance, spent: Cost, pace: float
) -> Estimate | None:
    delta, answer = 1 - task.confidence, None
    for number, target in enumerate(looks, start=1):
        missing = target - stream.draws
        fits = min(missing, _fitting(stream, stream.pace or pace))
        if fits <= 0 and answer is not None:
            return answer
        late = fits < missing
        sample = stream.extend(max(fits, 2 - stream.draws))
        answer = replace(report(task, sample, delta if late else NOW * delta, spent), looks=number)
        answer = replace(answer, met=tolerance.met(answer))
        if task.callback is not None:
            task.callback(answer)
        if answer.met or late:
            return answer
        delta *= LATER
    return answer


def report(task: Task, sample: Sample, delta: float, spent: Cost) -> Estimate:
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
    cost = spent + Cost.of(source, task.design, sample.draws)
    around = population_error(sample.means, sample.index, task.clusters, source.observations, 1 - delta)
    interval = max(0.0, value - radius), min(highest, value + radius)
    sampled = PairError(error, interval, method, guaranteed=task.d_max is not None)
    estimate = make_estimate(source, value, "SND", sampled, around, task.confidence, template.m, str(task.design))
    return replace(
        estimate,
        asymptotic_interval=(max(0.0, value - reach), value + reach),
        observations=min(sample.draws, source.observations),
        policy_evaluations=cost.evaluations if source.policy_cost else source.observations * n,
        pair_error=pair_error,
        distances=cost.distances,
        why=task.why,
        seconds=perf_counter() - task.began,
    )
