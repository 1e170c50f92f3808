from __future__ import annotations

import torch

from graphsnd.control.actions import CategoricalActions, NormalActions, TanhNormalActions
from graphsnd.rl.rollout import fill_noise, noise_shape, to_world
from graphsnd.rl.worlds.world import Continuous, Discrete


def test_categorical_frequencies(generator: torch.Generator) -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5])
    noise = torch.empty(200_000)
    fill_noise(noise, Discrete(4), generator)
    drawn = CategoricalActions(logits.expand(200_000, 4)).act(noise)
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    assert (shares - logits.softmax(0)).abs().max() < 4 * 0.5 / 200_000**0.5


def test_categorical_never_leaves_the_range() -> None:
    logits = torch.tensor([[30.0, -30.0, -30.0], [-30.0, -30.0, 30.0]])
    ends = torch.tensor([0.0, 1 - 2**-24])
    for u in ends:
        drawn = CategoricalActions(logits).act(u.expand(2))
        assert drawn.tolist() == [0, 2] or (u == 0 and drawn[0] == 0 and drawn[1] in (0, 2))


def test_gaussian_is_loc_plus_scaled_noise(generator: torch.Generator) -> None:
    loc, scale = torch.randn(5, 2, generator=generator), torch.rand(5, 2, generator=generator)
    noise = torch.empty(5, *noise_shape(Continuous(2)))
    fill_noise(noise, Continuous(2), generator)
    torch.testing.assert_close(NormalActions(loc, scale).act(noise), loc + scale * noise)
    torch.testing.assert_close(TanhNormalActions(loc, scale).act(noise), (loc + scale * noise).tanh())


def test_units_of_the_world() -> None:
    actions = torch.tensor([-1.0, 0.0, 1.0, 3.0])
    assert to_world(actions, Continuous(1)) is actions
    assert to_world(actions, Continuous(1, 0.0, 4.0)).tolist() == [0, 2, 4, 8]
    assert to_world(actions.long(), Discrete(5)).dtype == torch.long
