from __future__ import annotations

import gc
import weakref

import torch

from graphsnd.graphs.edges import keep, on_device

META = torch.device("meta")  # another device that every machine has


def test_edges_are_sent_once_and_again_after_they_change() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    sent = on_device(edges, META)
    assert sent.device == META
    assert on_device(edges, META) is sent
    assert on_device(edges, edges.device) is edges
    edges[1, 1] = 3
    assert on_device(edges, META) is not sent


def test_what_is_kept_goes_with_the_edges() -> None:
    edges = torch.tensor([[0, 1]])
    kept = weakref.ref(keep(edges, "order", lambda: torch.zeros(3)))
    gc.collect()
    assert kept() is not None
    del edges
    gc.collect()
    assert kept() is None


def test_inference_tensors_are_asked_every_time_since_they_hide_their_changes() -> None:
    with torch.inference_mode():
        edges = torch.tensor([[0, 1]])
        assert on_device(edges, META) is not on_device(edges, META)
