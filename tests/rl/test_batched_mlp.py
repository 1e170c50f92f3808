"""The folded sigmoid network is the tanh network, in value and in gradient."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from graphsnd.rl.batched_mlp import fold_tanh, run_folded, to_columns
from graphsnd.teams.engine import run_layers


def _layers(
    sizes: tuple[int, ...], networks: int, generator: torch.Generator
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    return [(draw(networks, b, a), draw(networks, b, 1)) for a, b in pairwise(sizes)]


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("sizes", [(3, 2), (3, 5, 1), (4, 6, 5, 2)])
def test_same_as_rows(activation: str, sizes: tuple[int, ...], generator: torch.Generator) -> None:
    inputs = torch.randn(3, sizes[0], 7, generator=generator, dtype=torch.float64)
    mine = _layers(sizes, 3, generator)
    flat = [part for layer in mine for part in layer]
    found = run_folded(inputs, fold_tanh(mine, activation), activation)
    expected = run_layers(inputs.mT, [w.mT for w, _ in mine], [b.mT for _, b in mine], activation).mT
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    for one, two in zip(
        torch.autograd.grad((found * weight).sum(), flat),
        torch.autograd.grad((expected * weight).sum(), flat),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


def test_columns_put_networks_first() -> None:
    given = torch.arange(2 * 3 * 4 * 5.0).view(2, 4, 3, 5)
    for rows in (given, given.transpose(1, 2).contiguous().transpose(1, 2)):
        found = to_columns(rows)
        assert found.shape == (8, 5, 3)
        assert found.is_contiguous()
        assert bool((found[1 * 4 + 2, :, 1] == given[1, 2, 1]).all())
