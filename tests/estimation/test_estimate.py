from __future__ import annotations

import dataclasses
import json

import pytest
import torch

import graphsnd as gs

TEAM = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0], [7.0]]]).expand(20, 4, 1))


def test_prints_what_it_is() -> None:
    assert str(gs.measure(TEAM)) == "SND 4 (exact over 6 pairs, 20 observations)"
    text = str(gs.measure(TEAM, design=gs.graphs.uniform(4, 3)))
    assert text.startswith("SND ")
    assert "with 95% confidence (uniform, 60 distances)" in text
    assert str(gs.measure(TEAM, design=gs.graphs.cliques([0, 0, 1, 1]))).startswith("Graph-SND 2 (exact over 2 pairs")


@pytest.mark.parametrize(
    "graph",
    [
        None,
        gs.graphs.complete(4),
        gs.graphs.uniform(4, 1),
        gs.graphs.uniform(4, 3),
        gs.graphs.bernoulli(4, 0.5, seed=1),
        gs.graphs.random_regular(4, 1),
        gs.graphs.cliques([0, 0, 1, 1]),
        gs.Graph(4, torch.zeros(0, 2, dtype=torch.int64)),
    ],
    ids=lambda g: "none" if g is None else f"{g.family}-{g.m}",
)
@pytest.mark.parametrize("observations", [1, 20])
def test_json_without_nan_or_infinity(graph: gs.Graph | None, observations: int) -> None:
    behavior = gs.Deterministic(TEAM.actions[:observations])
    estimate = gs.measure(behavior, design=graph)
    text = json.dumps(estimate.to_dict(), allow_nan=False)
    again = json.loads(text)
    assert again.keys() == {field.name for field in dataclasses.fields(gs.Estimate)} | {"exact"}
    assert again["value"] == estimate.value
    assert again["interval"] == list(estimate.interval)


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        gs.measure(TEAM).value = 1.0  # type: ignore[misc]
