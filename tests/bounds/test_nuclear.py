"""The nuclear norm: against singular values, and the bounds whatever the matrix and however short the iteration."""

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds import nuclear
from graphsnd.bounds.nuclear import nuclear_norm


def matrix(kind: str, n: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    if kind == "euclidean":
        points = rng.normal(size=(n, 3))
        values = np.linalg.norm(points[:, None] - points, axis=-1)
    elif kind == "l1":
        points = rng.normal(size=(n, 5))
        values = np.abs(points[:, None] - points).sum(-1)
    elif kind == "low rank":
        factors = rng.normal(size=(n, 4))
        values = factors @ np.diag([3, 1, -2, -4]) @ factors.T
    else:  # no structure: eigenvalues of both signs, none of them small
        values = rng.normal(size=(n, n))
    values = np.triu(values, 1)
    return torch.from_numpy(values + values.T)


def oracle(values: torch.Tensor) -> float:
    return float(np.linalg.svd(values.numpy(), compute_uv=False).sum())


KINDS = ["euclidean", "l1", "low rank", "noise"]


@pytest.mark.parametrize("kind", KINDS)
def test_exact(kind: str) -> None:
    found = nuclear_norm(matrix(kind, 90, 0))
    assert found.exact
    assert found.value == found.upper == pytest.approx(oracle(matrix(kind, 90, 0)), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_bounds_hold_however_short_the_iteration(kind: str, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nuclear, "ROUNDS", rounds)
    monkeypatch.setattr(nuclear, "DIRECTIONS", 20)
    values = matrix(kind, 200, rounds)
    found, truth = nuclear_norm(values, exact=False), oracle(values)
    assert not found.exact
    assert found.value <= truth * (1 + 1e-12)
    assert truth <= found.upper


@pytest.mark.parametrize("kind", ["euclidean", "l1"])
def test_negative_type_is_found_exactly_and_bounded_closely(kind: str) -> None:
    values = matrix(kind, 500, 1)
    found, truth = nuclear_norm(values, exact=False), oracle(values)
    assert found.value == pytest.approx(truth, rel=1e-10)
    assert found.upper < 1.1 * truth
    # One positive eigenvalue and trace 0: the norm is twice that eigenvalue.
    assert truth == pytest.approx(2 * float(torch.linalg.eigvalsh(values)[-1]), rel=1e-10)


def test_deterministic() -> None:
    values = matrix("l1", 300, 2)
    assert nuclear_norm(values, exact=False) == nuclear_norm(values, exact=False)


def test_float32_from_pairwise() -> None:
    behavior = gs.Gaussian(torch.randn(20, 30, 2, generator=torch.Generator().manual_seed(0)), torch.ones(2))
    values = gs.pairwise(behavior)
    assert nuclear_norm(values).value == pytest.approx(oracle(values.double()), rel=1e-6)


@pytest.mark.parametrize("values", [
    torch.zeros(3, 4),
    torch.zeros(2, 3, 3),
    torch.tensor([[0.0, 1.0], [2.0, 0.0]]),
    torch.eye(3),
    torch.tensor([[0.0, torch.nan], [torch.nan, 0.0]]),
])  # fmt: skip
def test_bad_input_is_named(values: torch.Tensor) -> None:
    with pytest.raises(gs.InputError, match="`distances`"):
        nuclear_norm(values)
