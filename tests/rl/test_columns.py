"""The folded sigmoid network is the tanh network, in value and in gradient."""

from __future__ import annotations

import pytest
import torch

from graphsnd.rl.columns import fold_columns, run_folded
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
