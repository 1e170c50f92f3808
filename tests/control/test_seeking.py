"""Seek against plain least squares, and on a task whose best level is known, beside AD2C's rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsnd import InputError
from graphsnd.control import DiCo, Seek
from graphsnd.control.seeking import PLACES, STRIDE, UNIT, SeekState
from tests.control.bandit import TOP, Ad2c, Bandit, Fixed, Seeking

RUNS = 200
PAGE = Path(__file__).parents[2] / "docs" / "levels.md"


def _play(seek: Seek, rewards: torch.Tensor) -> tuple[list[int], SeekState]:
    """Return the places that a controller holds, one for each reward, and its last state."""
    state, places = seek.initial(), []
    for reward in rewards:
        places.append(int(state.place))
        state = seek.observe(reward, state)
    return places, state


def test_the_fit_is_weighted_least_squares() -> None:
    generator = np.random.default_rng(0)
    seek = Seek((0.1, 0.8), settle=1, memory=20.0, explore=1.5)
    rewards = 100 + np.cumsum(generator.standard_normal(40)) + generator.standard_normal(40)
    places, state = _play(seek, torch.from_numpy(rewards))
    counted = [k for k in range(40) if k and places[k] == places[k - 1]]
    weights = 0.95 ** np.arange(len(counted))[::-1]
    t, z = (np.array(counted) - 40) / UNIT, 2 * np.array(places)[counted] / (PLACES - 1) - 1
    rows = np.stack([np.ones_like(t), t, t**2, z, z**2], 1)
    root = np.sqrt(weights)[:, None]
    own = rewards[counted] - np.average(rewards[counted], weights=weights)
    fitted, rest, *_ = np.linalg.lstsq(root * rows, root[:, 0] * own, rcond=None)
    grid = np.linspace(-1, 1, PLACES)
    every = np.stack([np.ones(PLACES), 0 * grid, 0 * grid, grid, grid**2], 1)
    variance = rest[0] / (weights.sum() - 5)
    error = np.sqrt(variance * np.einsum("gi,ij,gj->g", every, np.linalg.inv((root * rows).T @ (root * rows)), every))
    levels = 0.1 + 0.7 * np.arange(PLACES) / (PLACES - 1)
    report = seek.report(state)
    assert float(report.best) == pytest.approx(levels[(every @ fitted).argmax()])
    step = np.clip((every @ fitted + 1.5 * error).argmax() - int(state.place), -STRIDE, STRIDE)
    assert float(report.step) == pytest.approx(step * 0.05)
    assert float(report.level) == pytest.approx(levels[int(state.place)])


def test_it_moves_no_faster_than_the_estimate_settles() -> None:
    rewards = torch.randn(200, generator=torch.Generator().manual_seed(0))
    for settle in (0, 1, 3):
        places, _ = _play(Seek((0.1, 0.8), settle=settle), rewards)
        moves = np.flatnonzero(np.diff(places))
        assert len(moves) > 5
        assert np.diff(moves).min() == settle + 1  # iterations at a level, of which the last one counted
        assert np.abs(np.diff(places)).max() == STRIDE
        assert min(places) == 0
        assert max(places) >= PLACES - 2  # nearly the whole range is tried


def test_units_of_rewards_do_not_matter_and_bad_ones_do_not_count() -> None:
    rewards = torch.randn(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    places, state = _play(Seek((0.1, 0.8)), rewards)
    for unit, offset in ((1e-4, 0.0), (1e3, 1e5)):
        assert _play(Seek((0.1, 0.8)), unit * rewards + offset)[0] == places
    after = Seek((0.1, 0.8)).observe(torch.tensor(torch.nan), state)
    assert torch.equal(after.place, state.place)
    assert after.moments.isfinite().all()
    assert len(set(_play(Seek((0.1, 0.8)), torch.zeros(60))[0])) == 1  # rewards that never differ move nothing


def test_a_reward_is_a_number_or_one_for_each_run() -> None:
    seek = Seek((0.1, 0.5), settle=0)
    one, many = seek.initial(), seek.initial((2,))
    plain = seek.observe(0.3, one)
    assert torch.equal(plain.moments, seek.observe(torch.tensor(0.3, dtype=torch.float64), one).moments)
    learnt = torch.tensor([0.3, 0.3], dtype=torch.float64, requires_grad=True)
    assert torch.equal(seek.observe(learnt, many).moments[0], plain.moments)
    for state, said in ((one, r"shape \(\), the mean over .* got shape \(60,\)"), (many, r"with shape \(2,\)")):
        with pytest.raises(InputError, match=said):
            seek.observe(torch.rand(60), state)


def test_within_an_iteration_it_is_dico() -> None:
    seek, state = Seek((0.1, 0.8), tau=0.2, bounds=(0.5, 50.0)), Seek((0.1, 0.8)).initial()
    for reward in torch.randn(30, generator=torch.Generator().manual_seed(2)):
        dico = DiCo(float(seek.level(state)), tau=0.2, bounds=(0.5, 50.0))
        for measured in (0.3, 0.05):
            expected, held, said = dico.step(torch.tensor(measured), state)
            scale, state, status = seek.step(torch.tensor(measured), state)
            assert float(scale) == float(seek.scale(state)) == pytest.approx(float(expected), rel=1e-12)
            assert float(state.estimate) == pytest.approx(float(held.estimate), rel=1e-12)
            assert bool(status.saturated) == bool(said.saturated)
        state = seek.observe(reward, state)
    assert float(seek.level(state)) > 0.1


def test_stacked_runs_are_the_runs_alone() -> None:
    rewards = torch.randn(50, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    seek = Seek((0.1, 0.8))
    state = seek.initial((3,))
    for row in rewards:
        state = seek.observe(row, state)
    for run in range(3):
        alone = _play(seek, rewards[:, run])[1]
        assert int(alone.place) == int(state.place[run])
        torch.testing.assert_close(alone.moments, state.moments[run])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((0.1,),), "lowest and the highest"),
        ((0.1,), "lowest and the highest"),
        (((0.0, 0.5),), "above 0"),
        (((0.5, 0.5),), "above 0.5"),
    ],
)
def test_what_is_no_range_is_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Seek(*arguments)  # type: ignore[arg-type]
    for options in ({"settle": -1}, {"explore": -1.0}, {"memory": 1.0}, {"tau": 0.0}):
        with pytest.raises(InputError, match=next(iter(options))):
            Seek((0.1, 0.5), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("task", "most"),
    [({}, 0.08), ({"iterations": 500}, 0.08), ({"noise": 0.2, "curve": 8.0}, 0.25)],  # a curve of 40 times the noise
)
def test_without_an_effect_little_is_called_one(task: dict[str, float], most: float) -> None:
    called = []
    for effect in (False, True):
        seeking = Seeking(RUNS)
        Bandit(effect=effect, **task).play(seeking)  # type: ignore[arg-type]
        called.append(float(seeking.seek.report(seeking.state).clear.double().mean()))
    assert called[0] < most
    assert called[1] > 0.45


@pytest.mark.parametrize(
    ("row", "task"),
    [
        ("as in our logs", {}),
        ("a team that follows in 5 iterations, not 2", {"follow": 5.0}),
        ("twice the noise", {"noise": 1.0}),
        ("little noise, a steep learning curve", {"noise": 0.2, "curve": 8.0}),
        ("500 iterations", {"iterations": 500}),
    ],
)
def test_it_finds_the_best_level_and_ad2c_later_as_the_page_says(row: str, task: dict[str, float]) -> None:
    bandit = Bandit(**task)  # type: ignore[arg-type]

    def play(rule: Any) -> tuple[float, float]:
        distance, lost = bandit.play(rule)
        return float(distance.mean()), float(lost.mean())

    def play_ad2c(start: float) -> tuple[float, float]:
        # The gain that loses least is not known before.
        return min(
            (play(Ad2c(RUNS, gain, start)) for gain in (0.001, 0.003, 0.01, 0.03, 0.1)), key=lambda found: found[1]
        )

    seek, late, middle = play(Seeking(RUNS)), play_ad2c(0.0), play(Fixed(RUNS, TOP / 2))
    assert all(ours < other for rule in (late, middle) for ours, other in zip(seek, rule, strict=True))
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {row} |"))
    printed = [float(number) for number in re.findall(r"[\d.]+(?=,|%)", line.removeprefix(f"| {row} |"))]
    measured = [seek, late, play_ad2c(TOP / 2), middle]
    # Another processor may round a choice of levels the other way.
    assert printed[::2] == pytest.approx([distance for distance, _ in measured], abs=0.008)
    assert printed[1::2] == pytest.approx([100 * lost for _, lost in measured], abs=0.8)
