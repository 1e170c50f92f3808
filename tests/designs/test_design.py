from __future__ import annotations

import pytest
import torch

import graphsnd as gs


@pytest.mark.parametrize(
    ("design", "pairs", "evaluations"),
    [
        (gs.designs.Complete(), 45, 10),
        (gs.designs.Matching(), 5, 10),
        (gs.designs.Matching(3), 3, 6),
        (gs.designs.Matching(30), 5, 10),
        (gs.designs.Ring(4), 20, 10),
        (gs.designs.Ring(10), 45, 10),
        (gs.designs.Agents(4), 6, 4),
        (gs.designs.Agents(99), 45, 10),
        (gs.designs.Uniform(12), 12, 10),
        (gs.designs.Bernoulli(0.2), 9, 10),
        (gs.designs.Regular(3), 15, 10),
        (gs.designs.Nearest(2), 20, 10),
        (gs.designs.Nearest(9), 45, 10),
        (gs.designs.Radius(0.5), 45, 10),
    ],
    ids=str,
)
def test_knows_its_cost(design: gs.designs.Design, pairs: float, evaluations: int) -> None:
    assert design.pairs(10) == pytest.approx(pairs)
    assert design.evaluations(10) == evaluations


@pytest.mark.parametrize(
    "make",
    [
        lambda: gs.designs.Ring(3),
        lambda: gs.designs.Ring(0),
        lambda: gs.designs.Agents(1),
        lambda: gs.designs.Matching(0),
        lambda: gs.designs.Bernoulli(1.5),
        lambda: gs.designs.Uniform(0),
        lambda: gs.designs.Regular(2.5),
        lambda: gs.designs.Nearest(0),
        lambda: gs.designs.Radius(-1.0),
    ],
)
def test_impossible_designs_are_refused(make) -> None:
    with pytest.raises(gs.InputError):
        make()


@pytest.mark.parametrize("case", ["bernoulli:0.3", "uniform:9", "regular:3", "matching", "ring:2", "agents:3"])
def test_every_design_is_unbiased(case: str) -> None:
    design = gs.designs.parse(case)
    assert design.unbiased
    generator = torch.Generator().manual_seed(5)
    team = gs.Deterministic(torch.randn(12, 8, 2, generator=generator) * torch.arange(1.0, 13).view(-1, 1, 1))
    truth, values = float(gs.snd(team)), []
    for seed in range(500):
        try:
            values.append(gs.measure(team, design=design, seed=seed).value)
        except gs.InputError:  # an empty Bernoulli draw: the normalised mean is unbiased given that there are edges
            assert case == "bernoulli:0.3"
    found = torch.tensor(values, dtype=torch.float64)
    error = float(found.std()) / len(values) ** 0.5
    assert abs(float(found.mean()) - truth) < 4 * error
    assert error > 0
