"""Numbers of random teams against float64 loops: every family, distance, graph and design, in both precisions.

A case is one team on one graph: all that graphsnd says about it is compared with the definitions in
``tests/oracles.py``. Intervals that hold for every team must hold the true value of an exact measurement, and bounds
must bound.
"""

from __future__ import annotations

import math
import random
import traceback
import warnings
from typing import Any

import numpy as np
import torch

import graphsnd as gs
from tests import oracles
from tests.campaign import Outcome
from tests.cases import CASES, QUADRATURE, Case

FULL = 5_000
DESIGNS = ("complete", "matching", "ring:2", "agents:2", "matching:1", "uniform:1", "bernoulli:0.9", "regular:2")


def random_graph(rng: random.Random, n: int) -> gs.Graph:
    """Draw a graph of some family, half of them with weights of any size."""
    pairs = [(i, j) for i in range(n) for j in range(i)]
    kind = rng.randrange(5)
    if kind == 0:
        return gs.graphs.complete(n)
    if kind == 1:
        return gs.graphs.uniform(n, rng.randint(1, len(pairs)), seed=rng.randrange(99))
    if kind == 2:
        return gs.graphs.bernoulli(n, rng.uniform(0.3, 1.0), seed=rng.randrange(99))
    edges = rng.sample(pairs, rng.randint(1, len(pairs)))
    scale = 10.0 ** rng.choice((0, 0, -300, 300, -30))
    weights = torch.tensor([rng.uniform(0, 1) * scale for _ in edges], dtype=torch.float64) if kind == 4 else None
    return gs.Graph(n, torch.tensor(edges), weights)


class Comparison:
    """Compares the numbers of one case and notes what is off."""

    def __init__(self, outcome: Outcome, example: str, tolerance: float, size: float) -> None:
        self.outcome, self.example, self.tolerance, self.size = outcome, example, tolerance, size

    def equal(self, what: str, got: Any, expected: Any) -> None:
        """Note a number that is off by more than rounding, beside the largest distance."""
        got = np.asarray(got.detach().double() if isinstance(got, torch.Tensor) else got)
        off = float(np.abs(got - np.asarray(expected)).max(initial=0.0))
        if not off <= self.tolerance * max(self.size, 1e-300):
            self.outcome.fail(f"{what} is off", f"{self.example}: {got} is not {expected}")

    def holds(self, what: str, true: bool) -> None:
        """Note a statement that is false."""
        if not true:
            self.outcome.fail(what, self.example)


def compare(case: Case, rng: random.Random, dtype: torch.dtype, outcome: Outcome, example: str) -> None:
    """Compare all that is said about one random team."""
    n, observations = rng.randint(2, 6), rng.randint(1, 4)
    parameters = case.parameters(dtype, observations=observations, agents=n, seed=rng.randrange(2**31))
    behavior, matrix = case.build(*parameters), case.oracle(*parameters)
    single = 3e-5 if dtype == torch.float32 else 0.0
    check = Comparison(outcome, example, max(single, 2e-6 if case in QUADRATURE else 1e-10), float(matrix.max()))
    distance, snd = case.distance, oracles.snd(matrix)
    check.equal("pairwise", gs.pairwise(behavior, distance), matrix)
    check.equal("snd", gs.snd(behavior, distance), snd)
    check.equal("contributions", gs.contributions(behavior, distance), matrix.sum(1) / (n - 1))
    _compare_groups(check, behavior, matrix, rng, distance)
    graph = random_graph(rng, n)
    edges, weights = graph.edges.tolist(), None if graph.weights is None else graph.weights.tolist()
    on_graph = oracles.graph_snd(matrix, edges, weights)
    check.equal("graph_snd", gs.graph_snd(behavior, graph, distance), on_graph)
    check.equal("pairwise of edges", gs.pairwise(behavior, distance, graph=graph), [matrix[i, j] for i, j in edges])
    if graph.inclusion is not None and weights is None:
        total = math.fsum(matrix[i, j] for i, j in edges) / graph.inclusion / math.comb(n, 2)
        check.equal("horvitz_thompson", gs.horvitz_thompson(behavior, graph, distance), total)
    if graph.m:
        check.equal("measure on a graph", gs.measure(behavior, design=graph, distance=distance).value, on_graph)
        _accumulate(check, behavior, graph, distance, on_graph)
    check.holds("diameter bounds no distance", gs.bounds.diameter(behavior, distance) >= matrix.max() * (1 - 1e-6))
    _estimate(check, behavior, distance, snd, rng)


def _compare_groups(
    check: Comparison, behavior: gs.Behavior, matrix: np.ndarray, rng: random.Random, distance: Any
) -> None:
    n = len(matrix)
    labels = [rng.randrange(2) for _ in range(n)]
    split, pairs = gs.decompose(behavior, labels, distance), math.comb(n, 2)
    within = math.fsum(matrix[i, j] for i in range(n) for j in range(i) if labels[i] == labels[j])
    between = math.fsum(matrix[i, j] for i in range(n) for j in range(i) if labels[i] != labels[j])
    check.equal("decompose within", split.within, within / pairs)
    check.equal("decompose between", split.between, between / pairs)


def _accumulate(check: Comparison, behavior: gs.Behavior, graph: gs.Graph, distance: Any, expected: float) -> None:
    """Collect the team, save and resume, and merge with an empty one."""
    accumulator = gs.SndAccumulator(behavior.agents, graph=graph, distance=distance)
    accumulator.update(behavior)
    check.equal("an accumulator", accumulator.compute().value, expected)
    back = gs.SndAccumulator.from_state(accumulator.state(), graph=graph, distance=accumulator.distance)
    check.holds("a resumed accumulator differs", back.compute() == accumulator.compute())


def _estimate(check: Comparison, behavior: gs.Behavior, distance: Any, snd: float, rng: random.Random) -> None:
    """Measure with a design: unbiased designs on all pairs are exact, every estimate is inside its own interval."""
    design = rng.choice(DESIGNS)
    if design == "regular:2" and behavior.agents < 3:
        design = "matching"
    try:
        estimate = gs.measure(behavior, design=design, distance=distance, seed=rng.randrange(99))
    except gs.InputError as error:
        check.holds(f"{design} is refused", "empty draw" in str(error))
        return
    low, high = estimate.interval
    slack = 1e-5 * check.size
    check.holds("an estimate outside its interval", low - slack <= estimate.value <= high + slack)
    check.holds("an estimate below 0", estimate.value >= 0 and low >= 0)
    if estimate.exact:
        check.equal(f"exact {design}", estimate.value, snd)


def compare_bounds(rng: random.Random, outcome: Outcome, example: str) -> None:
    """Compare the closed forms of the concentration bounds, and what they imply."""
    d_max, n, delta = 10 ** rng.uniform(-3, 3), rng.randint(3, 50), 10 ** rng.uniform(-9, -0.1)
    pairs = math.comb(n, 2)
    m, p = rng.randint(1, pairs), rng.uniform(0.01, 1)
    check = Comparison(outcome, example, 1e-12, d_max)
    plain = d_max * math.sqrt(math.log(2 / delta) / (2 * m))
    check.equal("hoeffding", gs.bounds.hoeffding(d_max, m, delta), plain)
    check.equal("serfling", gs.bounds.serfling(d_max, m, pairs, delta), plain * math.sqrt(1 - (m - 1) / pairs))
    mu = p * pairs
    radius = d_max * math.sqrt(math.log(2 / delta) / mu)
    Comparison(outcome, example, 1e-12, radius).equal(
        "bernoulli", gs.bounds.bernoulli(d_max, p, n, delta).radius, radius
    )
    eps = d_max * 10 ** rng.uniform(-3, 0)
    enough = gs.bounds.edges_for(eps, d_max, delta)
    check.holds("edges_for is too few", gs.bounds.hoeffding(d_max, enough, delta) <= eps)
    check.holds("edges_for is too many", enough == 1 or gs.bounds.hoeffding(d_max, enough - 1, delta) > eps)


def run(seed: int, cases: int) -> Outcome:
    """Compare that many random teams."""
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of teams with more agents than observations
        for number in range(cases):
            _attempt(seed, number, outcome)
    return outcome


def _attempt(seed: int, number: int, outcome: Outcome) -> None:
    rng = random.Random(f"{seed}:{number}")
    case = rng.choice(CASES)
    dtype = rng.choice((torch.float64, torch.float64, torch.float32))
    example = f"{case.name} in {dtype} (seed {seed}, case {number})"
    try:
        compare(case, rng, dtype, outcome, example)
        compare_bounds(rng, outcome, example)
    except Exception as error:  # a campaign goes on, and reports
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome.fail(f"{type(error).__name__} at {where.name}:{where.lineno}", f"{example}: {error}")
    outcome.cases += 1
