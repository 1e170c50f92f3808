from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from paper.expanders.teams import ACTIONS, FEATURES, SEEN, initial_team, mean_actions, trained_team


def test_the_team_is_the_same_every_time_and_everybody_sees_the_same() -> None:
    one, two = initial_team(6, observations=32), initial_team(6, observations=32)
    assert isinstance(one, gs.Gaussian)
    assert isinstance(two, gs.Gaussian)
    assert torch.equal(one.loc, two.loc)
    assert one.loc.shape == (32, 6, 2)
    assert float(one.loc.abs().max()) < 0.2  # a head of gain 0.01
    assert torch.allclose(one.scale, torch.tensor(math.exp(-0.5)))


def saved(folder: Path, agents: int) -> StackedTeam:
    generator = torch.Generator().manual_seed(agents)
    network = StackedMLP.create((agents,), (FEATURES, 8, ACTIONS), generator=generator)
    team = StackedTeam(network, GaussianHead(ACTIONS, batch=(agents,)))
    team.save(folder)
    save_file({"observations": torch.randn(40, FEATURES, generator=generator)}, folder / SEEN)
    return team


def test_a_trained_team_on_what_it_saw(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    team = saved(tmp_path, 5)
    found = trained_team(tmp_path, observations=16)
    expected = team.evaluate(load_file(tmp_path / SEEN)["observations"][:16])
    assert isinstance(found, gs.Gaussian)
    assert isinstance(expected, gs.Gaussian)
    assert torch.equal(found.loc, expected.loc)
    assert torch.equal(found.scale, expected.scale)


def test_own_observations_differ_between_agents(tmp_path: Path) -> None:
    """Identical policies are at distance 0 on shared observations, and apart on their own."""
    one = StackedMLP.create((1,), (FEATURES, ACTIONS), generator=torch.Generator().manual_seed(0))
    twins = StackedMLP([w.repeat(3, 1, 1) for w in one.weights], [b.repeat(3, 1, 1) for b in one.biases])
    StackedTeam(twins, GaussianHead(ACTIONS, batch=(3,))).save(tmp_path)
    save_file({"observations": torch.rand(40, FEATURES)}, tmp_path / SEEN)
    assert float(gs.snd(trained_team(tmp_path))) == 0
    own = trained_team(tmp_path, observations=64, own=True)
    assert own.observations == 64
    assert float(gs.snd(own)) > 0.1


def test_own_observations_make_distances_sums_of_effects() -> None:
    from paper.expanders.ratios import Distances

    shared, own = (Distances.of(gs.pairwise(initial_team(30, observations=256, own=own))) for own in (False, True))
    assert own.variance**0.5 / own.snd < shared.variance**0.5 / shared.snd
    assert own.effect_share > shared.effect_share


def test_mean_actions() -> None:
    actions = torch.arange(12.0).reshape(2, 3, 2)
    assert mean_actions(gs.Deterministic(actions)).tolist() == [[3, 4], [5, 6], [7, 8]]
    with pytest.raises(gs.InputError, match="behaviors"):
        mean_actions(gs.Categorical(probs=torch.full((4, 3, 3), 1 / 3)))
