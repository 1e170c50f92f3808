from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.estimation import Weighting


@pytest.mark.parametrize(
    ("design", "pairs", "evaluations"),
    [
        (gs.AllPairs(), 45, 10),
        (gs.FreshMatching(), 5, 10),
        (gs.FreshMatching(3), 3, 6),
        (gs.FreshMatching(30), 5, 10),
        (gs.FreshCirculant(4), 20, 10),
        (gs.FreshCirculant(10), 45, 10),
        (gs.AgentSubset(4), 6, 4),
        (gs.AgentSubset(99), 45, 10),
        (gs.ObservationSubset(7, gs.AgentSubset(4)), 6, 4),
        (gs.FixedGraph.uniform(12), 12, 10),
        (gs.FixedGraph.bernoulli(0.2), 9, 10),
        (gs.FixedGraph.regular(3), 15, 10),
        (gs.FixedGraph(lambda n, g: gs.graphs.cliques([0, 1] * 5)), 20, 10),
    ],
    ids=lambda x: x.name if isinstance(x, gs.estimation.Design) else str(x),
)
def test_knows_its_cost(design: gs.estimation.Design, pairs: float, evaluations: int) -> None:
    assert design.pairs(10) == pytest.approx(pairs)
    assert design.evaluations(10) == evaluations
    assert design.inclusion(10) == pytest.approx(pairs / 45)
    assert design.name


def test_odd_teams_leave_one_agent_out_of_a_matching() -> None:
    template = gs.FreshMatching().template(7)
    assert (template.size, template.m) == (6, 3)


def test_a_circulant_is_regular_and_simple() -> None:
    for n in (5, 6, 9, 30):
        for degree in (2, 4):
            template = gs.FreshCirculant(degree).template(n)
            assert set(template.degrees().tolist()) == {min(degree, n - 1)}
            assert len({frozenset(edge) for edge in template.edges.tolist()}) == template.m


@pytest.mark.parametrize(
    "make",
    [
        lambda: gs.FreshCirculant(3),
        lambda: gs.FreshCirculant(0),
        lambda: gs.AgentSubset(1),
        lambda: gs.FreshMatching(0),
        lambda: gs.ObservationSubset(1, gs.AgentSubset(4)),
        lambda: gs.ObservationSubset(4, gs.ObservationSubset(4, gs.AgentSubset(4))),
    ],
)
def test_impossible_designs_are_refused(make) -> None:
    with pytest.raises(gs.InputError):
        make()


@pytest.mark.parametrize(
    "design",
    [
        gs.FixedGraph.bernoulli(0.3),
        gs.FixedGraph.bernoulli(0.3, Weighting.HORVITZ_THOMPSON),
        gs.FixedGraph.uniform(9),
        gs.FixedGraph.regular(3),
        gs.FreshMatching(),
        gs.FreshCirculant(2),
        gs.AgentSubset(3),
        gs.ObservationSubset(5, gs.AgentSubset(3)),
        gs.ObservationSubset(4, gs.AllPairs()),
    ],
    ids=lambda d: d.name + ("" if not isinstance(d, gs.FixedGraph) else d.weighting.value),
)
def test_every_design_is_unbiased(design: gs.estimation.Design) -> None:
    generator = torch.Generator().manual_seed(5)
    team = gs.Deterministic(torch.randn(12, 8, 2, generator=generator) * torch.arange(1.0, 13).view(-1, 1, 1))
    truth, values = float(gs.snd(team)), []
    for seed in range(500):
        try:
            values.append(gs.estimate(team, design=design, seed=seed).value)
        except gs.InputError:  # an empty Bernoulli draw: the normalised mean is unbiased given that there are edges
            assert isinstance(design, gs.FixedGraph)
            assert design.weighting is Weighting.NORMALISED
    found = torch.tensor(values, dtype=torch.float64)
    error = float(found.std()) / len(values) ** 0.5
    assert abs(float(found.mean()) - truth) < 4 * error
    assert error > 0
