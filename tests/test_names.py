"""Names of agents, from a dict of policies or arrays to every result, file and listing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import pytest
import torch

import graphsnd as gs
from graphsnd.plots.tables import summarise
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from graphsnd.teams.team import Team

NAMES = ("scout", "guard", "medic", "cook")
PLACES = {name: torch.randn(30, 2, generator=torch.Generator().manual_seed(k)) for k, name in enumerate(NAMES)}
NAMED = gs.Deterministic(PLACES)
BARE = gs.Deterministic(torch.stack(list(PLACES.values()), dim=1))


def apart(one: str, two: str) -> float:
    """Return the distance of two agents, by a loop in double precision."""
    rows = zip(PLACES[one].tolist(), PLACES[two].tolist(), strict=True)
    return sum(((x - a) ** 2 + (y - b) ** 2) ** 0.5 for (x, y), (a, b) in rows) / len(PLACES[one])


@pytest.mark.parametrize("design", [None, "uniform:3", "matching", "agents:3", "regular:2"])
def test_estimates_of_every_design_have_them(design: str | None) -> None:
    estimate = gs.measure(NAMED, design=design)
    assert estimate.names == NAMES
    assert json.loads(json.dumps(estimate.to_dict()))["names"] == list(NAMES)
    assert dict(summarise(estimate))["agents"] == "4: scout, guard, medic, cook"
    assert gs.measure(BARE, design=design).names == ()
    assert dict(summarise(gs.measure(BARE, design=design)))["agents"] == "4"


@pytest.mark.parametrize("options", [{}, {"design": "agents:2"}, {"rel_tol": 0.5}])
def test_estimates_of_policies_have_them(options: dict[str, Any]) -> None:
    policies = {name: torch.nn.Linear(3, 2) for name in NAMES}
    observations = torch.randn(50, 3)
    assert gs.measure(policies, observations, **options).names == NAMES
    assert gs.measure(list(policies.values()), observations, **options).names == ()

    def joint(seen: torch.Tensor) -> gs.Behavior:
        return gs.Deterministic({name: policy(seen) for name, policy in policies.items()})

    assert gs.measure(joint, observations, **options).names == NAMES


def test_edges_are_listed_by_name() -> None:
    graph = gs.Graph(4, torch.tensor([[3, 1], [0, 2]]), names=NAMES)
    edges = graph.named_edges()
    assert edges == [("scout", "medic"), ("guard", "cook")]
    distances = gs.pairwise(NAMED, graph=graph).tolist()
    assert distances == pytest.approx([apart(*edge) for edge in edges], rel=1e-6)
    assert gs.graphs.complete(3).named_edges() == [("0", "1"), ("0", "2"), ("1", "2")]
    assert "named" in repr(graph)
    assert "named" not in repr(gs.graphs.complete(3))


def test_networkx_keeps_them_both_ways() -> None:
    theirs = networkx.Graph([("cook", "scout"), ("medic", "guard"), ("scout", "guard")])
    graph = gs.graphs.from_networkx(theirs, NAMED.names)
    assert graph.names == NAMES
    expected = sum(apart(*edge) for edge in theirs.edges) / 3
    assert float(gs.graph_snd(NAMED, graph)) == pytest.approx(expected, rel=1e-6)
    assert networkx.utils.graphs_equal(networkx.Graph(theirs.edges), networkx.Graph(graph.to_networkx().edges))
    assert tuple(graph.to_networkx()) == NAMES
    assert gs.graphs.from_networkx(theirs).names == tuple(theirs.nodes) == ("cook", "scout", "medic", "guard")
    assert gs.graphs.from_networkx(networkx.path_graph(3)).names is None


OTHER = gs.graphs.complete(4).with_names(("guard", "scout", "medic", "cook"))
STRANGERS = gs.graphs.uniform(4, 3).with_names(("scout", "guard", "medic", "smith"))


@pytest.mark.parametrize(
    ("graph", "names"), [(OTHER, "'scout' at 0, got 'guard'"), (STRANGERS, "'cook' at 3, got 'smith'")]
)
@pytest.mark.parametrize("design", [gs.graph_snd, gs.pairwise, gs.measure])
def test_a_graph_with_other_names_is_refused(design: Any, graph: gs.Graph, names: str) -> None:
    with pytest.raises(gs.InputError, match=names):
        design(NAMED, **{"design" if design is gs.measure else "graph": graph})
    with pytest.raises(gs.InputError, match=names):
        gs.measure({name: torch.nn.Linear(3, 2) for name in NAMES}, torch.randn(9, 3), design=graph)
    with pytest.raises(gs.InputError, match="got scout, guard, medic, cook"):
        gs.SndAccumulator(4, graph=graph).update(NAMED)


def test_graphs_keep_them() -> None:
    squads = {"cook": "red", "scout": "blue", "guard": "red"}
    graph = gs.graphs.cliques(squads)
    assert graph.named_edges() == [("cook", "guard")]
    assert gs.graphs.relabelled(graph).names == graph.to("cpu").names == tuple(squads)
    places = {"far": torch.tensor([9.0]), "left": torch.tensor([0.0]), "right": torch.tensor([1.0])}
    assert gs.graphs.radius(places, 2.0).named_edges() == [("left", "right")]
    assert gs.graphs.knn(places, 1).named_edges() == [("far", "right"), ("left", "right")]


def test_positions_and_labels_by_name() -> None:
    shuffled = ("medic", "cook", "scout", "guard")
    places = {name: torch.tensor([float(NAMES.index(name))]) for name in shuffled}
    local = gs.measure(NAMED, design="radius:1.5", positions=places)
    expected = (apart("scout", "guard") + apart("guard", "medic") + apart("medic", "cook")) / 3
    assert local.value == pytest.approx(expected, rel=1e-6)
    split = gs.decompose(NAMED, {name: name in ("scout", "cook") for name in shuffled})
    assert float(split.within) * 6 == pytest.approx(apart("scout", "cook") + apart("guard", "medic"), rel=1e-6)
    with pytest.raises(gs.InputError, match="by the names scout, guard, medic, cook, got scout"):
        gs.decompose(NAMED, {"scout": 0})


def test_accumulators_keep_them_and_refuse_others() -> None:
    first, second = (gs.SndAccumulator(4) for _ in range(2))
    first.update(BARE)
    first.update(NAMED)
    second.update(BARE)
    assert gs.SndAccumulator.merge(second, first).compute().names == first.compute().names == NAMES
    assert second.compute().names == ()
    again = gs.SndAccumulator.from_state(first.state())
    again.distance = first.distance
    assert again.compute().names == NAMES
    others = NAMED.with_names(["a", "b", "c", "d"])
    with pytest.raises(gs.InputError, match="with the agents scout, guard, medic, cook, got a, b, c, d"):
        first.update(others)
    assert first.observations == 60
    second.update(others)
    with pytest.raises(gs.InputError, match="got a, b, c, d"):
        gs.SndAccumulator.merge(first, second)
    with pytest.raises(gs.InputError, match="`state`"):
        gs.SndAccumulator.from_state(first.state(), graph=OTHER)


def test_saved_teams_keep_them(tmp_path: Path) -> None:
    network = StackedMLP.create((4,), (3, 8, 2), generator=torch.Generator().manual_seed(0))
    team = StackedTeam(network, GaussianHead(2, batch=(4,)))
    team.with_names(NAMES).save(tmp_path)
    assert Team.load(tmp_path).names == Team.load(tmp_path).evaluate(torch.zeros(2, 3)).names == NAMES
    team.save(tmp_path)
    assert not Team.load(tmp_path).evaluate(torch.zeros(2, 3)).named
