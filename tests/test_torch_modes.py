"""SND, controllers and teams under torch.compile, autocast, DDP and no_grad."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import graphsnd as gs
from graphsnd.control import DiCo

GRAPH = gs.graphs.bernoulli(5, 0.6, seed=0)
HALF = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture
def points(generator: torch.Generator) -> Tensor:
    return torch.randn(40, 5, 3, generator=generator)


def policies(generator: torch.Generator) -> list[nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(1 << 30, (), generator=generator)))
        return [nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(3)]


def controlled(controller: DiCo) -> Callable[[Tensor], Tensor]:
    def loss(points: Tensor) -> Tensor:
        scale, state, _ = controller.step(points, controller.initial(), generator=torch.Generator().manual_seed(0))
        return (scale * points.float()).square().mean() + state.estimate

    return loss


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "snd": lambda p: gs.snd(gs.Deterministic(p)),
    "gaussian": lambda p: gs.snd(gs.Gaussian(p, 0.5 + p.square())),
    "categorical": lambda p: gs.snd(gs.Categorical(logits=p)),
    "graph": lambda p: gs.graph_snd(gs.Deterministic(p), GRAPH),
    "dico": controlled(DiCo(0.5, differentiable=True)),
    "dico on a design": controlled(DiCo(0.5, differentiable=True, design="bernoulli:0.5")),
    "dico without gradients": controlled(DiCo(0.5, design="agents:3")),
}


def run(loss: Callable[[Tensor], Tensor], points: Tensor) -> tuple[Tensor, Tensor]:
    given = points.clone().requires_grad_()
    value = loss(given)
    value.backward()
    assert given.grad is not None
    return value.detach(), given.grad


COMPILED = [("snd", "aot_eager")]
COMPILED += [pytest.param(name, "inductor", marks=pytest.mark.integration) for name in LOSSES]  # type: ignore[misc]


@pytest.mark.parametrize(("name", "backend"), COMPILED)
@pytest.mark.filterwarnings("ignore")
def test_compiled_numbers_and_gradients_are_the_same(name: str, backend: str, points: Tensor) -> None:
    torch._dynamo.reset()
    value, gradient = run(LOSSES[name], points)
    compiled, also = run(torch.compile(LOSSES[name], backend=backend), points)
    torch.testing.assert_close(compiled, value, rtol=1e-6, atol=0)
    torch.testing.assert_close(also, gradient, rtol=1e-5, atol=1e-8)


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")
def test_compiled_policies_and_a_compiled_measurement(generator: torch.Generator) -> None:
    torch._dynamo.reset()
    team, observations = policies(generator), torch.randn(50, 3, generator=generator)
    expected = gs.snd(gs.evaluate(team, observations)).detach()
    compiled = [torch.compile(policy, backend="aot_eager") for policy in team]
    torch.testing.assert_close(gs.snd(gs.evaluate(compiled, observations)).detach(), expected)
    measured = torch.compile(lambda o: gs.snd(gs.evaluate(team, o)), backend="aot_eager")(observations)
    torch.testing.assert_close(measured.detach(), expected)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", LOSSES)
def test_autocast_changes_nothing(name: str, dtype: torch.dtype, points: Tensor) -> None:
    value, gradient = run(LOSSES[name], points.to(dtype))
    with torch.autocast("cpu", torch.bfloat16):
        also, other = run(LOSSES[name], points.to(dtype))
    assert value.dtype == also.dtype
    assert torch.equal(value, also)
    assert torch.equal(gradient, other)


def test_without_gradients_there_is_no_graph(generator: torch.Generator, points: Tensor) -> None:
    team, observations = policies(generator), torch.randn(50, 3, generator=generator)
    given = points.clone().requires_grad_()
    with torch.no_grad():
        results = [loss(given) for loss in LOSSES.values()]
        results += [gs.snd(gs.evaluate(team, observations)), gs.evaluate(team, observations).actions]  # type: ignore[attr-defined]
        scale, state, status = DiCo(0.5, differentiable=True).step(given, DiCo(0.5).initial())
        results += [scale, *vars(state).values(), status.measured]
        results += [gs.pairwise(gs.Deterministic(given)), gs.contributions(gs.Deterministic(given))]
    assert not any(result.requires_grad or result.grad_fn is not None for result in results)


RANK = """
import sys, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import graphsnd as gs
from graphsnd.control import DiCo
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)) for _ in range(3)]
observations = torch.randn(2, 20, 3)

def gradients(policies, seen):
    value = gs.snd(gs.evaluate(policies, seen))
    value.backward()
    return value.detach(), [each.grad.clone() for policy in policies for each in policy.parameters()]

values, alone = zip(*(gradients(layers, seen) for seen in observations))
alone = [both / 2 for _, both in zip(*alone)]  # the second call added to the first
for layer in layers:
    layer.zero_grad()
policies = [DistributedDataParallel(layer) for layer in layers]
value, together = gradients(policies, observations[rank])
torch.testing.assert_close(value, values[rank])
torch.testing.assert_close(together, alone)  # averaged over the ranks
if rank == 0:  # one rank may measure alone, though batch normalisation has buffers that DDP would broadcast
    estimate = gs.measure(policies, observations[0])
    assert abs(estimate.value - float(values[0])) < 1e-6, (estimate, values)
    with torch.no_grad():
        behavior = gs.evaluate({str(i): policy for i, policy in enumerate(policies)}, observations[0])
    torch.testing.assert_close(gs.snd(behavior), values[0])
    controller = DiCo(0.5)
    scale, _, _ = controller.step(behavior.actions, controller.initial())
    assert abs(float(scale * gs.snd(behavior)) - 0.5) < 1e-6
dist.barrier()
dist.destroy_process_group()  # its threads abort a process that ends before them
"""


def test_policies_in_ddp_over_two_ranks(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(tmp_path / "rendezvous")], stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    errors = [process.communicate(timeout=300)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], errors
