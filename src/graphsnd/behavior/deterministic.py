"""Deterministic behaviours: one action per agent and observation."""

from __future__ import annotations

import torch

from graphsnd.behavior.behavior import Behavior, check_layout, flatten
from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import check_finite


class Deterministic(Behavior):
    """Policies that put out one action, all on the same observations; also DiCo's distance between means.

    The 2-Wasserstein distance between point masses is the Euclidean distance between the actions.

    Args:
        actions: Shape ``[..., agents, actions]``.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> Deterministic(torch.zeros(8, 4, 3, 2))
        Deterministic(agents=3, observations=32)
    """

    def __init__(self, actions: torch.Tensor, *, validate: bool = True) -> None:
        actions = check_layout("actions", actions, "(..., agents, actions)")
        super().__init__(actions.shape)
        if validate:
            check_finite("actions", actions)
        self.actions = actions

    def wasserstein_points(self) -> Points:
        """The actions, under the Euclidean norm."""
        return Points(flatten(self.actions), Norm.EUCLIDEAN)
