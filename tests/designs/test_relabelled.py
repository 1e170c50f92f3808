from __future__ import annotations

import graphsnd as gs


def test_odd_teams_leave_one_agent_out_of_a_matching() -> None:
    template = gs.designs.Matching().template(7)
    assert (template.size, template.m) == (6, 3)


def test_a_ring_is_regular_and_simple() -> None:
    for n in (5, 6, 9, 30):
        for degree in (2, 4):
            template = gs.designs.Ring(degree).template(n)
            assert set(template.degrees().tolist()) == {min(degree, n - 1)}
            assert len({frozenset(edge) for edge in template.edges.tolist()}) == template.m
