"""What `measure`, accumulators and `advise` refuse, by the name of the argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.estimation.accumulator import SndAccumulator
from tests.estimation.teams import policies

TEAM, WIDE = gs.Deterministic(torch.rand(2, 4, 2)), gs.Deterministic(torch.rand(2, 3, 4, 2))
SAMPLES = gs.Samples(torch.randn(3, 5, 4, 1, generator=torch.Generator().manual_seed(0)))
EMPTY = gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64), inclusion=0.1)
STEPS = gs.Deterministic(torch.randn(40, 3, 2, generator=torch.Generator().manual_seed(0)))


def collected() -> SndAccumulator:
    accumulator = SndAccumulator(4)
    accumulator.update(TEAM)
    return accumulator


def restored(name: str) -> Callable[[Any], Any]:
    return lambda value: SndAccumulator.from_state({**collected().state(), name: value}, distance=gs.Wasserstein())


def merged(make: Callable[[Any], SndAccumulator]) -> Callable[[Any], Any]:
    return lambda pair: SndAccumulator.merge(make(pair[0]), make(pair[1]))


# One argument, the callable that is given it, and values that it refuses.
VALUES: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("design", lambda design: gs.measure(TEAM, design=design), [
        5, "star", EMPTY, "bernoulli:1e-9", gs.graphs.complete(3), gs.graphs.complete(5),
        gs.graphs.knn(torch.rand(7, 4, 2), 2), gs.graphs.knn(torch.rand(2, 5, 2), 2),
    ]),
    ("observations", lambda second: gs.measure(TEAM, second), [
        gs.graphs.complete(4), "matching", gs.designs.parse("bernoulli:0.1"), torch.zeros(2, 3),
    ]),
    ("positions", lambda positions: gs.measure(TEAM, design="knn:2", positions=positions), [
        None, torch.rand(7, 4, 2), torch.rand(3, 2),
    ]),
    ("tol", lambda tol: gs.measure(TEAM, tol=tol), [0.0]),
    ("rel_tol", lambda rel_tol: gs.measure(TEAM, rel_tol=rel_tol), [-1.0, math.nan]),
    ("d_max", lambda d_max: gs.measure(TEAM, d_max=d_max), [-1.0, math.inf]),
    ("observations", lambda seen: gs.measure(policies(), seen), [None]),
    ("team", lambda n: gs.measure(policies(n), torch.zeros(4, 3, dtype=torch.float64)), [1]),
    ("confidence", lambda confidence: gs.measure(TEAM, confidence=confidence), [0.0, 1.0, -0.5, 95, math.nan]),
    ("distance", lambda design: gs.measure(SAMPLES, design=design, distance="sliced-debiased"), [
        "uniform:2", "agents:2",
    ]),
    ("distance", lambda design: gs.measure(gs.Joint([SAMPLES] * 2, [1, 1], ["sliced-debiased", "sliced"]),
                                           design=design), ["uniform:2", "agents:2"]),
    ("distance", SndAccumulator(5, graph=gs.graphs.uniform(5, 2), distance=gs.Sliced(debias=True)).update, [SAMPLES]),
    ("clusters", lambda clusters: gs.measure(STEPS, clusters=clusters), [
        ["a", "b"] * 20, [0.5, 1.0] * 20, np.array(["a", "b"] * 20), torch.rand(40), range(39), torch.zeros(3),
    ]),
    ("agents", SndAccumulator, [1, "4"]),
    ("clusters", lambda clusters: SndAccumulator(3, clusters=clusters), [[0, 1]]),
    ("graph", lambda graph: SndAccumulator(4, graph=graph), [gs.graphs.complete(5), EMPTY]),
    ("behavior", SndAccumulator(3).update, [TEAM]),
    ("behavior", collected().update, [gs.Gaussian(torch.randn(3, 4, 2), 1.0)]),
    ("clusters", lambda clusters: SndAccumulator(4).update(TEAM, clusters), [torch.zeros(2).long()]),
    ("clusters", lambda clusters: SndAccumulator(4, clusters=True).update(TEAM, clusters), [
        None, torch.zeros(3).long(),
    ]),
    ("clusters", lambda clusters: SndAccumulator(4, clusters=True).update(WIDE, clusters), [torch.zeros(3, 2).long()]),
    ("accumulator", lambda agents: SndAccumulator(agents).compute(), [4]),
    ("two", merged(SndAccumulator), [(4, 5)]),
    ("two", merged(lambda seed: SndAccumulator(4, graph=gs.graphs.uniform(4, 2, seed=seed))), [(0, 1)]),
    ("two", merged(lambda distance: SndAccumulator(4, distance=distance)), [(gs.Hellinger(), gs.Wasserstein())]),
    ("graph", lambda graph: SndAccumulator.from_state(collected().state(), graph=graph), [gs.graphs.uniform(4, 2)]),
    *((says, restored(name), values) for says, name, values in [
        ("state['observations']", "observations", [-5, 1.5, True]), ("state", "observations", [0]),
        ("agents", "agents", [1, "4"]), ("state", "sums", [torch.zeros(2), torch.zeros(1, 1), [0], None]),
        ("state", "ids", [torch.zeros(2).long()]), ("state", "sizes", [torch.ones(1).long()]),
        ("state", "own", [torch.zeros(1)]), ("distance", "distance", ["Hellinger()"]), ("graph", "graph", ["another"]),
    ]),
    *(("state", lambda name: SndAccumulator.from_state({k: v for k, v in collected().state().items() if k != name}),
       [name]) for name in collected().state()),
    ("n", lambda n: gs.advise(n, 10), [1]),
    ("observations", lambda observations: gs.advise(4, observations), [0]),
    ("goal", lambda goal: gs.advise(4, 10, goal), ["most"]),
    ("device", lambda device: gs.advise(4, 10, device=device), ["tpu"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "value"), [(name, call, v) for name, call, vs in VALUES for v in vs])
def test_bad_inputs_are_named(name: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(gs.InputError) as error:
        call(value)
    assert error.value.name == name


def test_labels_of_steps_are_told_how_to_become_those_of_observations() -> None:
    seen, episodes = torch.randn(5, 4, 3, 2), torch.arange(20).view(5, 4) // 4  # [time, environments, agents, features]
    with pytest.raises(gs.InputError, match=r"One for each step: clusters\[\.\.\., None\]\.expand\(5, 4, 3\)\."):
        gs.measure([torch.sin, torch.cos], seen, clusters=episodes)
    assert gs.measure([torch.sin, torch.cos], seen, clusters=episodes[..., None].expand(5, 4, 3)).clusters[0] == "5"
