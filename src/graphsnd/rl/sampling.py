"""Noise that actions are made from, drawn before the rollout.

Noise for a whole rollout is one draw for each run. The loop over steps is then a function of tensors alone: it can be
captured, and the actions of a run do not depend on the runs beside it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.rl.worlds.world import Continuous, Discrete


def noise_shape(space: Continuous | Discrete) -> tuple[int, ...]:
    """Return the shape of the noise of one action: one number per dimension, a single one when actions are discrete."""
    return () if isinstance(space, Discrete) else (space.features,)


def fill_noise(noise: Tensor, space: Continuous | Discrete, generator: torch.Generator) -> None:
    """Draw in place: uniform where actions are discrete, normal elsewhere."""
    draw = noise.uniform_ if isinstance(space, Discrete) else noise.normal_
    draw(generator=generator)


def to_world(actions: Tensor, space: Continuous | Discrete) -> Tensor:
    """Return actions of a policy, within [-1, 1], in the units of the world."""
    if isinstance(space, Discrete) or (space.low, space.high) == (-1.0, 1.0):
        return actions
    return actions * ((space.high - space.low) / 2) + (space.high + space.low) / 2
