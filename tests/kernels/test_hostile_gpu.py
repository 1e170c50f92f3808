"""Hostile values through every compiled kernel: the CPU's answer, or the same refusal.

On a CPU the same tests run with the numba backend, which shows that they ask for the right things.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import graphsnd as gs
from graphsnd.behavior.points import Norm
from tests.kernels import checks
from tests.kernels.checks import Shape, each_operation

each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
COMPILED = {"cpu": "cpu", "cuda": "gpu"}

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "agents outside": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "features outside": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "every second observation": lambda x: x.repeat_interleave(2, dim=0)[::2],
    "every second feature": lambda x: x.repeat_interleave(2, dim=2)[..., ::2],
    "not at the start": lambda x: torch.cat([x[:1], x])[1:],
    "expanded observations": lambda x: x[:1].expand_as(x),
    "expanded features": lambda x: x[..., :1].expand_as(x),
}


@each_device
@each_operation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(operation: str, layout: str, device: str) -> None:
    values = checks.draw((37, 20, 2), Norm.EUCLIDEAN, torch.float32)
    # Coefficients of both signs cancel, and with them the digits of single precision.
    rtol = 3e-5 if operation == "weighted_edge_totals" else None
    values = LAYOUTS[layout](values.to(device))
    checks.check_agreement(operation, values, Norm.EUCLIDEAN, COMPILED[device], rtol=rtol)


@each_device
@each_operation
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stays_so(operation: str, poison: float, device: str) -> None:
    """Only ``validate=False`` lets it in; then it must not come out as an ordinary number."""
    values = checks.draw((37, 20, 2), Norm.EUCLIDEAN, torch.float32, ties=False)
    values[0, 3, 0] = poison
    sums = checks.run(operation, values.to(device), Norm.EUCLIDEAN, COMPILED[device]).cpu()
    assert not sums[checks.results_of_agent_3(operation, sums, checks.Inputs.draw(37, 20, "cpu"))].isfinite().any()


def team(device: str, dtype: torch.dtype = torch.float32, shape: Shape = (40, 24, 3)) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(device, dtype)


def poisoned(device: str, value: float) -> Tensor:
    values = team(device)
    values[5, 2, 1] = value
    return values


def on(x: Tensor) -> gs.Graph:
    edges = gs.graphs.uniform(24, 70, seed=0).edges
    return gs.graphs.from_edge_index(edges.T, 24, weights=torch.linspace(0, 2, 70)).to(x.device)


MEASURES: dict[str, Callable[[gs.Behavior], Any]] = {
    "snd": gs.snd,
    "pairwise": gs.pairwise,
    "contributions": gs.contributions,
    "graph_snd": lambda b: gs.graph_snd(b, gs.graphs.uniform(24, 70, seed=0)),
    "pairwise of edges": lambda b: gs.pairwise(b, graph=gs.graphs.uniform(24, 70, seed=0)),
    "diameter": gs.bounds.diameter,
    "measure": lambda b: float(gs.measure(b)),
    "measure on a graph": lambda b: float(gs.measure(b, design=gs.graphs.uniform(24, 70, seed=0))),
}
ACCEPTED: dict[str, Callable[[str], gs.Behavior]] = {
    "half": lambda device: gs.Deterministic(team(device, torch.float16)),
    "bfloat16": lambda device: gs.Deterministic(team(device, torch.bfloat16)),
    "single": lambda device: gs.Deterministic(team(device)),
    "double": lambda device: gs.Deterministic(team(device, torch.float64)),
    "large": lambda device: gs.Deterministic(team(device) * 1e30),
    "tiny": lambda device: gs.Deterministic(team(device) * 1e-30),
    "large doubles": lambda device: gs.Deterministic(team(device, torch.float64) * 1e300),
    "identical": lambda device: gs.Deterministic(team(device)[:, :1].expand(-1, 24, -1)),
    "scales of 0": lambda device: gs.Gaussian(team(device), torch.zeros(3, device=device)),
    "one observation": lambda device: gs.Deterministic(team(device)[:1]),
    "many features": lambda device: gs.Deterministic(team(device, shape=(20, 24, 300))),
    "turned": lambda device: gs.Deterministic(team(device).permute(2, 1, 0).contiguous().permute(2, 1, 0)),
}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-5, torch.float64: 1e-10}


@each_device
@pytest.mark.parametrize("name", ACCEPTED)
def test_the_answer_is_that_of_the_cpu(name: str, device: str) -> None:
    behavior = ACCEPTED[name](device)
    for measure in MEASURES.values():
        expected = torch.as_tensor(measure(ACCEPTED[name]("cpu")))
        got = torch.as_tensor(measure(behavior))
        assert got.dtype == expected.dtype
        rtol = TOLERANCE[behavior.actions.dtype if hasattr(behavior, "actions") else torch.float32]
        torch.testing.assert_close(got.cpu(), expected, rtol=rtol, atol=rtol * float(expected.abs().max()))


REFUSED: dict[str, Callable[[str], Any]] = {
    "NaN": lambda device: gs.Deterministic(poisoned(device, math.nan)),
    "infinity": lambda device: gs.Deterministic(poisoned(device, math.inf)),
    "negative scale": lambda device: gs.Gaussian(team(device), poisoned(device, -1.0)),
    "NaN probability": lambda device: gs.Categorical(logits=poisoned(device, math.nan)),
    "probabilities that do not sum to 1": lambda device: gs.Categorical(team(device).abs()),
    "no observation": lambda device: gs.Deterministic(team(device)[:0]),
    "no feature": lambda device: gs.Deterministic(team(device)[..., :0]),
    "one agent": lambda device: gs.snd(gs.Deterministic(team(device)[:, :1])),
    "one number": lambda device: gs.Deterministic(torch.zeros((), device=device)),
    "integers": lambda device: gs.Deterministic(torch.zeros(4, 3, 2, dtype=torch.int64, device=device)),
    "complex": lambda device: gs.Deterministic(torch.zeros(4, 3, 2, dtype=torch.complex64, device=device)),
    "float8": lambda device: gs.Deterministic(torch.zeros(4, 3, 2, device=device).to(torch.float8_e4m3fn)),
    "sparse": lambda device: gs.Deterministic(torch.zeros(4, 3, 2, device=device).to_sparse()),
    "another team's graph": lambda device: gs.graph_snd(gs.Deterministic(team(device)), gs.graphs.complete(5)),
    "unknown backend": lambda device: gs.snd(gs.Deterministic(team(device)), backend="tpu"),
    "overflow": lambda device: gs.measure(gs.Deterministic(team(device, torch.float64) * 1e308), design="matching"),
    "fixed graph": lambda device: gs.horvitz_thompson(gs.Deterministic(team(device)), gs.graphs.complete(24)),
}


def said(call: Callable[[str], Any], device: str) -> tuple[type, str]:
    """The error of a call: its type and the argument that it names."""
    try:
        call(device)
    except Exception as error:
        return type(error), str(error).split(",")[0].split("(")[0]
    return type(None), "no error"


@each_device
@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal_is_that_of_the_cpu(name: str, device: str) -> None:
    expected = said(REFUSED[name], "cpu")
    assert expected[0] is gs.InputError, expected
    assert said(REFUSED[name], device) == expected


@each_device
def test_a_graph_without_edges(device: str) -> None:
    values = team(device).requires_grad_()
    empty = gs.Graph(24, torch.zeros(0, 2, dtype=torch.int64, device=device))
    value = gs.graph_snd(gs.Deterministic(values), empty)
    value.backward()
    assert float(value.detach()) == 0
    assert values.grad is not None
    assert not values.grad.any()
    assert gs.pairwise(gs.Deterministic(team(device)), graph=empty).shape == (0,)
