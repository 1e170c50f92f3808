"""A task whose best level is known, and rules that look for it: a fixed level, and AD2C's.

Rewards are in standard deviations between seeds of a study. Levels are 0 to 0.7, and the best one gains two over level
0. Noise of an iteration, its correlation of 0.4 with the next and a learning curve of many times the noise are those of
the logs in ``paper/results/control``; the team takes some iterations to make use of another level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphsnd.control import Seek

Array = NDArray[np.float64]
TOP, GAIN = 0.7, 2.0
SHAPE = np.array([-1, 0, 0.5, 1.2, 2.0, 1.2, 0.5, 0, -0.5, -1.5])
AT = np.array([-1, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.5])  # for a best level of 0.3


@dataclass
class Bandit:
    """Some runs of the task, each with its own best level between 0.1 and 0.6."""

    runs: int = 200
    iterations: int = 167
    noise: float = 0.5
    follow: float = 2.0  # iterations that a team takes to make use of a level
    curve: float = 6.0  # reward learnt in all, mostly in the first 50 iterations
    effect: bool = True
    seed: int = 0

    def play(self, rule: Any) -> tuple[Array, Array]:
        """Return how far each run ends from the best level, and the share of the gain that it lost meanwhile."""
        generator = np.random.default_rng(self.seed)
        best = generator.uniform(0.1, 0.6, self.runs)
        reached, noise, lost = self.expect(rule.level(), best), np.zeros(self.runs), np.zeros(self.runs)
        for iteration in range(self.iterations):
            reached = reached + (self.expect(rule.level(), best) - reached) / self.follow
            noise = 0.4 * noise + np.sqrt(1 - 0.4**2) * self.noise * generator.standard_normal(self.runs)
            lost += (GAIN - reached) / GAIN / self.iterations
            rule.observe(reached + noise - self.curve * np.exp(-iteration / 50))
        return np.abs(rule.best() - best), lost

    def expect(self, level: Array, best: Array) -> Array:
        """Return the expected reward of a level, after the learning curve."""
        return np.interp(level - best + 0.3, AT, SHAPE) if self.effect else np.zeros(self.runs)


class Seeking:
    """Seek from the lowest level on."""

    def __init__(self, runs: int, **options: Any) -> None:
        self.seek = Seek((1e-6, TOP), **options)
        self.state = self.seek.initial((runs,))

    def level(self) -> Array:
        return self.seek.level(self.state).numpy()

    def best(self) -> Array:
        return self.seek.report(self.state).best.numpy()

    def observe(self, reward: Array) -> None:
        self.state = self.seek.observe(torch.from_numpy(reward), self.state)


class Fixed:
    """The same level for ever."""

    def __init__(self, runs: int, level: float) -> None:
        self.held = np.full(runs, level)

    def level(self) -> Array:
        return self.held

    best = level

    def observe(self, reward: Array) -> None:
        pass


class Ad2c:
    """AD2C's rule: extremum seeking with a sine on the set point.

    As its code has it (esc_controller.py of Svar7769/AD2C-Diversity-Testing, read in November 2026): the reward passes
    a high-pass filter, is multiplied by the sine over half its amplitude, passes a low-pass filter, and is integrated
    into the set point, which is clipped. Of its settings the frequencies are kept (1, 0.05 and 0.5 rad per iteration);
    amplitude and gain are in units of its range, 0 to 3, and of its rewards, so here the amplitude is the same share
    of our range and the gain an argument. It sees every iteration, where AD2C sees every evaluation.
    """

    def __init__(self, runs: int, gain: float, start: float) -> None:
        self.gain, self.amplitude, self.phase = gain, 0.2 / 3 * TOP, 0.0
        self.high, self.low = 0.05 / 1.05, 0.5 / 1.5
        self.point, self.applied = np.full(runs, start), np.full(runs, start)
        self.before, self.passed, self.slope = np.zeros(runs), np.zeros(runs), np.zeros(runs)

    def level(self) -> Array:
        return np.maximum(self.applied, 0)

    def best(self) -> Array:
        return self.point

    def observe(self, reward: Array) -> None:
        self.passed = self.high * (self.passed + reward - self.before)
        self.before = reward
        slope = 2 / self.amplitude * self.passed * np.sin(self.phase)
        self.slope = self.slope + self.low * (slope - self.slope)
        self.point = np.clip(self.point + self.gain * self.slope, 0, TOP)
        self.applied = self.point + self.amplitude * np.sin(self.phase)
        self.phase += 1.0
