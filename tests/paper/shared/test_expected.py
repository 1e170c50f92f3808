from __future__ import annotations

import itertools
import math

import pytest
import torch

import graphsnd as gs
from paper.shared.expected import Redrawn, bernoulli_error, regular_error


def matrix(n: int, seed: int = 0) -> torch.Tensor:
    points = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.cdist(points, points)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_bernoulli_by_listing_every_graph(p: float) -> None:
    distances = matrix(4)
    pairs = list(itertools.combinations(range(4), 2))
    mean = sum(float(distances[i, j]) for i, j in pairs) / len(pairs)
    chance = square = first = 0.0
    for kept in itertools.product((0, 1), repeat=len(pairs)):
        edges = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
        if not edges:
            continue
        weight = p ** len(edges) * (1 - p) ** (len(pairs) - len(edges))
        value = sum(float(distances[i, j]) for i, j in edges) / len(edges)
        chance, first, square = chance + weight, first + weight * value, square + weight * (value - mean) ** 2
    assert first / chance == pytest.approx(mean)
    assert bernoulli_error(distances, p) == pytest.approx(math.sqrt(square / chance))


def test_regular_by_listing_every_numbering() -> None:
    distances = matrix(5)
    ring = [(k, (k + 1) % 5) for k in range(5)]
    values = [sum(float(distances[p[i], p[j]]) for i, j in ring) / 5 for p in itertools.permutations(range(5))]
    assert regular_error(distances, 2) == pytest.approx(
        torch.tensor(values).double().std(correction=0).item(), rel=1e-6
    )


def answers(observations: int = 3, n: int = 5) -> gs.Deterministic:
    seeded = torch.Generator().manual_seed(1)
    return gs.Deterministic(torch.randn(observations, n, 2, generator=seeded, dtype=torch.float64))


def test_redrawn_by_listing_every_choice() -> None:
    team, n = answers(), 5
    each = torch.cdist(team.actions, team.actions)
    found = Redrawn.of(team)
    assert found.snd == pytest.approx(float(gs.snd(team)))
    pairs = list(itertools.combinations(range(n), 2))
    # Two of three observations, and a pair of agents at each.
    values = [
        (float(each[a][p]) + float(each[b][q])) / 2
        for a, b in itertools.combinations(range(3), 2)
        for p, q in itertools.product(pairs, repeat=2)
    ]
    drawn = torch.tensor(values, dtype=torch.float64)
    assert float(drawn.mean()) == pytest.approx(found.snd)
    for design in (gs.designs.parse("agents:2"), gs.designs.parse("matching:1")):
        assert found.error(design, 2) == pytest.approx(float(drawn.std(correction=0)))


def test_redrawn_at_all_observations() -> None:
    team, n = answers(), 5
    each = torch.cdist(team.actions, team.actions)
    trios = list(itertools.combinations(range(n), 3))
    means = torch.stack([torch.stack([each[o][list(t)][:, list(t)].sum() / 6 for t in trios]) for o in range(3)])
    exact = math.sqrt(float(means.var(dim=1, correction=0).sum()) / 9)
    assert Redrawn.of(team).error(gs.designs.parse("agents:3")) == pytest.approx(exact)


def test_enough_observations() -> None:
    found = Redrawn.of(answers(40, 8))
    design = gs.designs.parse("agents:3")
    wanted = found.error(design, 25)
    assert found.observations_for(design, 1.0001 * wanted) == 25
    assert found.error(design, 24) > wanted
