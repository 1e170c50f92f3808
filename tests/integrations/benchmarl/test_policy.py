from __future__ import annotations

import pytest
import torch

from graphsnd.integrations.benchmarl.policy import Deviating


def make(**options) -> Deviating:
    options = {"agents": 3, "inputs": 5, "outputs": 4, "controlled": 2, "hidden": (8, 6), **options}
    return Deviating(**options, generator=torch.Generator().manual_seed(1)).double()


def mlp(network, agent: int, row: torch.Tensor) -> torch.Tensor:
    layers = list(zip(network.weights, network.biases, strict=True))
    for place, (weight, bias) in enumerate(layers):
        row = torch.einsum("i,io->o", row, weight[agent]) + bias[agent, 0]
        row = row.tanh() if place < len(layers) - 1 else row
    return row


@pytest.mark.parametrize("boxed", [True, False])
def test_forward_is_shared_plus_scaled_deviation(boxed: bool, generator) -> None:
    middle, reach = torch.tensor([0.5, -1.0]).double(), torch.tensor([2.0, 0.25]).double()
    network = make(box=torch.stack([middle, reach]) if boxed else None)
    observations = torch.randn(2, 7, 3, 5, generator=generator, dtype=torch.float64)
    outputs = network(observations, torch.tensor(0.3))
    for batch in range(2):
        for frame in range(7):
            for agent in range(3):
                row = observations[batch, frame, agent]
                shared = mlp(network.shared, 0, row)
                loc = torch.tanh(shared[:2]) * reach + middle if boxed else shared[:2]
                expected = torch.cat([loc + 0.3 * mlp(network.deviations, agent, row), shared[2:]])
                torch.testing.assert_close(outputs[batch, frame, agent], expected)


def test_all_agents_on_every_observation(generator) -> None:
    network = make()
    rows = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    deviations, actions = network.deviations_at(rows), network.actions_at(rows, torch.tensor(0.3))
    for o in range(6):
        for agent in range(3):
            own = mlp(network.deviations, agent, rows[o])
            torch.testing.assert_close(deviations[o, agent], own)
            torch.testing.assert_close(actions[o, agent], mlp(network.shared, 0, rows[o])[:2] + 0.3 * own)


def test_logits_deviate_without_their_mean(generator) -> None:
    network = make(controlled=4, discrete=True)
    rows = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    deviations = network.deviations_at(rows)
    torch.testing.assert_close(deviations.sum(-1), torch.zeros(6, 3).double())
    plain = make(controlled=4).deviations_at(rows)
    # The policies are those of uncentred logits.
    torch.testing.assert_close(deviations.softmax(-1), plain.softmax(-1))


def test_scale_zero_makes_all_agents_the_same(generator) -> None:
    row = torch.randn(5, generator=generator, dtype=torch.float64)
    outputs = make()(row.expand(4, 3, 5), torch.tensor(0.0))
    assert torch.equal(outputs, outputs[:, :1].expand_as(outputs))
