from __future__ import annotations

import torch

import graphsnd as gs
from graphsnd.behavior.behavior import embed
from graphsnd.estimation.source import as_source, largest_distance
from tests.cases import Case, each


@each
def test_no_distance_at_any_observation_exceeds_the_bound(case: Case) -> None:
    behavior = case.behavior(observations=9)
    points = embed(behavior, case.distance)
    largest = max(float(gs.pairwise(part, case.distance).max()) for part in _single(case))
    bound = largest_distance(points)
    assert largest <= bound <= 4 * largest + 1e-6


def _single(case: Case) -> list[gs.Behavior]:
    """The same behaviour, one observation at a time."""
    whole = case.behavior(observations=9)
    return [_slice(whole, o) for o in range(9)]


def _slice(behavior: gs.Behavior, o: int) -> gs.Behavior:
    from graphsnd.teams.answers import map_tensors

    return map_tensors(lambda given, _: given[0][o : o + 1], [behavior])


def test_identical_agents_have_bound_zero() -> None:
    assert largest_distance(embed(gs.Deterministic(torch.ones(3, 4, 2)), None)) == 0.0


def test_policies_that_have_not_answered_are_asked_for_a_bound() -> None:
    policies = [lambda seen: torch.distributions.Categorical(logits=seen) for _ in range(2)]
    assert as_source(policies, torch.zeros(5, 3), None, "auto").bound() == 1.0
