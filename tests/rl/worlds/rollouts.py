"""Observations along one rollout of a world, with resets."""

from __future__ import annotations

from typing import Any

import torch


def rollout(world: Any, actions: Any, seed: int, steps: int) -> torch.Tensor:
    state = world.spawn(seed)
    seen = [world.observe(state)]
    for k in range(steps):
        state, step = world.step(state, actions(k))
        seen += [step.observations]
        state = world.reset_done(state, step.terminated | step.truncated, seed + k)
    return torch.stack(seen)
