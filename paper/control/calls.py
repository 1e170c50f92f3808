"""The metric of a controller by itself: in a loop over pairs, in fused kernels, and as a share of an iteration.

The published runs time the metric alone and call it twice in every optimiser step: once for PPO's loss, once for the
loss that keeps means in the box. Before each call all N networks are evaluated on the observations of all N agents.
The published timer leaves out this evaluation.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import truediv

import torch
from torch import Tensor

from benchmarks.timing import Clock
from graphsnd.control.measurement import measure_points
from graphsnd.designs.design import parse
from graphsnd.errors import InputError
from graphsnd.graphs import Graph
from graphsnd.rl.streams import hashed
from paper.control.logs import History
from paper.control.study import REFERENCE
from paper.experiment import Number
from paper.shared.calls import Answers, all_pairs, distance, loop_call, loop_mean
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import CPU, Timing, speedup, take_turns

ACTIONS, CALLS_PER_STEP = 2, 2
POINTS_SEED, LEAST = 5, 21


@dataclass(frozen=True)
class MetricTimes:
    """Times of the metric by arm, in a loop over pairs and in fused kernels."""

    loop: dict[str, Timing]
    fused: dict[str, Timing]


@dataclass(frozen=True)
class Iteration:
    """Time shares of an iteration with full SND in training, medians over iterations and runs."""

    seconds: float
    estimates: float  # share of the estimates: all networks on all agents' observations, and the distances
    metric: float  # share of graphs and distances alone
    metric_speedup: float  # seconds for graphs and distances over those of a sparse arm


def time_calls(
    agents: int, arms: Sequence[str], *, loop: int, fused: int, trials: int, device: torch.device = CPU
) -> MetricTimes:
    """Time the metric over all pairs and by sparse arms, the graph drawn inside, on outputs of one minibatch.

    The outputs are random, because a time depends on shapes and not on values. In the loop a nearest-neighbour arm has
    one graph, from the agents' positions in one frame. In the fused kernels it has a graph for every observation, as in
    training.

    Args:
        agents: Size of the team.
        arms: Designs to time beside all pairs, as :func:`graphsnd.designs.parse` reads them.
        loop: Number of observations in the loop.
        fused: Number of observations in the kernels.
        trials: Calls of each loop, taking turns. The kernels take a thousandth of the time and have 21 at least.
        device: Device of the outputs.
    """
    arms = (REFERENCE, *arms)
    with one_thread():
        calls = {f"loop, {arm}": _loop(arm, agents, loop, device) for arm in arms}
        calls |= {f"fused, {arm}": _fused(arm, agents, fused, device) for arm in arms}
        counts = {name: trials if name.startswith("loop") else max(trials, LEAST) for name in calls}
        timings = take_turns(calls, trials=counts, clock=Clock(device, wall=True), warm=1)
        by_way = ({arm: timings[f"{way}, {arm}"] for arm in arms} for way in ("loop", "fused"))
        return MetricTimes(*by_way)


def compute_speedups(times: dict[str, Timing]) -> dict[str, Number]:
    """Return the time over all pairs divided by that of each other arm: ratio of medians, interval over blocks."""
    full = times[REFERENCE].seconds
    return {arm: speedup(full, call.seconds, medians=True) for arm, call in times.items() if arm != REFERENCE}


def time_iterations(histories: Iterable[History], arm: str) -> Iteration:
    """Return the times of iterations in training, from the logs of runs that were trained one by one.

    Args:
        histories: Histories of full SND and of an arm.
        arm: Name of the other arm.
    """
    rows = {name: [row for one in histories if one.run.arm == name for row in one.rows] for name in (REFERENCE, arm)}
    metric = {name: [row.distance_seconds or 0.0 for row in mine] for name, mine in rows.items()}
    spent = [(row.policy_seconds or 0.0) + (row.distance_seconds or 0.0) for row in rows[REFERENCE]]
    rest = [row.rollout_seconds + row.update_seconds + (row.audit_seconds or 0.0) for row in rows[REFERENCE]]
    whole = [sum(parts) for parts in zip(spent, rest, strict=True)]
    estimates, share = (statistics.median(map(truediv, part, whole)) for part in (spent, metric[REFERENCE]))
    full, sparse = (statistics.median(metric[name]) for name in (REFERENCE, arm))
    return Iteration(statistics.median(whole), estimates, share, full / sparse)


def arithmetic_share(agents: int) -> float:
    r"""Return the share of both estimates in the multiplications of a step, for networks of about equal size.

    One network on one observation costs 1 forward and 2 backward. PPO runs three networks: the shared one, the agent's
    own and its critic. The loss of the box runs the first two again. An estimate runs all N networks forward. Distances
    are not counted:

    .. math:: 2 N / (2 N + 3 \cdot 3 + 3 \cdot 2)

    Example:
        >>> round(arithmetic_share(50), 2)
        0.87
    """
    return CALLS_PER_STEP * agents / (CALLS_PER_STEP * agents + 3 * 3 + 3 * 2)


def _loop(arm: str, agents: int, observations: int, device: torch.device) -> Callable[[], int]:
    loc = _points(observations, agents).to(device).transpose(0, 1).contiguous()
    answers, every = Answers(loc, torch.ones_like(loc)), list(all_pairs(agents))
    generator, places = hashed(POINTS_SEED, 1), torch.rand(agents, 2, generator=hashed(POINTS_SEED, 2))
    design, mean = parse(arm), partial(loop_mean, partial(distance, answers))
    if arm == REFERENCE:
        return loop_call(mean, lambda: every)

    def draw() -> list[list[int]]:
        graph = design.draw(agents, generator, places)
        if not isinstance(graph, Graph):
            raise InputError("arms", "with one graph for all observations", repr(arm))
        return graph.edges.tolist() or every

    return loop_call(mean, draw)


def _fused(arm: str, agents: int, observations: int, device: torch.device) -> Callable[[], int]:
    design, generator = parse(arm), hashed(POINTS_SEED, 3)
    points = _points(observations, agents).to(device)
    places = torch.rand(observations, agents, 2, generator=hashed(POINTS_SEED, 4)).to(device)

    def call() -> int:
        float(measure_points(design, points, generator, positions=places).value)
        return round(design.pairs(agents))

    return call


def _points(observations: int, agents: int) -> Tensor:
    return torch.randn(observations, agents, ACTIONS, generator=hashed(POINTS_SEED))
