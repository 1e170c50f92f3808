"""Contacts and rays of all pairs on a GPU: the torch code of ``physics`` and ``lidar`` as one launch each."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from graphsnd.kernels.gpu.ahead import launch
from graphsnd.rl.worlds import pair_programs as programs

# Agents of a program, and agents that it compares them with at a time. Rays are expensive, and small blocks often have
# no pair in sight.
CHEAP, DEAR = (8, 64), (1, 32)


def contact(
    positions: Tensor, touching: float, margin: float, stiffness: float, coincident: float, *, tail: bool
) -> Tensor:
    """Return :func:`graphsnd.rl.worlds.physics.contact_dense`."""
    forces = torch.empty(positions.shape, device=positions.device)
    _launch(programs.contact, CHEAP, positions, (forces,), touching, margin, stiffness, coincident, TAIL=tail)
    return forces


def count_touches(positions: Tensor, radius: float, near: float) -> Tensor:
    """Return :func:`graphsnd.rl.worlds.physics.count_contacts` without its gate."""
    counts = torch.empty(positions.shape[:2], dtype=torch.int64, device=positions.device)
    _launch(programs.touches, CHEAP, positions, (counts,), radius, near)
    return counts


def cast_rays(
    positions: Tensor, directions: Tensor, reach: float, range: float, radius: float, squared: float
) -> Tensor:
    """Return ``Lidar.dense``, readings ``[E, N, rays]``."""
    rays = len(directions)
    readings = torch.empty(*positions.shape[:2], rays, device=positions.device)
    numbers = (reach, range / 2, range, radius, squared)
    tensors = (directions, readings)
    _launch(programs.rays, DEAR, positions, tensors, *numbers, RAYS=rays, WIDTH=triton.next_power_of_2(rays))
    return readings


def _launch(
    program: Any, size: tuple[int, int], positions: Tensor, tensors: tuple[Tensor, ...], *numbers: float, **more: int
) -> None:
    environments, agents = positions.shape[:2]
    blocks = triton.cdiv(agents, size[0])
    if environments:
        launch(
            program, (environments * blocks,), positions.contiguous(), *tensors, agents, blocks, *numbers, **more,
            BLOCK=size[0], OTHERS=size[1], num_warps=1, enable_fp_fusion=False,
        )  # fmt: skip
