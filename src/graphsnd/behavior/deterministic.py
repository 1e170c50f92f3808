"""Deterministic behaviours: one action per agent and observation."""

from __future__ import annotations

from graphsnd.behavior.behavior import Agents, Behavior, names_of, read_agents
from graphsnd.behavior.distances import Distance
from graphsnd.behavior.points import Norm, Points, flatten


class Deterministic(Behavior):
    """Policies that put out one action, all on the same observations; also DiCo's distance between means.

    The 2-Wasserstein distance between point masses is the Euclidean distance between the actions.

    Args:
        actions: Shape ``[..., agents, actions]``, or a dict of one array ``[..., actions]`` per agent.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> import torch
        >>> Deterministic(torch.zeros(8, 4, 3, 2))
        Deterministic(agents=3, observations=32)
        >>> Deterministic({"scout": torch.zeros(8, 2), "guard": torch.ones(8, 2)}).names
        ('scout', 'guard')
    """

    def __init__(self, actions: Agents, *, validate: bool = True) -> None:
        self.actions = read_agents("actions", actions, "(..., agents, actions)", finite=validate)
        super().__init__(self.actions.shape, names_of(actions))

    def embed(self, distance: Distance) -> Points:
        """Return the actions, under the Euclidean norm."""
        return Points(flatten(self.actions), Norm.EUCLIDEAN)
