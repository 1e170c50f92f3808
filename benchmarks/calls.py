"""How long is one call of `snd`, over features, distances and gradients, against torch.cdist and the device's limit?

A call is `graphsnd.snd(behavior)` as a user writes it: embedding, kernels and the mean. one_call is timed by itself,
after the device has finished everything else, so that it includes the time of Python and launches; queued is one of
many calls in a row. repeated calls are timed by themselves too, but with nothing else between them, so that the host
has warm caches.

Times are seconds. All contestants take turns within a round; medians and quartiles are over rounds.

cdist gets the embedded points and sums over pairs too, in chunks of the best of three sizes. If all observations would
take too long, it is timed on the first ones; share_timed gives the part.

fraction_of_limit: pairs per second of `queued` over those of `limit`, the arithmetic of a pair alone (a subtraction and
a multiply-add for each feature, a square root and an addition) in float32, in the same rounds. GPU only.

sampled: calls that measure part of the pairs, each by itself, in the same rounds as `snd`; with "queued" many in a row.
kept_graph and new_graph are `graphsnd.graph_snd` on a tenth of the pairs. The graph is drawn on the CPU, before the
call and within it, respectively. Designs are whole calls of `graphsnd.measure`, intervals included; `measure` is that
of all pairs.
over_snd: their times over that of `snd`, or of `snd` queued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

import graphsnd as gs
from benchmarks.speed import PEER_CALL, cdist
from benchmarks.timing import Clock, Contestant, Options, make_limit, race, summarise_times
from graphsnd import graphs
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Norm

WASSERSTEIN = gs.Wasserstein()
ROUNDS = 20  # rounds on a GPU, where the shortest calls are mostly launches


@dataclass(frozen=True)
class Case:
    """A call to time."""

    n: int
    features: int = 4
    distance: Distance = WASSERSTEIN
    gradient: bool = False
    correlated: bool = False  # Gaussians with full covariances, with as many actions as features
    observations: int | None = None  # number of observations; None: the default of the device

    @property
    def name(self) -> str:
        """Name of the case in tables."""
        return self.distance.name + " of covariances" * self.correlated + " and gradient" * self.gradient


QUICK = [Case(50), Case(50, 8), Case(50, 8, gs.Hellinger()), Case(50, gradient=True)]
CASES = [
    *(Case(n) for n in (50, 500)),
    *(Case(n, features) for n in (100, 500) for features in (8, 16, 32, 64, 128)),
    Case(500, 8, gs.Hellinger()),
    *(Case(n, features, gradient=True) for n, features in ((50, 4), (500, 4), (500, 8), (500, 32), (500, 128))),
]
CPU_CASES = [*CASES, Case(100, 8, gs.JensenShannon(), observations=1024), Case(50, 3, correlated=True)]
FULL = [*CASES, Case(500, 8, gs.JensenShannon()), Case(2000), Case(2000, 32)]
TENTH = 0.1  # chance of a pair of the sampled graphs
DESIGNS = ("bernoulli:0.1", "ring:4", "matching", "agents:8")
TEAMS = {"cpu": ((300, 4), (1000, 4), (1000, 16)), "cuda": ((500, 4), (1000, 4), (2000, 4), (4000, 4))}


def measure(options: Options) -> dict[str, Any]:
    """Time all cases."""
    cuda = options.device.type == "cuda"
    rows = []
    for case in QUICK if options.quick else FULL if options.full else CASES if cuda else CPU_CASES:
        options.step(f"{case.name}, n = {case.n:,}, {case.features} features")
        rows.append(compare(case, case.observations or (256 if options.quick or not cuda else 4096), options))
    teams = ((50, 4),) if options.quick else TEAMS[options.device.type] + ((10_000, 4),) * (options.full and cuda)
    return {"calls": rows, "sampled": [compare_sampled(*team, options) for team in teams]}


def compare_sampled(n: int, features: int, options: Options) -> dict[str, Any]:
    """Time calls that measure part of the pairs."""
    options.step(f"part of the pairs, n = {n:,}, {features} features")
    device, cuda = options.device, options.device.type == "cuda"
    observations = 256 if options.quick else 4096 if cuda else 1024
    behavior, generator = example(Case(n, features), observations, device, options.seed), torch.Generator(device)
    kept = graphs.bernoulli(n, TENTH, seed=options.seed)
    timed: dict[str, Callable[[], object]] = {
        "snd": partial(gs.snd, behavior),
        "kept_graph": partial(gs.graph_snd, behavior, kept),
        "new_graph": lambda: gs.graph_snd(behavior, graphs.bernoulli(n, TENTH, seed=generator)),
        "measure": partial(gs.measure, behavior),
    }
    for name in DESIGNS:
        timed[name] = partial(gs.measure, behavior, design=name)
    contestants = [Contestant(name, call, alone=True) for name, call in timed.items()]
    contestants += [Contestant(f"{name}_queued", timed[name]) for name in ("snd", "kept_graph", "new_graph")]
    times = race(contestants, Clock(device), ROUNDS if cuda and not options.quick else options.rounds)
    exact = {name: times["snd_queued" if name.endswith("queued") else "snd"]["median_s"] for name in times}
    over = {name: one["median_s"] / exact[name] for name, one in times.items()}
    about = {"n": n, "features": features, "observations": observations, "edges": kept.m}
    return {**about, "over_snd": over, "contestants": times}


def compare(case: Case, observations: int, options: Options) -> dict[str, Any]:
    """Time one case."""
    device, cuda = options.device, options.device.type == "cuda"
    behavior = example(case, observations, device, options.seed)
    pairs = case.n * (case.n - 1) // 2 * observations
    call = calls(case, behavior)
    contestants = [Contestant("one_call", call, pairs, alone=True), Contestant("queued", call, pairs)]
    points = embed(behavior, case.distance) if not case.gradient else None
    if points is not None and points.norm is Norm.EUCLIDEAN:
        contestants.append(cdist(points, Clock(device), PEER_CALL * (0.1 if options.quick else 1.0)))
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
    """Return the call that is timed."""
    if not case.gradient:
        return partial(gs.snd, behavior, case.distance)
    assert isinstance(behavior, gs.Gaussian)
    inputs = behavior.loc, behavior.scale
    return lambda: torch.autograd.grad(gs.snd(behavior, case.distance), inputs)
