"""Positions of agents, as designs of neighbours read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from graphsnd.behavior.behavior import stack_agents
from graphsnd.errors import InputError, check_layout, check_tensor


def pool_positions(positions: Any, batch_shape: Sequence[int], names: Sequence[str] | None = None) -> Tensor | None:
    """Return positions ``[agents, d]`` or ``[observations, agents, d]``, pooled as the observations are.

    Args:
        positions: ``[..., agents, d]``, or a dict of ``[..., d]`` by agent; None for none.
        batch_shape: Shape of the observations before they were pooled.
        names: The agents in order.
    """
    if positions is None:
        return None
    places = check_tensor("positions", stack_agents("positions", positions, names), 2, "(..., agents, d)")
    if places.dim() == 2:
        return places
    check_layout("positions", places.shape[:-2], batch_shape)
    places = places.flatten(0, -3)
    if len(places) != math.prod(batch_shape):
        raise InputError("positions", f"at {math.prod(batch_shape)} observations", f"at {len(places)}")
    return places
