"""The distance between what agents do, each on its own observation: not SND, and kept apart from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance, default_distance, from_distribution
from graphsnd.behavior.distributions import Distributions
from graphsnd.errors import plural
from graphsnd.metric.pair_distances import pairwise
from graphsnd.sums import total


@dataclass(frozen=True, eq=False)
class OwnObservations:
    """Distances between outputs that agents gave on their own observations.

    No controller, estimator, metric or adapter takes it: agents that share one policy are apart here wherever they
    observe different things.

    Example:
        >>> import torch, graphsnd as gs
        >>> apart = gs.own_observations(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> float(apart), apart.distances[0].tolist()
        (4.0, [0.0, 3.0, 6.0])
    """

    mean: float  # over all pairs and observations
    distances: torch.Tensor  # [n, n], means over observations
    observations: int  # of each agent
    distance: str  # its name
    names: tuple[str, ...]  # of the agents in order

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        pairs, seen = math.comb(len(self.distances), 2), self.observations
        of = f"{pairs} {plural('pair', pairs)}, {seen} {plural('observation', seen)} of each agent"
        return f"Mean distance on own observations {self.mean:.6g} ({of}; this is not SND)"


@checked
def own_observations(
    outputs: Behavior | Distributions, distance: Distance | None = None, *, squashed: bool = True
) -> OwnObservations:
    """Return the mean distance between agents' outputs, each on its agent's own observation.

    That is what a rollout holds, and it mixes two things: that agents are different, and that they see different
    things. A team with shared parameters has SND 0 and a mean distance above 0. For SND, show all policies the same
    observations: :func:`graphsnd.evaluate`.

    Args:
        outputs: A behaviour or what :func:`~graphsnd.from_distribution` takes, ``[..., agents, actions]``; entry i is
            agent i's output on its own observation.
        distance: Distance object; the family's default when None.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        The mean and the distances of all pairs.

    Raises:
        InputError: As :func:`graphsnd.pairwise`.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.own_observations(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        Mean distance on own observations 4 (3 pairs, 1 observation of each agent; this is not SND)
    """
    if not isinstance(outputs, Behavior):
        outputs = from_distribution(outputs, squashed=squashed)
    matrix = pairwise(outputs, distance).detach()
    n = len(matrix)
    mean = float(total(matrix.double())) / (n * (n - 1))
    name = (distance or default_distance(outputs)).name
    return OwnObservations(mean, matrix, outputs.observations, name, outputs.names)
