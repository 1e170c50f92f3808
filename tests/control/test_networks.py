from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import graphsnd as gs
from graphsnd import InputError
from graphsnd.behavior import Wasserstein
from graphsnd.control import ControlledPolicy
from graphsnd.control.networks import ControlledTeam, add_deviation, centre_logits
from graphsnd.teams import StackedMLP
from graphsnd.teams.team import Team


def test_only_the_shared_part_is_squashed(generator: torch.Generator) -> None:
    shared, deviation = (torch.randn(5, 2, generator=generator) for _ in range(2))
    middle, half, scale = torch.tensor([0.5, -1.0]), torch.tensor([2.0, 0.25]), torch.tensor(3.0)
    assert torch.equal(add_deviation(shared, deviation, scale, squash=False), shared + 3 * deviation)
    assert torch.equal(add_deviation(shared, deviation, scale, squash=True), shared.tanh() + 3 * deviation)
    boxed = add_deviation(shared, deviation, scale, squash=True, box=torch.stack([middle, half]))
    torch.testing.assert_close(boxed, shared.tanh() * half + middle + 3 * deviation)


def test_centred_logits_are_the_same_policy(generator: torch.Generator) -> None:
    logits = torch.randn(6, 4, generator=generator)
    torch.testing.assert_close(centre_logits(logits).sum(-1), torch.zeros(6))
    torch.testing.assert_close(centre_logits(logits).softmax(-1), logits.softmax(-1))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["tanh-normal", "gaussian", "categorical"])
def test_a_saved_team_is_the_same_to_the_bit(tmp_path: Path, kind: str) -> None:
    made = ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)], hidden=(5,), kind=kind)
    team = made.team(0, 0.5, squashed=kind == "tanh-normal", about={"seed": 3})
    seen = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    team.save(tmp_path)
    found = Team.load(tmp_path)
    assert isinstance(found, ControlledTeam)
    assert (found.agents, found.kind, found.squashed, found.about) == (3, kind, team.squashed, {"seed": 3})
    assert torch.equal(found.scale, team.scale)
    assert float(gs.snd(found.evaluate(seen))) == float(gs.snd(team.evaluate(seen)))
    agents = torch.tensor([[0, 2]] * 6)
    assert float(gs.snd(found.partial(seen, agents))) == float(gs.snd(team.partial(seen, agents)))
    assert found.bound(Wasserstein()) == team.bound(Wasserstein())


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_sampled_intervals_of_discrete_actions_hold_for_every_team(activation: str) -> None:
    draw = torch.Generator().manual_seed(0)
    policy = ControlledPolicy.create(9, 4, 5, generators=[draw], hidden=(8,), kind="categorical", activation=activation)
    team, seen = policy.team(0, 2.0), 30 * torch.randn(4000, 4, generator=draw)  # which saturates the tanh
    logits = team.evaluate(seen).actions.detach().double()  # type: ignore[attr-defined]
    largest = max(float((logits[:, i] - logits[:, j]).norm(dim=-1).max()) for i in range(9) for j in range(i))
    found = [gs.measure(team, seen[:500], design="agents:3", seed=seed) for seed in range(20)]
    if activation == "relu":
        assert team.bound(Wasserstein()) is None
        assert not any(one.guaranteed for one in found)
        assert all("asymptotic" in one.method for one in found)
        return
    assert largest <= team.bound(Wasserstein()) < 5 * largest  # type: ignore[operator]
    truth = float(gs.snd(team.evaluate(seen)).detach())
    assert all(one.guaranteed and one.interval[0] <= truth <= one.interval[1] for one in found)


def test_the_bound_on_logits_is_reached() -> None:
    """By two agents that want opposite actions, as surely as their last layer allows, whatever they share."""
    weight = torch.tensor([[3.0, -3.0]])
    layers = [torch.ones(2, 1, 1), torch.stack([weight, -weight])]
    deviations = StackedMLP(layers, [torch.zeros(2, 1, 1), torch.zeros(2, 1, 2)])
    shared = StackedMLP([torch.ones(1, 1, 1), 1e4 * torch.ones(1, 1, 2)], [torch.zeros(1, 1, 1), torch.ones(1, 1, 2)])
    team = ControlledTeam(shared, deviations, 0.5, kind="categorical")
    reached = float(gs.snd(team.evaluate(torch.tensor([[40.0]]))).detach())
    assert reached == pytest.approx(3 * 2**0.5, abs=1e-3)  # 0.5 x (6, -6), less what rounds off beside 10,000
    bound = team.bound(Wasserstein())
    assert bound is not None
    assert reached <= bound <= 1.1 * reached


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shared": (3,)}, "shared"),  # a network for each agent, none that all share
        ({"shared": (2, 1), "deviations": (2, 3)}, "deviations"),
        ({"scale": torch.ones(3)}, "scale"),
    ],
)
def test_networks_and_scales_of_other_agents_are_refused(
    changes: dict[str, Any], message: str, generator: torch.Generator
) -> None:
    given = {"shared": (1,), "deviations": (3,), "scale": 1.0, **changes}
    shared = StackedMLP.create(given["shared"], (4, 5, 4), generator=generator)
    deviations = StackedMLP.create(given["deviations"], (4, 5, 2), generator=generator)
    with pytest.raises(InputError, match=message):
        ControlledTeam(shared, deviations, given["scale"])


def test_a_file_without_a_scale_is_refused(tmp_path: Path) -> None:
    ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)]).team(0, 1.0).save(tmp_path)
    tensors = load_file(tmp_path / "team.safetensors")
    del tensors["scale"]
    metadata = {"team": (tmp_path / "team.json").read_text()}
    save_file(tensors, tmp_path / "team.safetensors", metadata=metadata)
    with pytest.raises(InputError, match=r"team\.safetensors, and tensors that fit it, got trouble with 'scale'"):
        Team.load(tmp_path)


@pytest.mark.parametrize("changes", [
    {"kind": "other"}, {"kind": 3}, {"squashed": "no"},
    {"shared": {}},
    {"shared": {"sizes": [4, 5, 3], "activation": "tanh"}}, {"deviations": {"sizes": [4, 5, 2], "activation": "other"}},
    {"deviations": 7}, {"agents": 4}, {"agents": "three"}, {"about": 1},
])  # fmt: skip
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    made = ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)], hidden=(5,))
    made.team(0, 1.0).save(tmp_path)
    text = json.dumps(json.loads((tmp_path / "team.json").read_text()) | changes)
    tensors = load_file(tmp_path / "team.safetensors")
    save_file(tensors, tmp_path / "team.safetensors", metadata={"team": text})
    with pytest.raises(InputError):
        Team.load(tmp_path)
