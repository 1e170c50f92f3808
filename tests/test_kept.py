"""What is kept of a tensor, and until when."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

import graphsnd as gs
from graphsnd.kept import keep, place

ELSEWHERE = torch.device("meta")


def test_it_is_made_once_for_each_key() -> None:
    edges, made = torch.tensor([[0, 1]]), []
    for key in ("a", "b", "a", "b"):
        assert keep(edges, key, lambda key=key: made.append(key) or key) == key  # type: ignore[misc]
    assert made == ["a", "b"]
    assert keep(edges.clone(), "a", lambda: "new") == "new"


def test_it_is_made_again_after_a_change() -> None:
    edges = torch.tensor([[0, 1]])
    assert keep(edges, "sum", lambda: int(edges.sum())) == 1
    edges[0, 1] = 5
    assert keep(edges, "sum", lambda: int(edges.sum())) == 5


@pytest.mark.parametrize("make", ["inference", "gradient"])
def test_it_is_made_each_time_where_a_change_cannot_be_seen(make: str) -> None:
    with torch.inference_mode(make == "inference"):
        weights = torch.ones(3, requires_grad=make == "gradient")
    assert [keep(weights, "key", lambda value=value: value) for value in (1, 2)] == [1, 2]  # type: ignore[misc]


def test_it_goes_with_the_tensor() -> None:
    edges = torch.tensor([[0, 1]])
    gone = weakref.ref(keep(edges, "key", lambda: torch.zeros(3)))
    assert gone() is not None
    del edges
    gc.collect()
    assert gone() is None


def test_edges_are_copied_to_a_device_once() -> None:
    edges = gs.graphs.bernoulli(9, 0.5, seed=0).edges
    copy = place(edges, ELSEWHERE)
    assert copy.device == ELSEWHERE
    assert place(edges, ELSEWHERE) is copy
    edges[0] = torch.tensor([0, 8])
    assert place(edges, ELSEWHERE) is not copy
    assert place(edges, edges.device) is edges
