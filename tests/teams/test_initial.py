from __future__ import annotations

import math

import pytest
import torch
from scipy import stats

from graphsnd.teams import StackedMLP


@pytest.mark.parametrize(("fan_in", "fan_out"), [(18, 64), (64, 64), (64, 2), (3, 1)])
def test_orthogonal(fan_in: int, fan_out: int, generator: torch.Generator) -> None:
    net = StackedMLP.create((2, 3), (fan_in, fan_out, 4), generator=generator, head_gain=0.01, dtype=torch.float64)
    weight, head = net.weights[0].detach(), net.weights[1].detach() / 0.01
    for w in (weight, head):
        gram = w @ w.mT if w.shape[-2] <= w.shape[-1] else w.mT @ w
        torch.testing.assert_close(gram, torch.eye(gram.shape[-1], dtype=torch.float64).expand_as(gram))
    assert not any(bias.any() for bias in net.biases)
    assert not weight[0, 0].equal(weight[1, 2])


def test_orthogonal_is_uniform(generator: torch.Generator) -> None:
    # A coordinate of a uniform unit vector in 3 dimensions is uniform on [-1, 1] (Archimedes).
    weight = StackedMLP.create((4000,), (3, 1), generator=generator).weights[0].detach()
    for coordinate in weight.squeeze(-1).T:
        assert stats.kstest(coordinate.numpy(), stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_linear_is_what_torch_does(generator: torch.Generator) -> None:
    net = StackedMLP.create((500,), (16, 8, 2), generator=generator, init="linear")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        linears = [torch.nn.Linear(16, 8) for _ in range(500)]
    ours = {"weight": net.weights[0], "bias": net.biases[0]}
    for name, tensor in ours.items():
        theirs = torch.cat([getattr(linear, name).detach().flatten() for linear in linears])
        assert float(tensor.detach().abs().max()) <= 1 / math.sqrt(16)
        assert stats.ks_2samp(tensor.detach().flatten().numpy(), theirs.numpy()).pvalue > 1e-3


@pytest.mark.parametrize("init", ["orthogonal", "linear"])
def test_only_the_generator_decides(init: str) -> None:
    def drawn(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        net = StackedMLP.create((3,), (5, 4, 2), generator=generator, init=init)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    state = torch.random.get_rng_state()
    assert drawn(1).equal(drawn(1))
    assert not drawn(1).equal(drawn(2))
    assert torch.random.get_rng_state().equal(state)
