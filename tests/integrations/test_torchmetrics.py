from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import graphsnd as gs

pytest.importorskip("torchmetrics")
from torchmetrics import MetricCollection

from graphsnd.integrations.torchmetrics import SystemNeuralDiversity

GRAPH = gs.graphs.uniform(6, 7, seed=0)


def actions(observations: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(observations, 6, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("metric", "whole"),
    [
        (SystemNeuralDiversity(), lambda b: gs.snd(b)),
        (SystemNeuralDiversity(graph=GRAPH), lambda b: gs.graph_snd(b, GRAPH)),
    ],
    ids=["snd", "graph"],
)
def test_unequal_batches_give_the_whole(metric, whole) -> None:
    x = actions(20)
    metric.reset()
    for part in x.split([1, 3, 16]):
        torch.testing.assert_close(metric(gs.Deterministic(part)), whole(gs.Deterministic(part)))
    torch.testing.assert_close(metric.compute(), whole(gs.Deterministic(x)))
    # The mean of the batch values would be another number.
    means = torch.stack([whole(gs.Deterministic(part)) for part in x.split([1, 3, 16])]).mean()
    assert abs(metric.compute() - means) > 1e-3


def test_a_collection_never_merges_different_metrics() -> None:
    x, other, team = actions(8), gs.graphs.uniform(6, 7, seed=1), gs.Deterministic
    weighted = gs.Graph(6, GRAPH.edges, torch.arange(1.0, 8.0))
    metrics = {
        "snd": SystemNeuralDiversity(), "same": SystemNeuralDiversity(), "first": SystemNeuralDiversity(graph=GRAPH),
        "second": SystemNeuralDiversity(graph=other), "weighted": SystemNeuralDiversity(graph=weighted),
    }  # fmt: skip
    collection = MetricCollection(metrics)
    for batch in (torch.zeros_like(x), x, x):  # the first batch makes all states equal
        collection.update(team(batch))
    whole = team(torch.cat([torch.zeros_like(x), x, x]))
    expected = {"snd": gs.snd(whole), "same": gs.snd(whole), "first": gs.graph_snd(whole, GRAPH)}
    expected |= {"second": gs.graph_snd(whole, other), "weighted": gs.graph_snd(whole, weighted)}
    torch.testing.assert_close(collection.compute(), expected)
    assert len({float(value) for value in expected.values()}) == 4
    assert ["same", "snd"] in [sorted(group) for group in collection.compute_groups.values()]


LOGITS, NAMES = actions(4), tuple("abcdef")
TEAM = gs.Deterministic(LOGITS)
PARTS = [gs.Joint([TEAM, TEAM], weights=weights) for weights in ((1.0, 1.0), (1.0, 2.0))]
MIXED = {
    "agents": (TEAM, gs.Deterministic(LOGITS[:, :4])),
    "family": (TEAM, gs.Categorical(logits=LOGITS)),
    "distance": PARTS,
    "names": (TEAM.with_names(NAMES), TEAM.with_names(NAMES[::-1])),
}


@pytest.mark.parametrize("case", MIXED)
@pytest.mark.parametrize("name", ["update", "forward"])
def test_what_cannot_be_averaged_is_refused(name: str, case: str) -> None:
    metric, (one, two) = SystemNeuralDiversity(), MIXED[case]
    add = getattr(metric, name)
    for team in (one, two):  # after a reset another one is fine
        metric.reset()
        add(team)
        add(team)
        torch.testing.assert_close(metric.compute(), gs.snd(team))
    add(one)
    with pytest.raises(gs.InputError, match="`behavior` of the same agents, family and distance in all updates"):
        metric.compute()


def test_the_state_of_another_metric_is_refused() -> None:
    made = [
        SystemNeuralDiversity(gs.TotalVariation()),
        SystemNeuralDiversity(gs.Hellinger()),
        SystemNeuralDiversity(graph=GRAPH),
    ]
    for metric in made:
        metric.persistent(True)
        metric.update(gs.Categorical(logits=LOGITS))
    saved = made[0].state_dict()
    again = SystemNeuralDiversity(gs.TotalVariation())
    again.load_state_dict(saved)
    again.update(gs.Categorical(logits=LOGITS))
    torch.testing.assert_close(again.compute(), made[0].compute())
    for other in made[1:]:
        with pytest.raises(gs.InputError, match="`state` of a metric of the same graph and distance"):
            other.load_state_dict(saved)
    merged = SystemNeuralDiversity(gs.Hellinger())
    merged.update(gs.Categorical(logits=LOGITS))
    merged.merge_state(made[0])
    with pytest.raises(gs.InputError, match="`state` of a metric"):
        merged.compute()


RANK = """
import sys, torch, torch.distributed as dist
from torchmetrics import MetricCollection
import graphsnd as gs
from graphsnd.integrations.torchmetrics import SystemNeuralDiversity
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
x = torch.randn(9, 6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
graph = gs.graphs.uniform(6, 7, seed=0)
metrics = MetricCollection({"snd": SystemNeuralDiversity(), "graph": SystemNeuralDiversity(graph=graph)})
for part in (torch.zeros(1, 6, 2), x[:2] if rank == 0 else x[2:]):
    metrics.update(gs.Deterministic(part.double()))
whole = gs.Deterministic(torch.cat([torch.zeros(2, 6, 2), x]))
expected = {"snd": gs.snd(whole), "graph": gs.graph_snd(whole, graph)}
torch.testing.assert_close(metrics.compute(), expected, rtol=1e-14, atol=0)
dist.destroy_process_group()  # its threads abort a process that ends before them
"""


def test_two_processes_give_the_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RANK]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "rendezvous")], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], errors


def test_forward_is_differentiable() -> None:
    x = actions(4).requires_grad_()
    (gradient,) = torch.autograd.grad(SystemNeuralDiversity()(gs.Deterministic(x)), x)
    (expected,) = torch.autograd.grad(gs.snd(gs.Deterministic(x)), x)
    torch.testing.assert_close(gradient, expected)


def test_reset_and_empty() -> None:
    metric = SystemNeuralDiversity()
    metric.update(gs.Deterministic(actions(3)))
    metric.reset()
    assert int(metric.observations) == 0
    with pytest.warns(UserWarning, match="compute"), pytest.raises(gs.InputError, match="at least one update"):
        metric.compute()
