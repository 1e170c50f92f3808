from __future__ import annotations

import dataclasses

import torch

from graphsnd.rl.episodes import Bank
from graphsnd.rl.streams import Streams

CPU = torch.device("cpu")


def _streams(*seeds: int) -> list[Streams]:
    return [Streams.make(seed, CPU) for seed in seeds]


def test_only_finished_environments_begin_anew(line) -> None:  # type: ignore[no-untyped-def]
    bank = Bank(line, 4, 16, _streams(0, 1))
    state, seen = bank.restart()
    done = torch.tensor([False, True, False, True, False, False, True, False])
    after, looked = bank.replace(state, seen, done)
    same = (after.places == state.places).all(1)
    assert torch.equal(same, ~done)
    torch.testing.assert_close(looked, line.observe(after))
    assert len({tuple(row) for row in after.places.tolist()}) == 8


def test_fresh_states_are_used_once_and_replaced(line) -> None:  # type: ignore[no-untyped-def]
    bank = Bank(line, 2, 16, _streams(0, 1))
    assert bank.size == 4
    used = set()
    generator = torch.Generator().manual_seed(0)
    state, seen = bank.state, bank.observations
    for _ in range(12):
        bank.refill()
        done = torch.rand(4, generator=generator) < 0.5
        state, seen = bank.replace(state, seen, done)
        for row in state.places[done].tolist():
            assert tuple(row) not in used
            used.add(tuple(row))
    assert len(used) > 15


def test_a_run_gets_the_same_episodes_alone(line) -> None:  # type: ignore[no-untyped-def]
    both, alone = Bank(line, 2, 16, _streams(5, 6)), Bank(line, 2, 16, _streams(6))
    generator = torch.Generator().manual_seed(0)
    for _ in range(6):
        done = torch.rand(4, generator=generator) < 0.6
        (s, o), (s1, o1) = (
            both.replace(both.state, both.observations, done),
            alone.replace(alone.state, alone.observations, done[2:]),
        )
        both.keep(s, o)
        alone.keep(s1, o1)
        both.refill()
        alone.refill()
        for part in dataclasses.fields(both.state):
            assert torch.equal(getattr(both.state, part.name)[2:], getattr(alone.state, part.name))
