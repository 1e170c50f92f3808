"""Store numbers of the core in frozen.json: python -m tests.baselines.make_frozen.

The cases are small and random, with seeds of their own. ``tests/test_frozen.py`` computes them again and compares.
Write the file again only for a change of numbers that is meant, and say in its commit which numbers moved and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import graphsnd as gs

FILE = Path(__file__).with_name("frozen.json")
Case = Callable[[], dict[str, Any]]
DTYPES = {"float64": torch.float64, "float32": torch.float32}
SIZES = [(1, 2), (3, 5), (40, 9), (130, 33)]  # observations, agents; the last two reach the compiled kernels


def families(observations: int, agents: int, dtype: torch.dtype, seed: int) -> Iterator[tuple[str, list[Tensor], Any]]:
    """Yield name, leaves and a function from leaves to a behaviour, for each family."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        drawn = torch.randn(observations, agents, *shape, generator=generator, dtype=torch.float64)
        return drawn.to(dtype).requires_grad_()

    def positive(x: Tensor) -> Tensor:
        return x.square() + 0.1

    def covariance(x: Tensor) -> Tensor:
        return x @ x.mT + 0.1 * torch.eye(2, dtype=x.dtype)

    yield "deterministic", [draw(3)], gs.Deterministic
    yield "gaussian", [draw(2), draw(2)], lambda loc, scale: gs.Gaussian(loc, positive(scale))
    yield "full", [draw(2), draw(2, 2)], lambda loc, root: gs.MultivariateGaussian(loc, covariance(root))
    yield "categorical", [draw(4)], lambda logits: gs.Categorical(logits=logits)
    yield "samples", [draw(6, 2)], gs.Samples
    quantiles = [draw(2, 5)]
    yield "quantiles", quantiles, lambda x: gs.Quantiles(x.sort(-1).values)
    parts = [draw(2), draw(3)]
    yield "joint", parts, lambda a, b: gs.Joint([gs.Deterministic(a), gs.Categorical(logits=b)], weights=[1, 2])


# Named as they were printed when the file was made.
DISTANCES: dict[str, dict[str, Any]] = {
    "categorical": {
        "-TotalVariation()": gs.TotalVariation(),
        "-Hellinger()": gs.Hellinger(),
        "-JensenShannon()": gs.JensenShannon(),
    },
    "samples": {
        "-Sliced(debias=False, pooled=False, directions=None, seed=0)": gs.Sliced(),
        "-Sliced(debias=True, pooled=False, directions=None, seed=0)": gs.Sliced(debias=True),
    },
}


def plain(value: Any) -> Any:
    """Return lists and numbers."""
    return value.detach().double().tolist() if isinstance(value, Tensor) else value


def metric_case(leaves: list[Tensor], build: Any, distance: Any, seed: int) -> dict[str, Any]:
    """Return values and gradients of the metric."""
    team = build(*leaves)
    n = team.agents
    graph = gs.graphs.bernoulli(n, 0.4, seed=seed) if n > 2 else gs.graphs.complete(n)
    weighted = gs.Graph(graph.n, graph.edges, torch.linspace(0.5, 2, graph.m).double()) if graph.m else graph
    value = gs.snd(team, distance)
    gradients = torch.autograd.grad(value, leaves)
    sparse = gs.graph_snd(build(*leaves), weighted, distance)
    slopes = torch.autograd.grad(sparse, leaves) if sparse.requires_grad else ()
    return {
        "snd": plain(value),
        "reference": plain(gs.snd(team, distance, backend="reference")),
        "gradients": [digest(part) for part in gradients],
        "graph_snd": plain(sparse),
        "slopes": [digest(part) for part in slopes],
        "horvitz_thompson": plain(gs.horvitz_thompson(team, graph, distance)) if graph.inclusion else None,
        "pairwise": digest(gs.pairwise(team, distance)),
        "contributions": digest(gs.contributions(team, distance)),
        "by_observation": digest(gs.metric.by_observation(team, distance)),
    }


def digest(x: Tensor) -> list[float]:
    """Return numbers that any change of a tensor would move: its first eight, its sum and a weighted sum."""
    flat = x.detach().double().flatten()
    ramp = torch.linspace(-1, 1, len(flat), dtype=torch.float64)
    return [*flat[:8].tolist(), float(flat.sum()), float((flat * ramp).sum())]


def graph_case(build: Callable[[], Any]) -> dict[str, Any]:
    """Return the edges of a seeded graph."""
    graph = build()
    weights = None if graph.weights is None else digest(graph.weights)
    return {"n": graph.n, "edges": graph.edges.tolist(), "weights": weights, "inclusion": graph.inclusion}


FIELDS = ["value", "standard_error", "interval", "observation_error", "pairs_used", "observations", "distances"]


def measure_case(make: Callable[[], Any], **options: Any) -> dict[str, Any]:
    """Return the fields of an estimate."""
    estimate = gs.measure(*make(), **options)
    return {name: getattr(estimate, name) for name in FIELDS} | {"population": estimate.population_interval}


def modules(n: int, seed: int) -> tuple[Any, Tensor]:
    """Return policies and observations."""
    torch.manual_seed(seed)
    return [nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(n)], torch.randn(60, 5)


def behavior(n: int, seed: int) -> tuple[Any]:
    """Return a behaviour of unequal agents."""
    generator = torch.Generator().manual_seed(seed)
    loc = torch.randn(50, n, 2, generator=generator, dtype=torch.float64)
    loc[:, 0] += 5
    return (gs.Gaussian(loc, torch.ones(2, dtype=torch.float64)),)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield all cases by name."""
    for at, (observations, agents) in enumerate(SIZES):
        for dtype in DTYPES:
            for name, leaves, build in families(observations, agents, DTYPES[dtype], 100 + at):
                for which, distance in DISTANCES.get(name, {"": None}).items():
                    key = f"metric {name}{which} {observations}x{agents} {dtype}"
                    yield key, partial(metric_case, leaves, build, distance, at)
    yield from graph_cases()
    for name, design in DESIGNS.items():
        for seed in (0, 7):
            yield (
                f"measure behavior {name} seed {seed}",
                partial(measure_case, partial(behavior, 24, seed), design=design, seed=seed),
            )
            yield (
                f"measure modules {name} seed {seed}",
                partial(measure_case, partial(modules, 12, seed), design=design, seed=seed),
            )
    clusters = torch.arange(50) // 5
    for design in (None, "bernoulli:0.3", "agents:4", "matching"):
        yield (
            f"measure clusters {design}",
            partial(measure_case, partial(behavior, 24, 3), design=design, clusters=clusters, confidence=0.9),
        )
    yield "measure d_max", partial(measure_case, partial(behavior, 24, 3), design="agents:4", d_max=50.0)
    yield "measure equal", partial(measure_case, equal, design="uniform:20")
    yield "measure positions", partial(measure_case, partial(behavior, 24, 3), design="knn:3", positions=places())
    yield "accumulator", accumulate


SAMPLED = ["bernoulli:0.3", "bernoulli:1", "uniform:20", "regular:4", "agents:4", "agents:2", "ring:4", "matching"]
DESIGNS = {"all pairs": None, **{name: name for name in SAMPLED}, "matching:5": "matching:5"}


def places() -> Tensor:
    """Return positions of 24 agents."""
    return torch.randn(24, 2, generator=torch.Generator().manual_seed(4))


def equal() -> tuple[Any]:
    """Return agents that act alike."""
    return (gs.Deterministic(torch.randn(30, 1, 2, generator=torch.Generator().manual_seed(1)).expand(30, 9, 2)),)


def accumulate() -> dict[str, Any]:
    """Return what an accumulator has after three batches."""
    (team,) = behavior(10, 2)
    graph = gs.graphs.bernoulli(10, 0.5, seed=1)
    whole, sparse = gs.SndAccumulator(10, clusters=True), gs.SndAccumulator(10, graph=graph)
    for a, b in ((0, 7), (7, 30), (30, 50)):
        part = gs.Gaussian(team.loc[a:b], team.scale[a:b])
        whole.update(part, clusters=torch.arange(a, b) // 5)
        sparse.update(part)
    one, two = whole.compute(), sparse.compute()
    return {"whole": [one.value, one.observation_error, *one.interval], "sparse": [two.value, *two.interval]}


def graph_cases() -> Iterator[tuple[str, Case]]:
    """Yield seeded graphs of all families."""
    for seed in range(4):
        for n in (4, 7, 30):
            yield f"bernoulli {n} {seed}", partial(graph_case, partial(gs.graphs.bernoulli, n, 0.3, seed=seed))
            yield f"uniform {n} {seed}", partial(graph_case, partial(gs.graphs.uniform, n, 5, seed=seed))
            degree = 2 if n < 30 else 5
            regular = partial(gs.graphs.random_regular, n, degree, seed=seed)
            yield f"regular {n} {seed}", partial(graph_case, regular)
        near = torch.randn(30, 2, generator=torch.Generator().manual_seed(seed))
        yield f"knn {seed}", partial(graph_case, partial(gs.graphs.knn, near, 3))
        yield f"radius {seed}", partial(graph_case, partial(gs.graphs.radius, near, 0.7))


def compute() -> dict[str, Any]:
    """Return all cases."""
    return {name: case() for name, case in cases()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(compute(), indent=None, separators=(",", ":")).replace('},"', '},\n"') + "\n", "utf-8")
