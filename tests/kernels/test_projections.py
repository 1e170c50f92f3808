"""Sums of distances along directions: counting and sorting against plain torch."""

from __future__ import annotations

import math

import pytest
import torch

from graphsnd.estimation.projections import even_directions, turn_randomly
from graphsnd.kernels import projections


def counted(x: torch.Tensor, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = turn_randomly(even_directions(x.shape[2], 4), x.shape[0], 1, generator).flatten(1, 2)
    return projections.projected_totals(x, drawn, generator), projections._torch_totals(x, drawn)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("features", [2, 3, 5])
def test_counting_agrees_with_sorting(features: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, 2501, features, generator=torch.Generator().manual_seed(0), dtype=dtype) + 50
    by_counting, by_sorting = counted(x)
    assert not torch.equal(by_counting, by_sorting)
    torch.testing.assert_close(by_counting, by_sorting, rtol=3e-4, atol=0)


@pytest.mark.parametrize("features", [2, 3, 5])
def test_compiled_sorting_agrees_with_plain(features: int) -> None:
    x = torch.randn(37, 11, features, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 50
    torch.testing.assert_close(*counted(x), rtol=1e-12, atol=0)
    odd = x.transpose(0, 1).contiguous().transpose(0, 1)
    torch.testing.assert_close(*counted(odd), rtol=1e-12, atol=0)


def test_counting_is_unbiased_for_clumps() -> None:
    # Three points hold all agents: every rounding of a clump is shared by all its members.
    places = torch.tensor([[0.0, 0.0], [1.0, 0.2], [1.3, -2.0]], dtype=torch.float64)
    x = places[torch.arange(2100) % 3].expand(400, -1, -1)
    by_counting, by_sorting = counted(x)
    off = (by_counting / by_sorting - 1).flatten()
    assert 0 < off.std() < 1e-3
    assert abs(off.mean()) < 4 * off.std() / math.sqrt(len(off))


def test_outliers_are_sorted() -> None:
    x = torch.randn(3, 2200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[1, 7] = 1e6
    by_counting, by_sorting = counted(x)
    torch.testing.assert_close(by_counting[1], by_sorting[1], rtol=1e-12, atol=0)
    assert (by_counting[0] / by_sorting[0] - 1).abs().max() > 1e-9


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 2200, 2, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(projections, "available", lambda: {"cpu": "numba cannot be imported"})
    by_counting, by_sorting = counted(x)
    assert torch.equal(by_counting, by_sorting)
