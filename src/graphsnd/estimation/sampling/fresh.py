"""Draw observations and agents until the answer is good enough, or the budget is spent."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import torch

from graphsnd.errors import InputError
from graphsnd.estimation.designs import AgentSubset, AllPairs
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.fixed import population
from graphsnd.estimation.sampling.forecast import PASSES, Tolerance, best_size, forecast, later_looks
from graphsnd.estimation.sampling.intervals import errors, guaranteed_radius, quantile
from graphsnd.estimation.sampling.sample import Sample
from graphsnd.estimation.sampling.stream import Cost, Stream, Task
from graphsnd.estimation.sampling.work import counts, seconds, work

FEWEST = 8  # draws that a budget must allow for a pilot beside the answer
PILOT = 256  # draws that decide when to look; they are not used for the answer
NOW, LATER = 0.7, 0.3  # of the failure probability left: for this look, and for all later ones


def once(task: Task) -> Estimate:
    """One look: all observations, or as many draws as the budget allows.

    The clock may decide when to stop, but not the values, so the interval needs no correction.
    """
    stream, observations = Stream(task, torch.Generator().manual_seed(task.seed)), task.source.observations
    timed = not math.isinf(task.seconds_left())
    limit = task.limit()
    count = limit if limit is not None else (PASSES if timed else 1) * observations
    # Beyond as many distances as there are pairs, all pairs would have been the better choice.
    count = min(count, observations * max(1, math.comb(task.source.agents, 2) // task.template().m))
    # Whole passes, so that every observation counts the same.
    count = min(count, observations) if task.budget is None or count < observations else count - count % observations
    sample = stream.extend(min(PILOT, count) if timed else count)
    while (more := min(count - sample.draws, _fitting(stream, stream.pace, share=0.5))) > 0:
        sample = stream.extend(more)
    found = report(task, sample, 1 - task.confidence, Cost())
    if task.callback is not None:
        task.callback(found)
    return found


def _fitting(stream: Stream, pace: float, *, share: float = 1.0) -> int:
    """Draws that a share of the time left allows; once all observations have been seen, whole passes of them.

    A pass that ends early would count some observations once more than others.
    """
    task, observations = stream.task, stream.task.source.observations
    left = task.seconds_left()
    if math.isinf(left):
        return sys.maxsize
    fits = max(0, int(share * left / pace))
    total = stream.draws + fits
    return fits if total < observations else total - total % observations - stream.draws


def until(task: Task, tolerance: Tolerance) -> Estimate | None:
    """Look at growing samples until the tolerance is met.

    When to look, and at how many agents, is decided by a pilot of its own draws. The looks are therefore fixed before
    the data they look at, and the intervals of all looks hold together, with failure probabilities that sum to
    1 - confidence. Stopping at any of them is safe.

    Returns:
        The estimate at the look where it stopped; None when measuring everything is cheaper than going on.
    """
    generator = torch.Generator().manual_seed(task.seed)
    observations, limit = task.source.observations, task.limit()
    if limit is not None and limit < FEWEST:  # too little for a pilot: all of it goes into the answer
        found = once(task)
        return replace(found, met=tolerance.met(found))
    pilot, measured = Stream(task, generator), task.design
    seen = pilot.extend(min(PILOT, max(2, observations // 4), observations if limit is None else max(2, limit // 4)))
    delta = NOW * (1 - task.confidence)
    if task.resize and isinstance(measured, AgentSubset):
        chosen = best_size(task.source, seen, measured, tolerance, task.d_max, delta)
        why = f"{task.why}; a pilot of {seen.draws} observations found {chosen.size} cheapest"
        task = replace(task, design=chosen, why=why)
    price = work if task.resize else counts
    first = forecast(task.source, task.design, seen, tolerance, task.d_max, delta, measured=measured, price=price)
    if first is None and limit is None and seconds(task.source, AllPairs()) <= task.seconds_left():
        return None
    spent = Cost.of(measured, task.source, seen.draws)
    left = None if limit is None else max(2, task.limit(spent) or 0)
    looks = later_looks(first, left, observations)
    return _look(task, Stream(task, generator), looks, tolerance, spent, pilot.pace)


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
    """What a sample says, with an interval that fails with probability ``delta``."""
    source, template = task.source, task.template()
    n, value = source.agents, sample.value()
    if task.d_max is not None and float(sample.means.max()) > task.d_max * (1 + 1e-6):
        fix = f"A distance of {float(sample.means.max()):.4g} was measured."
        raise InputError("d_max", "to bound every distance", task.d_max, fix)
    error, pair_error = errors(sample, template, n, source.observations, task.d_max)
    reach = quantile(delta, sample.draws - 1) * error if error else 0.0
    if task.d_max is None:
        radius, method = reach, "asymptotic: no bound on the distances is known, pass d_max for a guarantee"
    else:
        radius, method = guaranteed_radius(sample, template, n, source.observations, task.d_max, delta)
    highest = math.inf if task.d_max is None else max(task.d_max, value)
    cost = spent + Cost.of(task.design, source, sample.draws)
    around = population(sample.means, sample.index, task.clusters, source.observations, 1 - delta)
    return Estimate(
        value=value,
        target="SND",
        standard_error=error,
        interval=(max(0.0, value - radius), min(highest, value + radius)),
        asymptotic_interval=(max(0.0, value - reach), value + reach),
        confidence=task.confidence,
        method=method,
        observation_error=around.error,
        agents=n,
        observations=min(sample.draws, source.observations),
        pairs_total=n * (n - 1) // 2,
        pairs_used=template.m,
        policy_evaluations=cost.evaluations if source.policy_cost else source.observations * n,
        distance=source.distance.name,
        design=task.design.name,
        pair_error=pair_error,
        population_interval=around.interval,
        observations_total=source.observations,
        distances=cost.distances,
        why=task.why,
        seconds=perf_counter() - task.began,
        guaranteed=task.d_max is not None,
    )
