from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd import InputError
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.worlds import Navigation, SimpleSpread
from tests.training import control_settings, control_task


@pytest.mark.parametrize("world", [Navigation(3, 4), SimpleSpread(3, 4)], ids=lambda w: w.name)
def test_stacked_runs_are_what_they_are_alone(world) -> None:  # type: ignore[no-untyped-def]
    settings = Settings(steps=10, environments=4, minibatch=16, hidden=(8, 8), epochs=2, diversity_every=1)
    both, *alone = (Trainer(world, settings, seeds=seeds) for seeds in ((4, 7), (4,), (7,)))
    for _ in range(3):
        rows = both.step()
        for run, single in enumerate(alone):
            (row,) = single.step()
            torch.testing.assert_close(both.policy.flat[run], single.policy.flat[0], rtol=1e-4, atol=1e-5)
            assert row.seed == rows[run].seed
            for name in ("reward", "entropy", "snd", "graph_snd"):
                assert getattr(rows[run], name) == pytest.approx(getattr(row, name), rel=1e-3, abs=1e-5), name
    assert not torch.equal(both.policy.flat[0], both.policy.flat[1])


def test_diversity_is_equation_1_on_pooled_observations() -> None:
    """All policies on all agents' observations, with the updated policies."""
    settings = Settings(steps=6, environments=4, hidden=(8,), diversity_observations=50, diversity_probability=0.5)
    trainer = Trainer(Navigation(5, 4), settings, seeds=(0, 1))
    (_, row) = trainer.step()
    pooled = trainer.buffer.observations[1].reshape(-1, 18)
    places = [k * 120 // 50 // 5 * 5 + k % 5 for k in range(50)]  # agents take turns
    with torch.no_grad():
        behavior = trainer.team(1).evaluate(pooled[places])
    assert row.snd == pytest.approx(float(gs.snd(behavior)), rel=1e-6)
    assert row.snd_observations == 50
    assert row.snd != pytest.approx(row.graph_snd, rel=1e-6)
    matrix = gs.pairwise(behavior)
    assert row.snd == pytest.approx(float(matrix[tuple(torch.triu_indices(5, 5, 1))].mean()), rel=1e-5)


def test_team_acts_like_the_actors() -> None:
    trainer = Trainer(SimpleSpread(3, 4), Settings(steps=4, environments=4, activation="relu"), seeds=(5, 6))
    trainer.step()
    observations = trainer.buffer.observations[1, 2]  # [environments, agents, features]
    inputs = trainer.policy.prepare(trainer.buffer.observations[:, 2].transpose(1, 2))
    logits = trainer.policy.distribution(inputs).logits  # type: ignore[attr-defined]
    answers = trainer.team(6).evaluate(observations).probs  # type: ignore[attr-defined]
    for agent in range(3):
        mine = torch.softmax(logits[1, agent], -1)
        torch.testing.assert_close(answers[:, agent, agent], mine, rtol=1e-4, atol=1e-5)


def test_a_team_that_is_not_there_is_named(line, tiny: Settings) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="not in"):
        Trainer(line, tiny, seeds=(0, 4)).team(3)
    small = control_settings(environments=2, steps=4, epochs=1, hidden=(8,))
    with pytest.raises(InputError, match="independent"):
        control_task(3, (0.1,), settings=small).make_trainer().team(0)


def test_row_counts_episodes_and_solved_agents(line, tiny: Settings) -> None:  # type: ignore[no-untyped-def]
    trainer = Trainer(line, tiny, seeds=(0, 1))
    rows = trainer.step()
    for run, row in enumerate(rows):
        done = trainer.buffer.done[run].clone()
        assert row.episodes == int(done.sum()) > 0
        done[-1] = True
        after = trainer.buffer.observations[run, ..., 0] + trainer.buffer.rewards[run]
        assert row.solved == pytest.approx(float((after > 0)[done].float().mean()))
        assert row.reward == pytest.approx(float(trainer.buffer.rewards[run].mean()), abs=1e-6)
