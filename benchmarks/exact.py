"""Who is compared: exact SND the way it is computed today, with torch.cdist, fused; and sparse SND.

All of them get the same points, the [loc, scale] embedding of diagonal Gaussians over two actions, whose Euclidean
distance is the 2-Wasserstein distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, take_turns
from graphsnd import graphs, kernels
from graphsnd.behavior import Norm, Points

ACTIONS = 2
SAMPLED = 0.1  # chance of a pair under the sampled graphs
CDIST_CHUNKS = {"cpu": (18, 20, 22), "cuda": (22, 24, 26)}  # powers of two of distances at a time, to try
LOOP_PAIRS = 20_000  # more are never timed
LOOP_CALL, CDIST_CALL = 0.3, 1.5  # seconds that one timed call of a slow contestant may last


def example_points(n: int, observations: int, device: torch.device, seed: int) -> Points:
    """Standard normal locations and scales in 0.1 .. 1.1."""
    generator = torch.Generator(device).manual_seed(seed)
    values = torch.empty(observations, n, 2 * ACTIONS, device=device)
    values[..., :ACTIONS].normal_(generator=generator)
    values[..., ACTIONS:].uniform_(0.1, 1.1, generator=generator)
    return Points(values, Norm.EUCLIDEAN)


def compare(
    n: int, observations: int, device: torch.device, *, seed: int, rounds: int, seconds: float, slow: float = 1.0
) -> dict[str, Any]:
    """Time every contestant on a team of ``n`` agents.

    Args:
        n: Team size.
        observations: Observations that all agents answer.
        device: Where.
        seed: Of the points and the graphs.
        rounds: Rounds at least.
        seconds: Time for more rounds.
        slow: Multiplies the time that the slow contestants get.
    """
    clock, points = Clock(device), example_points(n, observations, device, seed)
    contestants = [
        _pair_loop(points, clock, LOOP_CALL * slow, seed),
        _cdist(points, clock, CDIST_CALL * slow),
        *_fused(points),
        *_sparse(points, seed),
    ]
    bound = limit(device)
    if bound is not None:
        contestants.append(Contestant("limit", bound, pairs=bound.pairs))
    found = take_turns(contestants, clock, rounds=rounds, seconds=seconds)
    return {
        **_workload(points),
        "fraction_of_limit": _fraction(found),
        "contestants": found,
    }


def whole_workload(n: int, observations: int, device: torch.device, *, seed: int, rounds: int) -> dict[str, Any] | None:
    """The fused total on far more observations, as eq. (1) asks for; None where the memory does not allow it."""
    if device.type != "cuda":
        return None
    torch.cuda.empty_cache()
    needed = observations * n * 2 * ACTIONS * 4
    if torch.cuda.mem_get_info(device)[0] < 1.3 * needed:
        return None
    points = example_points(n, observations, device, seed)
    bound = limit(device)
    contestants = [_fused(points)[0]] + ([] if bound is None else [Contestant("limit", bound, pairs=bound.pairs)])
    found = take_turns(contestants, Clock(device), rounds=rounds, seconds=5.0)
    return {**_workload(points), "fraction_of_limit": _fraction(found), "contestants": found}


def limit(device: torch.device) -> Any:
    """The arithmetic limit of this device, None where its compiler is missing."""
    backend = "gpu" if device.type == "cuda" else "cpu"
    if kernels.available()[backend] is not None:
        return None
    module = import_module(f"benchmarks.limit_{backend}")
    return module.Limit(device) if backend == "gpu" else module.Limit()


def _workload(points: Points) -> dict[str, Any]:
    n = points.agents
    return {
        "n": n,
        "observations": points.observations,
        "pairs": n * (n - 1) // 2,
        "features": points.values.shape[2],
        "input_bytes": points.values.numel() * points.values.element_size(),
    }


def _fraction(found: dict[str, dict[str, Any]]) -> float | None:
    """The part of the limit that the fused total reached in the same rounds."""
    if "limit" not in found:
        return None
    return float(found["fused"]["pairs_per_second"] / found["limit"]["pairs_per_second"])


def _pair_loop(points: Points, clock: Clock, budget: float, seed: int) -> Contestant:
    """Two nested Python loops, a distance a turn: on a random part of the pairs where all would take too long."""
    n = points.agents
    # Agents first: the loop gets each agent's answers as the contiguous tensor that its policy returned.
    loc, scale = (part.transpose(0, 1).contiguous() for part in points.values.split(ACTIONS, dim=-1))
    whole = n * (n - 1) // 2
    edges = graphs.uniform(n, min(whole, LOOP_PAIRS), seed=seed).edges
    drawn = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(seed))].tolist()

    def some(count: int) -> Callable[[], float]:
        def loop() -> float:
            total = 0.0
            for i, j in drawn[:count]:
                squares = (loc[i] - loc[j]).square().sum(-1) + (scale[i] - scale[j]).square().sum(-1)
                total += squares.sqrt().mean().item()
            return total

        return loop

    count = _affordable(some, len(drawn), clock, budget)
    pairs = whole * points.observations
    return Contestant("pair_loop", some(count), pairs=pairs, share=count / whole, notes={"pairs_timed": count})


def _cdist(points: Points, clock: Clock, budget: float) -> Contestant:
    """Batched distance matrices, in chunks of observations: on the first of them where all would take too long."""
    x, n = points.values, points.agents
    steps = sorted({min(len(x), max(1, 2**power // n**2)) for power in CDIST_CHUNKS[x.device.type]})

    def some(count: int, step: int) -> Callable[[], torch.Tensor]:
        def totals() -> torch.Tensor:
            chunks = x[:count].split(step)
            # The default mode, as people call it: from 26 agents on a matrix product, which is faster than
            # differences but loses half the digits of close agents.
            parts = (torch.cdist(c, c).sum(dim=(1, 2)) for c in chunks)
            return torch.cat(list(parts)) / 2

        return totals

    some(steps[-1], steps[-1])()
    # Which chunk is the fastest depends on the caches and on who else computes; cdist gets the best of three.
    best = min(steps, key=lambda step: _best(some(steps[-1], step), clock, tries=3))
    count = _affordable(lambda count: some(count, best), len(x), clock, budget, least=best)
    notes = {"observations_timed": count, "observations_per_chunk": best}
    pairs = n * (n - 1) // 2 * len(x)
    return Contestant("cdist", some(count, best), pairs=pairs, share=count / len(x), notes=notes)


def _affordable(
    some: Callable[[int], Callable[[], object]], whole: int, clock: Clock, budget: float, *, least: int = 1
) -> int:
    """How many of ``whole`` units of work fit the budget, found by doubling."""
    count = least
    some(count)()
    while count < whole:
        spent = _best(some(count), clock, tries=2)
        if spent > budget / 4:
            return max(least, min(whole, int(count * budget / spent)))
        count = min(2 * count, whole)
    return whole


def _best(call: Callable[[], object], clock: Clock, *, tries: int) -> float:
    return min(clock.seconds(call) for _ in range(tries))


def _fused(points: Points) -> list[Contestant]:
    pairs = points.agents * (points.agents - 1) // 2 * points.observations
    leaf = replace(points, values=points.values.detach().requires_grad_())

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(kernels.pair_totals(leaf).sum(), leaf.values)

    return [
        Contestant("fused", lambda: kernels.pair_totals(points), pairs=pairs),
        Contestant("fused_backward", backward, pairs=pairs),
    ]


def _sparse(points: Points, seed: int) -> list[Contestant]:
    """A tenth of the pairs: on one graph that is kept, and on a new one in every call."""
    n, device = points.agents, points.values.device
    generator = torch.Generator(device).manual_seed(seed)
    kept = graphs.bernoulli(n, SAMPLED, seed=generator).edges

    def fresh() -> torch.Tensor:
        return kernels.edge_totals(points, graphs.bernoulli(n, SAMPLED, seed=generator).edges)

    notes = {"probability": SAMPLED}
    return [
        Contestant(
            "sparse",
            lambda: kernels.edge_totals(points, kept),
            pairs=len(kept) * points.observations,
            notes=notes | {"edges": len(kept)},
        ),
        Contestant("sparse_fresh", fresh, pairs=SAMPLED * n * (n - 1) / 2 * points.observations, notes=notes),
    ]
