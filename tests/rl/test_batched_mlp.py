"""The folded sigmoid network is the tanh network, in value and in gradient."""

from __future__ import annotations

import pytest
import torch

from graphsnd.rl.batched_mlp import fold_columns, run_folded, to_columns
from graphsnd.teams import StackedMLP


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 5, 1), (4, 6, 5, 2)])
def test_same_as_rows(activation: str, sizes: tuple[int, ...], generator: torch.Generator) -> None:
    network = StackedMLP.create((3,), sizes, generator=generator, activation=activation, init="linear").double()
    inputs = torch.randn(3, sizes[0], 7, generator=generator, dtype=torch.float64)
    found, expected = run_folded(inputs, fold_columns(network), activation), network(inputs.mT).mT
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    slopes = (torch.autograd.grad((each * weight).sum(), list(network.parameters())) for each in (found, expected))
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two)


def test_columns_put_networks_first() -> None:
    given = torch.arange(2 * 3 * 4 * 5.0).view(2, 4, 3, 5)
    for rows in (given, given.transpose(1, 2).contiguous().transpose(1, 2)):
        found = to_columns(rows)
        assert found.shape == (8, 5, 3)
        assert found.is_contiguous()
        assert bool((found[1 * 4 + 2, :, 1] == given[1, 2, 1]).all())
