"""All-pairs totals by sorting, against the pairs."""

from __future__ import annotations

import pytest
import torch

from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels import reference, separable
from graphsnd.kernels.threads import limit_threads

CASES = [(Norm.HALF_L1, 1), (Norm.HALF_L1, 4), (Norm.EUCLIDEAN, 1)]
each = pytest.mark.parametrize(("norm", "features"), CASES, ids=lambda v: getattr(v, "value", str(v)))


def draw(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Few distinct values among agents 0 to 4, so that there are ties of two and more."""
    values = torch.randn(shape, generator=generator, dtype=dtype)
    values[:, :5] = values[:, :5].round()
    return values


def with_slopes(values: torch.Tensor, norm: Norm, total: object) -> tuple[torch.Tensor, torch.Tensor]:
    values = values.detach().requires_grad_()
    totals = total(Points(values, norm))  # type: ignore[operator]
    upstream = torch.linspace(-1, 2, len(values), dtype=torch.float64)
    return totals.detach(), torch.autograd.grad(totals, values, upstream)[0]


@each
@pytest.mark.parametrize("agents", [2, 3, 10, 51])
@pytest.mark.parametrize("chunk", [1, separable.CHUNK])
def test_against_the_pairs(
    norm: Norm, features: int, agents: int, chunk: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(separable, "CHUNK", chunk)
    values = draw(generator, 6, agents, features)
    expected, expected_slope = with_slopes(values, norm, reference.pair_totals)
    totals, slope = with_slopes(values, norm, separable.pair_totals)
    assert totals.dtype == torch.float64
    torch.testing.assert_close(totals, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(slope, expected_slope, rtol=1e-13, atol=1e-13)


@each
def test_float32_is_summed_in_float64(norm: Norm, features: int, generator: torch.Generator) -> None:
    values = draw(generator, 4, 300, features, dtype=torch.float32) + 100
    expected, expected_slope = with_slopes(values.double(), norm, reference.pair_totals)
    totals, slope = with_slopes(values, norm, separable.pair_totals)
    assert slope.dtype == torch.float32
    torch.testing.assert_close(totals, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close(slope.double(), expected_slope, rtol=1e-6, atol=1e-6)


@each
def test_gradients(norm: Norm, features: int, generator: torch.Generator) -> None:
    values = torch.randn(2, 5, features, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: separable.pair_totals(Points(v, norm)), (values,))


@each
@pytest.mark.parametrize("agents", [1, 7])
@pytest.mark.parametrize("value", [0.3, 1e-30, 1e30])
def test_equal_agents_are_an_exact_zero(norm: Norm, features: int, agents: int, value: float) -> None:
    for dtype in (torch.float32, torch.float64):
        totals, slope = with_slopes(torch.full((3, agents, features), value, dtype=dtype), norm, separable.pair_totals)
        assert totals.tolist() == [0.0] * 3
        assert not slope.any()


@each
def test_nan_comes_out_as_nan(norm: Norm, features: int, generator: torch.Generator) -> None:
    values = draw(generator, 3, 8, features)
    values[1, 4, 0] = torch.nan
    totals = separable.pair_totals(Points(values, norm))
    assert totals.isnan().tolist() == [False, True, False]


@each
def test_strides(norm: Norm, features: int, generator: torch.Generator) -> None:
    values = draw(generator, 6, 10, features)
    turned = values.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    expected = with_slopes(values, norm, separable.pair_totals)
    for totals, wanted in zip(with_slopes(turned, norm, separable.pair_totals), expected, strict=True):
        assert torch.equal(totals, wanted)


def test_a_hundred_thousand_agents(generator: torch.Generator) -> None:
    n = 100_000
    values = torch.rand(2, n, 1, generator=generator, dtype=torch.float64)
    totals, slope = with_slopes(values, Norm.EUCLIDEAN, separable.pair_totals)
    # Two uniform numbers are 1/3 apart on average; the mean over all pairs is within 5 standard deviations.
    assert (totals / (n * (n - 1) / 2) - 1 / 3).abs().max() < 5 * (4 / 45 / n) ** 0.5
    # The gap between neighbours k and k + 1 separates k * (n - k) pairs.
    gaps = values[..., 0].sort().values.diff()
    k = torch.arange(1, n, dtype=torch.float64)
    torch.testing.assert_close(totals, (gaps * (k * (n - k))).sum(dim=1), rtol=1e-12, atol=0)
    smallest = values[0, :, 0].argmin()
    assert slope[0, smallest, 0] == n - 1  # upstream is -1 and all the others are larger


def test_threads_sort_as_one_does(generator: torch.Generator) -> None:
    values = torch.randn(40, 1000, 3, generator=generator, dtype=torch.float64)
    one = separable.pair_totals(Points(values, Norm.HALF_L1))
    with limit_threads(3):
        several = separable.pair_totals(Points(values, Norm.HALF_L1))
    torch.testing.assert_close(several, one, rtol=1e-13, atol=0)
