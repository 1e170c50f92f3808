from __future__ import annotations

import pytest
import torch

from graphsnd.training import Settings, Trainer
from graphsnd.training.columns import columns
from graphsnd.training.rollout import collect
from graphsnd.worlds import Navigation, SimpleSpread


def _roll(trainer: Trainer, *, wait: bool = True) -> None:
    trainer._draw()
    restart = trainer.settings.restart
    collect(trainer.world, trainer.policies, trainer.episodes, trainer.memory, restart=restart, wait=wait)


@pytest.mark.parametrize("kind", [Navigation, SimpleSpread])
def test_stored_probabilities_are_of_the_stored_actions(kind) -> None:  # type: ignore[no-untyped-def]
    """The reference stored clipped actions with the probability of the others: its first ratio was not 1."""
    trainer = Trainer(kind(3, 4), Settings(steps=6, environments=4, log_std=1.0, actor_gain=1.0), seeds=(0, 1))
    _roll(trainer)
    memory = trainer.memory
    if kind is Navigation:
        assert memory.actions.abs().max() > 1.5  # beyond what the world accepts
    inputs = columns(memory.observations.flatten(1, 2))
    actions = memory.actions.flatten(1, 2).transpose(1, 2).flatten(0, 1)
    again = trainer.policies.whole.distribution(inputs).log_prob(actions)
    stored = memory.log_probs.flatten(1, 2).mT.flatten(0, 1)
    torch.testing.assert_close(again, stored, atol=2e-5, rtol=1e-5)


def test_memory_tells_what_the_world_did(line, tiny: Settings) -> None:  # type: ignore[no-untyped-def]
    trainer = Trainer(line, tiny.replace(restart=False), seeds=(3, 4))
    _roll(trainer)
    m = trainer.memory
    places, step = m.observations[..., 0], m.observations[..., 1]
    moved = 0.3 * (2 * m.actions[..., 0]).clamp(-2, 2)  # the world's range is [-2, 2]
    torch.testing.assert_close(m.rewards, moved)
    after = places + moved
    torch.testing.assert_close(m.terminated, after[..., 0] > 1)
    counted = (step[..., 0] * 10).round().long() + 1
    torch.testing.assert_close(m.done, m.terminated | (counted >= 7))
    going_on = ~m.done[:, :-1]
    torch.testing.assert_close(places[:, 1:][going_on], after[:, :-1][going_on])
    assert bool((step[:, 1:][m.done[:, :-1]] == 0).all())
    # Values before a reset are those of what was seen last, not of the new episode.
    last = torch.stack([after, counted.unsqueeze(-1).expand_as(after).float() / 10], -1)
    values = trainer.policies.whole.values(columns(last.flatten(1, 2)))
    values = values.unflatten(0, (2, 2)).transpose(1, 2).unflatten(1, (12, 3))
    assert bool(m.done.any())
    torch.testing.assert_close(m.final_values[m.done], values[m.done])


def test_looking_or_not_makes_no_difference(line, tiny: Settings) -> None:  # type: ignore[no-untyped-def]
    """A captured rollout may not look whether an episode ended; it must come out the same."""
    looked, blind = (Trainer(line, tiny, seeds=(3, 4)) for _ in range(2))
    for _ in range(3):
        _roll(looked)
        _roll(blind, wait=False)
        for name in ("observations", "actions", "rewards", "values", "done", "solved"):
            assert torch.equal(getattr(looked.memory, name), getattr(blind.memory, name)), name
        for one, two in zip(looked.episodes.tensors().values(), blind.episodes.tensors().values(), strict=True):
            assert torch.equal(one, two)


def test_episodes_run_on_without_restart(line, tiny: Settings) -> None:  # type: ignore[no-untyped-def]
    trainer = Trainer(line, tiny.replace(restart=False, steps=3), seeds=(0,))
    _roll(trainer)
    _roll(trainer)
    assert trainer.memory.observations[0, 0, 0, 0, 1] == pytest.approx(0.3)
    fresh = Trainer(line, tiny.replace(steps=3), seeds=(0,))
    _roll(fresh)
    _roll(fresh)
    assert fresh.memory.observations[0, 0, 0, 0, 1] == 0
