"""Deterministic behaviours: one action per agent and observation."""

from __future__ import annotations

from graphsnd.arguments import checked
from graphsnd.behavior.behavior import Agents, Behavior, check_layout, flatten, names_of, stack_agents
from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import check_finite


@checked(own="loc scale covariance probs logits mask actions values parts weights distance names")
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
        names = names_of(actions)
        actions = check_layout("actions", stack_agents("actions", actions), "(..., agents, actions)")
        super().__init__(actions.shape, names)
        if validate:
            check_finite("actions", actions)
        self.actions = actions

    def wasserstein_points(self) -> Points:
        """The actions, under the Euclidean norm."""
        return Points(flatten(self.actions), Norm.EUCLIDEAN)
