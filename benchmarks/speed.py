"""How fast is exact SND, against a loop over pairs, others' ways to sum, a tenth of the pairs, and the device's limit?

Others' ways: torch.cdist in its default mode and in the one without matrix products, which is as exact as graphsnd;
torch.compile of the broadcast difference; and KeOps (pykeops, if installed). The last two are not in --quick runs,
because they compile. left_out lists the ways that could not run here, and why.

All contestants get the same points, the [loc, scale] embedding of diagonal Gaussians over two actions, whose Euclidean
distance is the 2-Wasserstein distance.

Times are seconds of one call. All contestants take turns within a round; medians and quartiles are over rounds.

share_timed below 1: only that part of the work was timed, and the time was divided by it. The pair loop runs on a
random part of the pairs, others' ways on the first observations.

pairs_per_second of the sampled graphs counts the pairs they measure.

fraction_of_limit: pairs per second of `fused` over those of `limit`, the arithmetic of a pair alone, in the same
rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, Options, make_limit, race
from graphsnd import graphs, kernels
from graphsnd.behavior.points import Norm, Points

AGENTS, QUICK_AGENTS, FULL_AGENTS = (4, 16, 50, 100, 500, 2000), (4, 16, 50), (4, 16, 50, 100, 500, 2000, 10_000)
EQUATION_1 = (500, 2_048_000)  # agents and observations of the paper's eq. (1)
ACTIONS = 2
SAMPLED = 0.1  # chance of a pair under the sampled graphs
CHUNKS = {"cpu": (18, 20, 22), "cuda": (22, 24, 26)}  # powers of two of distances at a time, to try
LOOP_PAIRS = 20_000  # more are never timed
LOOP_CALL, PEER_CALL = 0.3, 1.5  # seconds that one timed call of a slow contestant may last


def measure(options: Options) -> dict[str, Any]:
    """Time all contestants for teams of growing size; with ``full``, on a GPU, also eq. (1) as the paper has it."""
    sizes = QUICK_AGENTS if options.quick else FULL_AGENTS if options.full else AGENTS
    rows = options.each("exact and sparse SND", sizes, lambda n: compare(n, options))
    return {"exact": rows} | ({"equation_1": _equation_1(options)} if options.full else {})


def compare(n: int, options: Options) -> dict[str, Any]:
    """Time each contestant on a team of ``n`` agents."""
    device, seed, slow = options.device, options.seed, 0.1 if options.quick else 1.0
    large = 256 if n <= 2000 else 64  # on a CPU, in reasonable time
    observations = 256 if options.quick else 4096 if device.type == "cuda" or n <= 500 else large
    clock, points = Clock(device), example_points(n, observations, device, seed)
    loop = pair_loop(points, clock, LOOP_CALL * slow, seed)
    others, left_out = peers(points, clock, PEER_CALL * slow, options.quick)
    return _time(points, [loop, *others, *fused(points), *sparse(points, seed)], options) | {"left_out": left_out}


def _equation_1(options: Options) -> dict[str, Any] | None:
    """Time the fused total on the observations of eq. (1); None where the memory does not allow it."""
    (n, observations), device = EQUATION_1, options.device
    if device.type != "cuda" or torch.cuda.mem_get_info(device)[1] < 1.3 * observations * n * 2 * ACTIONS * 4:
        return None
    points = example_points(n, observations, device, options.seed)
    return _time(points, fused(points)[:1], options)


def _time(points: Points, contestants: Sequence[Contestant], options: Options) -> dict[str, Any]:
    """Let contestants take turns with the limit of the device, where its compiler is installed."""
    contestants = [*contestants, *make_limit(options.device)]
    times, fraction = race(contestants, Clock(options.device), options.rounds), None
    if "limit" in times:
        fraction = times["fused"]["pairs_per_second"] / times["limit"]["pairs_per_second"]
    return {
        "n": points.agents,
        "observations": points.observations,
        "pairs": points.agents * (points.agents - 1) // 2,
        "features": points.values.shape[2],
        "fraction_of_limit": fraction,
        "over_fused": {name: one["median_s"] / times["fused"]["median_s"] for name, one in times.items()},
        "contestants": times,
    }


def example_points(n: int, observations: int, device: torch.device, seed: int) -> Points:
    """Return standard normal locations, and scales in 0.1 .. 1.1."""
    generator = torch.Generator(device).manual_seed(seed)
    values = torch.empty(observations, n, 2 * ACTIONS, device=device)
    values[..., :ACTIONS].normal_(generator=generator)
    values[..., ACTIONS:].uniform_(0.1, 1.1, generator=generator)
    return Points(values, Norm.EUCLIDEAN)


def pair_loop(points: Points, clock: Clock, budget: float, seed: int) -> Contestant:
    """Return the Python loop over pairs: on a random part of the pairs where all would take too long."""
    n = points.agents
    # Agents first: the loop gets each agent's outputs as the contiguous tensor that its policy returned.
    loc, scale = (part.transpose(0, 1).contiguous() for part in points.values.split(ACTIONS, dim=-1))
    whole = n * (n - 1) // 2
    edges = graphs.uniform(n, min(whole, LOOP_PAIRS), seed=seed).edges
    drawn = edges[torch.randperm(len(edges), generator=torch.Generator().manual_seed(seed))].tolist()

    def loop(count: int) -> float:
        total = 0.0
        for i, j in drawn[:count]:
            squares = (loc[i] - loc[j]).square().sum(-1) + (scale[i] - scale[j]).square().sum(-1)
            total += squares.sqrt().mean().item()
        return total

    count = _affordable(loop, len(drawn), clock, budget)
    pairs, notes = whole * points.observations, {"pairs_timed": count}
    return Contestant("pair_loop", lambda: loop(count), pairs=pairs, share=count / whole, notes=notes)


def cdist(points: Points, clock: Clock, budget: float) -> Contestant:
    """Return batched distance matrices in the default mode, as people call it.

    From 26 agents on that is a matrix product, which is faster than differences but loses half the digits of close
    agents.
    """
    return in_chunks("cdist", lambda c: torch.cdist(c, c).sum(dim=(1, 2)), points, clock, budget)


def peers(points: Points, clock: Clock, budget: float, quick: bool) -> tuple[list[Contestant], dict[str, str]]:
    """Return others' ways to sum over pairs, and why some are left out."""
    exact, found, left_out = "donot_use_mm_for_euclid_dist", [cdist(points, clock, budget)], {}
    ways: dict[str, Any] = {"cdist_exact": lambda c: torch.cdist(c, c, compute_mode=exact).sum(dim=(1, 2))}
    if not quick:
        broadcast = torch.compile(lambda c: (c[:, :, None] - c[:, None]).square().sum(-1).sqrt().sum(dim=(1, 2)))
        ways |= {"compiled": broadcast, "keops": keops}
    for name, sums in ways.items():
        try:
            found.append(in_chunks(name, sums, points, clock, budget))
        except (ImportError, RuntimeError, OSError) as error:
            left_out[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found, left_out


def keops(c: torch.Tensor) -> Any:
    """Return sums over ordered pairs by KeOps, if it is installed."""
    x, y = map(import_module("pykeops.torch").LazyTensor, (c[:, :, None], c[:, None]))
    return ((x - y) ** 2).sum(-1).sqrt().sum(2).sum(dim=(1, 2))


def in_chunks(
    name: str, sums: Callable[[torch.Tensor], torch.Tensor], points: Points, clock: Clock, budget: float
) -> Contestant:
    """Return sums over ordered pairs in chunks of observations; only of the first ones if all would take too long."""
    x, n = points.values, points.agents
    steps = sorted({min(len(x), max(1, 2**power // n**2)) for power in CHUNKS[x.device.type]})

    def totals(count: int, step: int) -> torch.Tensor:
        return torch.cat([sums(c) for c in x[:count].split(step)]) / 2

    totals(steps[-1], steps[-1])
    # The fastest chunk depends on the caches and on other programs; each contestant gets the best of three.
    best = min(steps, key=lambda step: _fastest(lambda: totals(steps[-1], step), clock, tries=3))
    count = _affordable(lambda count: totals(count, best), len(x), clock, budget, least=best)
    notes = {"observations_timed": count, "observations_per_chunk": best}
    pairs = n * (n - 1) // 2 * len(x)
    return Contestant(name, lambda: totals(count, best), pairs=pairs, share=count / len(x), notes=notes)


def _affordable(work: Callable[[int], object], whole: int, clock: Clock, budget: float, *, least: int = 1) -> int:
    """Return how many of ``whole`` units of work fit the budget, by doubling."""
    count = least
    work(count)
    while count < whole:
        spent = _fastest(lambda: work(count), clock, tries=2)  # noqa: B023 - called at once
        if spent > budget / 4:
            return max(least, min(whole, int(count * budget / spent)))
        count = min(2 * count, whole)
    return whole


def _fastest(call: Callable[[], object], clock: Clock, *, tries: int) -> float:
    return min(clock.seconds(call) for _ in range(tries))


def fused(points: Points) -> list[Contestant]:
    """Return exact SND by the library's kernels, without and with its gradient."""
    pairs = points.agents * (points.agents - 1) // 2 * points.observations
    leaf = points.replace(points.values.detach().requires_grad_())

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(kernels.pair_totals(leaf).sum(), leaf.values)

    return [
        Contestant("fused", lambda: kernels.pair_totals(points), pairs=pairs),
        Contestant("fused_backward", backward, pairs=pairs),
    ]


def sparse(points: Points, seed: int) -> list[Contestant]:
    """Return a tenth of the pairs: on one graph that is kept, and on a new one in every call."""
    n, device = points.agents, points.values.device
    generator = torch.Generator(device).manual_seed(seed)
    kept = graphs.bernoulli(n, SAMPLED, seed=generator).edges

    def redrawn() -> torch.Tensor:
        return kernels.edge_totals(points, graphs.bernoulli(n, SAMPLED, seed=generator).edges)

    pairs, notes = len(kept) * points.observations, {"probability": SAMPLED}
    same = Contestant("sparse", lambda: kernels.edge_totals(points, kept), pairs, notes=notes | {"edges": len(kept)})
    return [same, Contestant("sparse_fresh", redrawn, SAMPLED * n * (n - 1) / 2 * points.observations, notes=notes)]
