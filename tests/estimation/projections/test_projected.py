from __future__ import annotations

import pytest
import torch

import graphsnd as gs


def team(features: int, observations: int = 12, n: int = 9) -> gs.Behavior:
    generator = torch.Generator().manual_seed(features)
    return gs.Deterministic(torch.randn(observations, n, features, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("features", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("directions", [1, 3, 12])
def test_intervals_hold(features: int, directions: int) -> None:
    behavior = team(features)
    truth, covered = float(gs.snd(behavior)), 0
    for seed in range(60):
        e = gs.estimate(behavior, design=gs.SortedProjections(directions), seed=seed)
        covered += e.interval[0] <= truth <= e.interval[1]
        assert e.distances == 0
        assert e.pairs_used == e.pairs_total
    assert e.guaranteed == (features == 1 or directions >= features)
    if e.guaranteed:
        assert covered >= 54
    assert e.exact == (features == 1)


@pytest.mark.parametrize(("features", "directions"), [(3, 3), (4, 4), (16, 16)])
def test_a_pair_of_agents_is_covered_too(features: int, directions: int) -> None:
    """One pair at one observation has the largest variance there is."""
    behavior = gs.Deterministic(torch.eye(2, features, dtype=torch.float64).unsqueeze(0))
    truth = float(gs.snd(behavior))
    found = [gs.estimate(behavior, design=gs.SortedProjections(directions), seed=seed) for seed in range(300)]
    assert all(e.guaranteed for e in found)
    assert sum(e.interval[0] <= truth <= e.interval[1] for e in found) >= 0.95 * 300 - 3 * (300 * 0.05 * 0.95) ** 0.5


def test_in_the_plane_the_interval_is_certain() -> None:
    """All agents on one line is the worst case, and the offset decides where in the interval SND lies."""
    places = torch.linspace(0, 1, 20, dtype=torch.float64).view(1, 20, 1)
    behavior = gs.Deterministic(places * torch.tensor([0.6, 0.8], dtype=torch.float64))
    truth = float(gs.snd(behavior))
    ends = []
    for seed in range(300):
        e = gs.estimate(behavior, design=gs.SortedProjections(3), seed=seed, confidence=0.999)
        assert e.interval[0] <= truth * (1 + 1e-9)
        assert truth <= e.interval[1] * (1 + 1e-9)
        ends.append((truth - e.interval[0]) / (e.interval[1] - e.interval[0]))
    assert min(ends) < 0.05
    assert max(ends) > 0.95  # so no shorter interval would do


def test_policies_are_evaluated_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphsnd.estimation.sampling import source
    from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

    network = StackedMLP.create((5,), (3, 8, 4), init="linear", generator=torch.Generator().manual_seed(0))
    policies = StackedTeam(network, GaussianHead(2, mean="tanh", scale="network"))
    observations = torch.randn(50, 3)
    monkeypatch.setattr(source, "BLOCK", 5 * 4 * 7)
    truth = float(gs.snd(policies.evaluate(observations)).detach())
    e = gs.estimate(policies, observations, design=gs.SortedProjections(24))
    assert e.value == pytest.approx(truth, rel=0.02)
    assert e.standard_error > 0


def test_other_norms_are_refused() -> None:
    behavior = gs.Categorical(probs=torch.full((4, 3, 2), 0.5))
    with pytest.raises(gs.InputError, match="Euclidean"):
        gs.estimate(behavior, design=gs.SortedProjections())
    with pytest.raises(gs.InputError, match="directions"):
        gs.SortedProjections(0)
