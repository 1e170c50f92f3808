"""The propositions against known groups and estimators that are wrong on purpose."""

from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from paper import propositions
from paper.propositions import DistanceCounter, automorphisms, random_team, symmetric_graphs


def test_orders_of_automorphism_groups() -> None:
    found = {name: len(list(automorphisms(graph))) for name, graph in symmetric_graphs().items()}
    # Dihedral groups, products of symmetric groups, signed permutations.
    known = {"ring": 20, "complete bipartite": 144, "hypercube": 48, "cliques": 72, "alternating ring": 10}
    assert {name: found[name] for name in known} == known
    assert found["wheel, spokes heavier"] == 14
    assert found["circulant"] >= 24


@pytest.mark.parametrize("wrong", [-1e-9, 1e-9])
def test_a_wrong_sign_or_zero_is_found(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(*given: object, **options: object) -> torch.Tensor:
        value = gs.graph_snd(*given, **options)  # type: ignore[arg-type]
        return value + wrong if float(value) == 0 else value

    assert propositions.nonnegativity_failures(40, 3) == 0
    monkeypatch.setattr(propositions, "graph_snd", shifted)
    assert propositions.nonnegativity_failures(40, 3) > 5


def test_distances_are_really_counted() -> None:
    team = random_team(7, torch.Generator().manual_seed(1))
    with DistanceCounter() as roots:
        gs.pairwise(team, backend="reference")
    assert roots.count == propositions.OBSERVATIONS * 49  # the plain matrix takes every pair twice, and the diagonal
