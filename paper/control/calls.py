"""The metric of a controller by itself: in a loop over pairs, in fused kernels, and as a share of a step of learning.

The published runs time the metric alone and call it twice in every optimiser step: once for PPO's loss, once for the
loss that keeps means in the box. Each time all N networks answer the observations of all N agents first, which that
timer leaves out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.control import FreshGraph, Nearest, parse_estimator
from graphsnd.errors import InputError
from graphsnd.training.dico import ControlSettings, ControlTask, ControlTrainer
from graphsnd.training.dico.trainer import GRAPHS
from graphsnd.training.streams import hashed
from paper.rows import encode
from paper.shared.pairloop import Answers, all_pairs, loop_mean
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import Conditions, take_turns

ACTIONS, CALLS_A_STEP = 2, 2
PUBLISHED_CALL, PUBLISHED_ITERATION = 0.0189, 52.4  # seconds, full SND, n = 50
POINTS_SEED, LEAST = 5, 21


def time_calls(agents: int, arms: Sequence[str], *, loop: int, fused: int, trials: int) -> dict[str, Any]:
    """Time the metric over all pairs and by sparse arms, the graph drawn inside, on outputs of one minibatch.

    The outputs are random: a time depends on shapes, not on values. In the loop a nearest-neighbour arm has one graph,
    of the agents' places in one frame; fused, as in training, one for every observation.

    Args:
        agents: Size of the team.
        arms: As :func:`~graphsnd.control.parse_estimator` reads them, beside ``full``.
        loop: Observations that the loop looks at.
        fused: Observations that the kernels look at.
        trials: Calls of each loop, taking turns; the kernels, which take a thousandth of the time, have 21 at least.
    """
    device = torch.device("cpu")
    with one_thread():
        calls = {f"loop, {arm}": _loop(arm, agents, loop) for arm in ("full", *arms)}
        calls |= {f"fused, {arm}": _fused(arm, agents, fused) for arm in ("full", *arms)}
        for call in calls.values():
            call()
        turns = {"loop": trials, "fused": max(trials, LEAST)}
        found = encode(take_turns(calls, trials={name: turns[name.partition(",")[0]] for name in calls}, device=device))
        about = {"agents": agents, "observations": {"loop": loop, "fused": fused}, "trials": turns}
        return {**about, "conditions": encode(Conditions.now(device)), "calls": found}


def speedups(timed: dict[str, Any], way: str) -> dict[str, dict[str, float]]:
    """Time of the full metric over that of each other arm: ratio of medians, and the range of single trials.

    Args:
        timed: From :func:`time_calls`.
        way: ``"loop"`` or ``"fused"``.
    """
    calls = {name.partition(", ")[2]: call for name, call in timed["calls"].items() if name.startswith(way)}
    full = calls.pop("full")
    found = {}
    for arm, call in calls.items():
        ratios = [a / b for a, b in zip(full["seconds"], call["seconds"], strict=True)]
        found[arm] = {"value": full["median_s"] / call["median_s"], "low": min(ratios), "high": max(ratios)}
    return found


def mean_edges(agents: int, p: float, *, seeds: Sequence[int], iterations: int, steps: int) -> dict[str, float]:
    """Edges of the Bernoulli graphs that training draws: the same seeds give the same graphs.

    Args:
        agents: Size of the team.
        p: Of a pair.
        seeds: Of the runs.
        iterations: Of a run, from 1.
        steps: Optimiser steps of an iteration, a graph each.

    Returns:
        ``mean``, its standard error ``sem``, how many ``graphs``, and how many of them ``empty``.
    """
    estimator, counts, empty = FreshGraph.bernoulli(p), [], 0
    for seed in seeds:
        for iteration in range(1, iterations + 1):
            generator = hashed(seed, GRAPHS, iteration)
            for _ in range(steps):
                plan = estimator.plan(1, agents, generator, device=torch.device("cpu"))
                empty += plan.empty
                counts.append(0 if plan.empty else plan.pairs(agents))
    error = statistics.stdev(counts) / len(counts) ** 0.5
    return {"mean": statistics.fmean(counts), "sem": error, "graphs": len(counts), "empty": empty}


def published_share() -> dict[str, float]:
    """Share of the metric in an iteration, from the paper's own times and the number of calls of its protocol.

    Example:
        >>> {name: round(value, 3) for name, value in published_share().items()}
        {'calls': 270, 'seconds': 5.103, 'share': 0.097}
    """
    calls = CALLS_A_STEP * ControlSettings(environments=120).optimiser_steps
    seconds = calls * PUBLISHED_CALL
    return {"calls": calls, "seconds": seconds, "share": seconds / PUBLISHED_ITERATION}


def estimate_share(agents: int, frames: int, *, steps: int) -> dict[str, float]:
    """Measure what part of a step of the published protocol goes into its two estimates, networks included.

    All observations of a minibatch are shown to all networks, as published, with fused distances. Both parts grow with
    the number of frames, so a few are enough. Learning is this library's, which leaves out the backward pass of the
    third loss where nothing overflows; the arithmetic, which counts it, is given beside.

    Args:
        agents: Size of the team.
        frames: Of a minibatch, at least 2.
        steps: Over which times are added up, after as many to warm up.

    Returns:
        Seconds of one step: ``networks`` and ``distances`` of one estimate, ``learning`` the rest; ``share``, of two
        estimates; ``arithmetic``, the same counted in multiplications.
    """
    settings = ControlSettings(
        environments=frames // 2, steps=2, minibatch=frames, passes=steps, observations=frames * agents,
        audit_observations=agents,
    )  # fmt: skip
    with one_thread():
        trainer = ControlTrainer(ControlTask(agents, (0.12,), ("full",), settings=settings))
        trainer.step()
        row = trainer.step()[0]
    networks, distances, learning = row.policy_seconds / steps, row.distance_seconds / steps, row.update_seconds / steps
    return {"networks": networks, "distances": distances, "learning": learning} | {
        "share": share(networks + distances, learning),
        "arithmetic": arithmetic_share(agents),
    }


def share(estimate: float, learning: float) -> float:
    """Of the published two estimates in a step."""
    return CALLS_A_STEP * estimate / (CALLS_A_STEP * estimate + learning)


def arithmetic_share(agents: int) -> float:
    r"""The share of both estimates in the multiplications of a step, with networks of about one size.

    One network on one observation costs 1 forward and 2 backward. PPO runs the shared network, an agent's own and its
    critic; the loss of the box the first two again; an estimate all N, forward, without distances:

    .. math:: 2 N / (2 N + 3 \cdot 3 + 3 \cdot 2)

    Example:
        >>> round(arithmetic_share(50), 2)
        0.87
    """
    return CALLS_A_STEP * agents / (CALLS_A_STEP * agents + 3 * 3 + 3 * 2)


def _loop(arm: str, agents: int, observations: int) -> Callable[[], int]:
    loc = _points(observations, agents).transpose(0, 1).contiguous()
    answers, every = Answers(loc, torch.ones_like(loc)), list(all_pairs(agents))
    generator, places = hashed(POINTS_SEED, 1), torch.rand(agents, 2, generator=hashed(POINTS_SEED, 2))

    def call() -> int:
        pairs = every if arm == "full" else _edges(arm, agents, places, generator).tolist() or every
        loop_mean(answers, pairs)
        return len(pairs)

    return call


def _edges(arm: str, agents: int, places: Tensor, generator: torch.Generator) -> Tensor:
    estimator = parse_estimator(arm)
    if isinstance(estimator, FreshGraph):
        return estimator.builder(agents, generator).edges
    if isinstance(estimator, Nearest):
        return graphs.knn(places, estimator.k).edges
    raise InputError("arms", "with one graph for all observations", repr(arm))


def _fused(arm: str, agents: int, observations: int) -> Callable[[], int]:
    estimator, generator = parse_estimator(arm), hashed(POINTS_SEED, 3)
    points = _points(observations, agents)
    places = torch.rand(observations, agents, 2, generator=hashed(POINTS_SEED, 4))

    def call() -> int:
        found = estimator.measure(points, generator, positions=places)
        float(found.value)
        return int(found.pairs)

    return call


def _points(observations: int, agents: int) -> Tensor:
    return torch.randn(observations, agents, ACTIONS, generator=hashed(POINTS_SEED))
