"""The same bits for every number of threads, from every public call that adds numbers up.

Eigenvalues are left out: LAPACK computes them, in blocks that depend on its threads.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import graphsnd as gs
from graphsnd.bounds.relabelling import fit_effects, relabelling_variance

# Observations and agents: sums over observations that torch splits between threads, few observations, many features.
SIZES = {"long": (34_001, 5, 2), "wide": (3, 701, 3), "middle": (401, 61, 4), "deep": (33, 20, 301)}
CLOCKS = ("seconds",)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def family(name: str, size: str) -> gs.Behavior:
    o, n, f = SIZES[size]
    torch.set_num_threads(1)  # what goes in is not what is tested here
    x = torch.randn(o, n, f, generator=torch.Generator().manual_seed(7), dtype=torch.float32)
    made: dict[str, Callable[[], gs.Behavior]] = {
        "deterministic": lambda: gs.Deterministic(x),
        "double": lambda: gs.Deterministic(x.double()),
        "gaussian": lambda: gs.Gaussian(x, x.abs() + 0.1),
        "categorical": lambda: gs.Categorical(logits=x),
        "quantiles": lambda: gs.Quantiles(x.unflatten(2, (1, -1)).sort(dim=-1).values),
        "full": lambda: gs.MultivariateGaussian(x[:20, :9, :3], torch.eye(3).expand(*x[:20, :9, :3].shape, 3)),
    }
    return made[name]()


def graph(behavior: gs.Behavior, seed: int = 1) -> gs.Graph:
    return gs.graphs.uniform(behavior.agents, max(2, behavior.agents * 3 // 2), seed=seed)


def weighted(behavior: gs.Behavior) -> gs.Graph:
    plain = graph(behavior)
    return gs.graphs.from_edge_index(plain.edges.T, plain.n, weights=torch.linspace(0.1, 1.7, plain.m))


def clusters(behavior: gs.Behavior) -> torch.Tensor:
    return torch.arange(behavior.observations) // 7


def accumulate(behavior: gs.Behavior, **options: Any) -> Any:
    accumulator = gs.SndAccumulator(behavior.agents, **options)
    accumulator.update(behavior, clusters(behavior) if options.get("clusters") else None)
    return accumulator.state(), accumulator.compute()


def gradient(call: Callable[[gs.Behavior], torch.Tensor]) -> Callable[[gs.Behavior], torch.Tensor]:
    def run(behavior: gs.Behavior) -> torch.Tensor:
        leaf = behavior.actions.detach().clone().requires_grad_()  # type: ignore[attr-defined]
        value = call(gs.Deterministic(leaf))
        (value * torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)).sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    return run


def regular(behavior: gs.Behavior) -> gs.Graph:
    return gs.graphs.random_regular(behavior.agents, min(behavior.agents - 1, 32) // 2 * 2, seed=0)


def effects(behavior: gs.Behavior) -> Any:
    on = regular(behavior)
    return fit_effects(gs.pairwise(behavior, graph=on), on)


CALLS: dict[str, Callable[[gs.Behavior], Any]] = {
    "snd": gs.snd,
    "snd reference": lambda b: gs.snd(b, backend="reference"),
    "graph_snd": lambda b: gs.graph_snd(b, graph(b)),
    "graph_snd weighted": lambda b: gs.graph_snd(b, weighted(b)),
    "horvitz_thompson": lambda b: gs.horvitz_thompson(b, graph(b)),
    "pairwise": gs.pairwise,
    "pairwise reference": lambda b: gs.pairwise(b, backend="reference"),
    "contributions": gs.contributions,
    "pairwise of edges": lambda b: gs.pairwise(b, graph=graph(b)),
    "pairwise of edges, reference": lambda b: gs.pairwise(b, graph=graph(b), backend="reference"),
    "decompose": lambda b: gs.decompose(b, [i % 3 for i in range(b.agents)]),
    "measure": gs.measure,
    "measure clusters": lambda b: gs.measure(b, clusters=clusters(b)),
    "measure graph": lambda b: gs.measure(b, design=weighted(b)),
    "measure graph clusters": lambda b: gs.measure(b, design=graph(b), clusters=clusters(b)),
    "horvitz-thompson": lambda b: gs.horvitz_thompson(b, gs.graphs.bernoulli(b.agents, 0.7, seed=0)),
    "measure regular": lambda b: gs.measure(b, design=regular(b)),
    "measure tolerance": lambda b: gs.measure(b, design="matching", rel_tol=0.1),
    **{
        f"measure {design}": lambda b, design=design: gs.measure(b, design=design)  # type: ignore[misc]
        for design in ("bernoulli:0.7", "uniform:8", "matching", "matching:2", "ring:4", "agents:4")
    },
    "accumulator": accumulate,
    "accumulator graph": lambda b: accumulate(b, graph=graph(b), clusters=True),
    "diameter": gs.bounds.diameter,
    "agent_effects": effects,
    "distortion": lambda b: gs.bounds.distortion(gs.graphs.random_regular(min(b.agents, 20), 4, seed=0)),
    "relabelling": lambda b: relabelling_variance(gs.pairwise(b), [2] * b.agents),
    "gradient snd": gradient(gs.snd),
    "gradient snd reference": gradient(lambda b: gs.snd(b, backend="reference")),
    "gradient graph_snd": gradient(lambda b: gs.graph_snd(b, weighted(b))),
    "gradient pairwise": gradient(gs.pairwise),
    "gradient edges": gradient(lambda b: gs.pairwise(b, graph=graph(b))),
}
SLOW = {"accumulator graph": ("long",), "distortion": ("long", "wide")}  # sizes that take seconds and show nothing new
CASES = [("long", "double"), ("wide", "double"), ("middle", "gaussian"), ("middle", "categorical"), ("deep", "double")]
CASES += [("middle", "full"), ("deep", "quantiles")]


def bits(value: Any) -> list[Any]:
    """Everything inside a result, in an order, floats and tensors as their bits."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), tuple(value.shape), value.detach().cpu().contiguous().numpy().tobytes()]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in CLOCKS]
        return [piece for name in names for piece in bits(getattr(value, name))]
    if isinstance(value, dict):
        return [piece for item in value.values() for piece in bits(item)]
    if isinstance(value, list | tuple):
        return [piece for item in value for piece in bits(item)]
    return [value.hex() if isinstance(value, float) else value]


def names(size: str, kind: str) -> list[str]:
    """The calls that take a family."""
    places = kind in ("deterministic", "double")
    fitting = [name for name in CALLS if places or "gradient" not in name]
    return [name for name in fitting if size not in SLOW.get(name, ())]


@pytest.mark.parametrize("count", [3, pytest.param(2, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("size", "kind"), CASES)
def test_threads_do_not_change_a_bit(size: str, kind: str, count: int) -> None:
    behavior = family(kind, size)
    for name in names(size, kind):
        torch.set_num_threads(1)
        alone = bits(CALLS[name](behavior))
        torch.set_num_threads(count)
        assert bits(CALLS[name](behavior)) == alone, name


def test_nor_do_those_of_other_libraries() -> None:
    """BLAS beneath NumPy and SciPy reads its number when it is loaded."""
    program = (
        "import hashlib; from tests.test_threads import CALLS, bits, family, names\n"
        "behavior = family('double', 'wide')\n"
        "for name in names('wide', 'double'):\n"
        "    print(name, hashlib.sha256(repr(bits(CALLS[name](behavior))).encode()).hexdigest())\n"
    )
    said = []
    for count in ("1", "3"):
        variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        environment = os.environ | dict.fromkeys(variables, count) | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program]
        said.append(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert said[0].count("\n") == len(names("wide", "double"))
    assert said[0] == said[1]


def test_calls_from_many_threads_at_once_have_the_bits_of_one() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 2))
    policies, observations = [module] + [torch.nn.Linear(5, 2) for _ in range(3)], torch.randn(200, 5)
    behavior = gs.Deterministic(torch.randn(60, 24, 4, dtype=torch.float64))
    chosen = ("snd", "graph_snd", "pairwise", "contributions", "measure regular", "accumulator", "gradient snd")
    calls = {name: (lambda name=name: CALLS[name](behavior)) for name in chosen}
    calls["policies"] = lambda: gs.measure(policies, observations)
    alone = {name: bits(call()) for name, call in calls.items()}
    state, filters = torch.get_rng_state(), list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        for name, found in [(name, threads.submit(calls[name])) for _ in range(3) for name in sorted(calls)]:
            assert bits(found.result()) == alone[name], name
    assert torch.equal(torch.get_rng_state(), state)
    assert (list(warnings.filters), module.training) == (filters, True)
