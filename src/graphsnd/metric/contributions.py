"""Whose diversity it is."""

from __future__ import annotations

import torch

from graphsnd.behavior import Behavior, Distance
from graphsnd.metric.pairwise import pairwise


def contributions(behavior: Behavior, distance: Distance | None = None, *, backend: str = "auto") -> torch.Tensor:
    """Each agent's mean distance to all others; their mean over agents is SND.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        distance: Distance object; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        ``[n]``, differentiable.

    Example:
        >>> import graphsnd as gs
        >>> gs.contributions(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor([4.5000, 3.0000, 4.5000])
    """
    matrix = pairwise(behavior, distance, backend=backend)
    return matrix.sum(dim=1) / (matrix.shape[0] - 1)
