from __future__ import annotations

import itertools

import pytest
import torch

import graphsnd as gs
from graphsnd.designs import Template


def test_odd_teams_leave_one_agent_out_of_a_matching() -> None:
    template = gs.designs.Matching().template(7)
    assert (template.size, template.m) == (6, 3)


def test_a_ring_is_regular_and_simple() -> None:
    for n in (5, 6, 9, 30):
        for degree in (2, 4):
            template = gs.designs.Ring(degree).template(n)
            assert set(template.degrees().tolist()) == {min(degree, n - 1)}
            assert len({frozenset(edge) for edge in template.edges.tolist()}) == template.m


def test_edges_that_meet_are_counted_once_for_all_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    team = gs.Gaussian(torch.randn(40, 30, 2, generator=torch.Generator().manual_seed(0)), torch.ones(2))
    first, template = gs.measure(team, design="ring:4"), gs.designs.Ring(4).template(30)
    edges = map(set, template.edges.tolist())
    assert template.meeting() == sum(bool(one & two) for one, two in itertools.combinations(edges, 2))
    monkeypatch.setattr(Template, "degrees", lambda _: pytest.fail("counted again"))
    assert gs.measure(team, design="ring:4").interval == first.interval
