"""How long is one call of `snd`, over features, distances and gradients, against torch.cdist and the device's limit?

A call is `graphsnd.snd(behavior)` as a user writes it: embedding, kernels and the mean. one_call is timed by itself,
after the device has finished everything else, so that it has the time of Python and launches too; queued is one of many
calls in a row. repeated are calls timed by themselves too, but with nothing else between them: the host has warm
caches.

Times are seconds. All contestants take turns within a round; medians and quartiles are over rounds.

cdist gets the embedded points and sums over pairs too, in chunks of the best of three sizes. It is timed on the first
observations where all would take too long; share_timed says which part.

fraction_of_limit: pairs per second of `queued` over those of `limit`, the arithmetic of a pair alone (a subtraction and
a multiply-add for each feature, a square root and an addition) in float32, in the same rounds. GPU only.

peak_bytes: memory allocated at most, the behaviour included. GPU only.

sampled: calls that measure part of the pairs, each by itself, in the same rounds as `snd`. kept_graph and new_graph
are `graphsnd.graph_snd` on a tenth of the pairs, the graph drawn before and within the call. Designs that redraw their
pairs per observation are whole calls of `graphsnd.measure`, intervals included; with "sums" they are their draws and
distances alone, on a GPU. over_snd: their times over that of `snd`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

import graphsnd as gs
from benchmarks.speed import CDIST_CALL, cdist
from benchmarks.timing import Clock, Contestant, Options, make_limit, race, summarise_times
from graphsnd import graphs
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Norm

WASSERSTEIN = gs.Wasserstein()
ROUNDS = 20  # on a GPU, where the shortest calls are mostly launches


@dataclass(frozen=True)
class Case:
    """A call to time."""

    n: int
    features: int = 4
    distance: Distance = WASSERSTEIN
    gradient: bool = False
    correlated: bool = False  # Gaussians with full covariances, of so many actions as there are features
    observations: int | None = None  # other than those of the device

    @property
    def name(self) -> str:
        """In tables."""
        return self.distance.name + " of covariances" * self.correlated + " and gradient" * self.gradient


QUICK = [Case(50), Case(50, 8), Case(50, 8, gs.Hellinger()), Case(50, gradient=True)]
CASES = [
    *(Case(n) for n in (50, 500)),
    *(Case(n, features) for n in (100, 500) for features in (8, 16, 32, 64, 128)),
    *(Case(500, 8, distance) for distance in (gs.Hellinger(), gs.JensenShannon())),
    *(Case(n, features, gradient=True) for n, features in ((50, 4), (500, 4), (500, 32))),
]
CPU_CASES = [*CASES, Case(100, 8, gs.JensenShannon(), observations=1024), Case(50, 3, correlated=True)]
FULL = [*CASES, Case(2000), Case(2000, 32)]
TENTH = 0.1  # chance of a pair of the sampled graphs
DESIGNS = ("ring:4", "matching", "agents:8")  # that redraw their pairs per observation


def measure(options: Options) -> dict[str, Any]:
    """Time all cases."""
    cuda = options.device.type == "cuda"
    rows = []
    for case in QUICK if options.quick else FULL if options.full else CASES if cuda else CPU_CASES:
        options.step(f"{case.name}, n = {case.n:,}, {case.features} features")
        rows.append(compare(case, case.observations or (256 if options.quick or not cuda else 4096), options))
    teams = (50,) if options.quick else (500, 2000, 10_000) if options.full and cuda else (500, 2000)
    many = 4096 if cuda and not options.quick else 256
    sampled = options.each("part of the pairs", teams, lambda n: compare_sampled(n, many, options))
    return {"calls": rows, "sampled": sampled}


def compare_sampled(n: int, observations: int, options: Options) -> dict[str, Any]:
    """Time calls that measure part of the pairs."""
    device, cuda = options.device, options.device.type == "cuda"
    behavior, generator = example(Case(n), observations, device, options.seed), torch.Generator(device)
    kept = graphs.bernoulli(n, TENTH, seed=generator)
    timed: dict[str, Callable[[], object]] = {
        "snd": partial(gs.snd, behavior),
        "kept_graph": partial(gs.graph_snd, behavior, kept),
        "new_graph": lambda: gs.graph_snd(behavior, graphs.bernoulli(n, TENTH, seed=generator)),
    }
    for name in DESIGNS:
        timed[name] = partial(gs.measure, behavior, design=name)
    contestants = [Contestant(name, call, alone=True) for name, call in timed.items()]
    times = race(contestants, Clock(device), ROUNDS if cuda and not options.quick else options.rounds)
    over = {name: one["median_s"] / times["snd"]["median_s"] for name, one in times.items()}
    return {"n": n, "observations": observations, "edges": kept.m, "over_snd": over, "contestants": times}


def compare(case: Case, observations: int, options: Options) -> dict[str, Any]:
    """Time one case."""
    device, cuda = options.device, options.device.type == "cuda"
    behavior = example(case, observations, device, options.seed)
    pairs = case.n * (case.n - 1) // 2 * observations
    call = calls(case, behavior)
    contestants = [Contestant("one_call", call, pairs, alone=True), Contestant("queued", call, pairs)]
    points = embed(behavior, case.distance) if not case.gradient else None
    if points is not None and points.norm is Norm.EUCLIDEAN:
        contestants.append(cdist(points, Clock(device), CDIST_CALL * (0.1 if options.quick else 1.0)))
    contestants += make_limit(device, case.features) if cuda else []
    times = race(contestants, Clock(device), ROUNDS if cuda and not options.quick else options.rounds)
    times["repeated"] = summarise_times([Clock(device).seconds(call) for _ in range(ROUNDS)])
    del points, contestants
    fraction = times["queued"]["pairs_per_second"] / times["limit"]["pairs_per_second"] if "limit" in times else None
    return {
        "case": case.name,
        "n": case.n,
        "observations": observations,
        "features": case.features,
        "peak_bytes": peak(call, device) if cuda else None,
        "fraction_of_limit": fraction,
        "contestants": times,
    }


def example(case: Case, observations: int, device: torch.device, seed: int) -> Behavior:
    """Return Gaussians, or categories of random probabilities; diagonal ones ask for gradients where the case does."""
    generator = torch.Generator(device).manual_seed(seed)
    if not isinstance(case.distance, gs.Wasserstein):
        logits = torch.randn(observations, case.n, case.features, device=device, generator=generator)
        return gs.Categorical(logits=logits, validate=False)
    if case.correlated:
        roots = torch.randn(observations, case.n, case.features, case.features, device=device, generator=generator)
        return gs.MultivariateGaussian(roots[..., 0], roots @ roots.mT, validate=False)
    shape = observations, case.n, case.features // 2
    loc = torch.randn(shape, device=device, generator=generator).requires_grad_(case.gradient)
    scale = torch.empty(shape, device=device).uniform_(0.1, 1.1, generator=generator).requires_grad_(case.gradient)
    return gs.Gaussian(loc, scale, validate=False)


def calls(case: Case, behavior: Behavior) -> Callable[[], object]:
    """Return what is timed."""
    if not case.gradient:
        return partial(gs.snd, behavior, case.distance)
    assert isinstance(behavior, gs.Gaussian)
    inputs = behavior.loc, behavior.scale
    return lambda: torch.autograd.grad(gs.snd(behavior, case.distance), inputs)


def peak(call: Callable[[], object], device: torch.device) -> int:
    """Return the bytes allocated at most during a call."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    return torch.cuda.max_memory_allocated(device)
