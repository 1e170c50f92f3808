from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy import stats

import graphsnd as gs
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam, engine
from graphsnd.teams.engine import run_layers

SIZES = (5, 8, 6, 3)
CALLS = {"tanh": torch.tanh, "relu": torch.relu}


def network(generator: torch.Generator, batch: tuple[int, ...] = (2, 4), activation: str = "tanh") -> StackedMLP:
    made = StackedMLP.create(batch, SIZES, generator=generator, activation=activation, init="linear")
    return made.double()


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("batch", [(4,), (2, 3), (2, 1, 3), ()])
def test_forward_is_every_network_for_itself(
    batch: tuple[int, ...], activation: str, generator: torch.Generator
) -> None:
    net = network(generator, batch, activation)
    inputs = torch.randn(*batch, 7, 5, generator=generator, dtype=torch.float64)
    output = net(inputs)
    assert output.shape == (*batch, 7, 3)
    for where in product(*map(range, batch)):
        hidden = inputs[where]
        for layer in range(3):
            hidden = F.linear(hidden, net.weights[layer][where].T, net.biases[layer][where].squeeze(0))
            hidden = CALLS[activation](hidden) if layer < 2 else hidden
        torch.testing.assert_close(output[where], hidden)


def test_gradient(generator: torch.Generator) -> None:
    net = network(generator, (3,))
    inputs = torch.randn(3, 4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, inputs)
    weight, bias = net.weights[0], net.biases[1]

    def of(w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        tensors = {"weights.0": w, "biases.1": b}
        return torch.func.functional_call(net, tensors, (inputs.detach(),))

    assert torch.autograd.gradcheck(of, (weight, bias))


def test_output_range_is_attained_and_holds(generator: torch.Generator) -> None:
    net = network(generator, (4,))
    low, high = net.output_range()
    inputs = 1e6 * torch.randn(4, 2000, 5, generator=generator, dtype=torch.float64)
    output = net(inputs)
    assert bool((output <= high.unsqueeze(1)).all())
    assert bool((output >= low.unsqueeze(1)).all())
    # Without a layer before the hidden one, a saturating input attains the range.
    weights = [torch.eye(3).unsqueeze(0), torch.tensor([[[1.0], [-2.0], [0.5]]])]
    small = StackedMLP(weights, [torch.zeros(1, 1, 3), torch.ones(1, 1, 1)])
    assert float(small.output_range()[1]) == pytest.approx(4.5, rel=2e-3)
    assert float(small(torch.tensor([[[1e3, -1e3, 1e3]]])).detach()) == 4.5
    assert float(small.output_range()[1]) >= 4.5


@pytest.mark.parametrize(("fan_in", "fan_out"), [(18, 64), (64, 64), (64, 2), (3, 1)])
def test_orthogonal(fan_in: int, fan_out: int, generator: torch.Generator) -> None:
    net = StackedMLP.create((2, 3), (fan_in, fan_out, 4), generator=generator, head_gain=0.01)
    weight, head = net.weights[0].detach(), net.weights[1].detach() / 0.01
    for w in (weight, head):
        gram = w @ w.mT if w.shape[-2] <= w.shape[-1] else w.mT @ w
        torch.testing.assert_close(gram, torch.eye(gram.shape[-1]).expand_as(gram))
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


def team(agents: int, generator: torch.Generator) -> StackedTeam:
    network = StackedMLP.create((agents,), (6, 16, 3), generator=generator, init="linear")
    return StackedTeam(network, CategoricalHead(3))


@pytest.mark.parametrize("spread", [1, 30, 3000])
def test_work_is_proportional_to_the_requests(
    spread: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, networks = [], []

    def spy(inputs: torch.Tensor, weights: Sequence[torch.Tensor], *rest: Any) -> torch.Tensor:
        rows.append(inputs.shape[0] * inputs.shape[1])
        networks.append(len(weights[0]))
        return run_layers(inputs, weights, *rest)

    monkeypatch.setattr(engine, "run_layers", spy)
    monkeypatch.setattr(StackedMLP, "forward", lambda *_: pytest.fail("the whole team was evaluated"))
    agents = torch.randint(spread, (500, 2), generator=generator)
    team(3000, generator).partial(torch.randn(500, 6, generator=generator), agents)
    assert sum(rows) <= 1.5 * agents.numel()
    assert sum(networks) <= agents.unique().numel() + agents.numel() / 64


def test_chunks_do_not_show(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made = team(40, generator)
    observations = torch.randn(70, 6, generator=generator)
    agents = torch.randint(40, (70, 3), generator=generator)
    whole, some = made.evaluate(observations), made.partial(observations, agents)
    monkeypatch.setattr(engine, "CACHED_ACTIVATIONS", 1)
    monkeypatch.setattr(engine, "MAX_ACTIVATIONS", 1)
    monkeypatch.setattr(engine, "MAX_GATHERED", {"cpu": 1})
    torch.testing.assert_close(made.evaluate(observations).probs, whole.probs)  # type: ignore[attr-defined]
    torch.testing.assert_close(made.partial(observations, agents).probs, some.probs)  # type: ignore[attr-defined]
    with torch.no_grad():  # weights are then gathered chunk by chunk
        torch.testing.assert_close(made.partial(observations, agents).probs, some.probs)  # type: ignore[attr-defined]


def test_identical_agents_are_at_distance_zero(generator: torch.Generator) -> None:
    network = StackedMLP.create((1,), (18, 64, 64, 2), generator=generator)
    same = StackedMLP([w.expand(9, -1, -1) for w in network.weights], [b.expand(9, -1, -1) for b in network.biases])
    made = StackedTeam(same, GaussianHead(2, batch=(9,)))
    assert float(gs.snd(made.evaluate(torch.randn(257, 18, generator=generator))).detach()) == 0


@pytest.mark.gpu
def test_cuda(generator: torch.Generator) -> None:
    made = team(300, generator)
    observations = torch.randn(200, 6, generator=generator)
    agents = torch.randint(300, (200, 4), generator=generator)
    expected = made.partial(observations, agents).probs.detach()  # type: ignore[attr-defined]
    got = made.to("cuda").partial(observations.cuda(), agents.cuda()).probs.detach().cpu()  # type: ignore[attr-defined]
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
