from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.errors import MissingExtraError, check_finite, check_rank, require


def test_message_has_all_its_parts() -> None:
    error = gs.InputError("edges", "with shape (edges, 2)", "shape (2, 40)", "Use from_edge_index.")
    assert str(error) == "Expected `edges` with shape (edges, 2), got shape (2, 40). Use from_edge_index."
    assert error.name == "edges"
    assert isinstance(error, ValueError)


def test_a_missing_package_is_named_as_pip_names_it() -> None:
    with pytest.raises(MissingExtraError, match=r"`no_such_package`.*pip install no-such$") as error:
        require("no_such_package", "no-such")
    assert isinstance(error.value, ImportError)


def test_require_returns_the_module() -> None:
    assert require("torch", "torch") is torch


def test_check_finite_finds_the_first_culprit() -> None:
    x = torch.zeros(3, 4)
    check_finite("x", x)
    x[1, 2], x[2, 0] = torch.nan, torch.inf
    with pytest.raises(gs.InputError, match=r"`x`.*2 NaN or infinite values, the first at index \(1, 2\)"):
        check_finite("x", x)


def test_check_rank() -> None:
    check_rank("x", torch.zeros(2, 2), 2, "(a, b)")
    with pytest.raises(gs.InputError, match=r"`x` with shape \(a, b\), got shape \(2,\)"):
        check_rank("x", torch.zeros(2), 2, "(a, b)")
