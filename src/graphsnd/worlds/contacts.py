"""Which agents are close enough to matter, and how many touch each of them.

Two ways to the same numbers. A GPU looks at all pairs, because a list of pairs has a length that it would have to wait
for. A CPU looks for close pairs once a step and uses them as long as nobody has moved too far.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.worlds.cells import near_pairs
from graphsnd.worlds.physics import gaps, length, norm, offsets

NEAR_MISS = 0.005  # a gap that still counts as a collision


@dataclass(frozen=True, eq=False)
class Near:
    """Pairs that may matter as long as nobody moves further than half of ``skin`` from where they were found."""

    positions: Tensor  # [E, N, 2], where they were found
    sight: float  # distance at which agents matter to each other
    radius: float  # of the agents
    skin: float  # how much further was looked
    low: Tensor  # int64 [P], into the flattened E * N agents
    high: Tensor  # int64 [P]
    contact: tuple[Tensor, Tensor]  # the few of them that may touch

    @classmethod
    def find(cls, positions: Tensor, sight: float, radius: float, skin: float = 0.0) -> Near:
        """Look for the pairs of all environments.

        Args:
            positions: ``[E, N, 2]`` on the CPU.
            sight: Distance at which agents matter to each other; touching always does.
            radius: Of the agents.
            skin: How much further to look.
        """
        environments, agents = positions.shape[:2]
        touch = 2 * radius + 2 * NEAR_MISS
        flat, group = positions.reshape(-1, 2), torch.arange(environments).repeat_interleave(agents)
        low, high = near_pairs(flat, group, max(sight, touch) + skin)
        close = gaps(flat, low, high)[0] <= touch + skin
        contact = low.masked_select(close), high.masked_select(close)
        return cls(positions, sight, radius, skin, low, high, contact)

    def at(self, positions: Tensor) -> Near:
        """These pairs if nobody moved so far that another one may count, else found again."""
        if positions is self.positions:
            return self
        moved = 2 * float(length(positions - self.positions).max())
        return self if moved <= self.skin else Near.find(positions, self.sight, self.radius, self.skin)


def touched_dense(positions: Tensor, radius: float, *, gated: bool) -> Tensor:
    """How many others are in contact with each agent, ``[E, N]``, from all pairs.

    Args:
        positions: ``[E, N, 2]``.
        radius: Of the agents.
        gated: Whether a near miss counts only if the same two overlap in some environment.
    """
    distance = norm(*offsets(positions, positions))
    touched = distance - radius - radius <= NEAR_MISS
    if gated:
        touched = touched & (distance <= 2 * radius).any(0)
    itself = torch.eye(positions.shape[1], dtype=torch.bool, device=positions.device)
    return (touched & ~itself).sum(-1)


def touched_sparse(positions: Tensor, near: Near, *, gated: bool) -> Tensor:
    """The same from pairs that may touch."""
    environments, agents = positions.shape[:2]
    low, high = near.contact
    distance = gaps(positions.reshape(-1, 2), low, high)[0]
    touched = distance - near.radius - near.radius <= NEAR_MISS
    if gated:
        pair = low % agents * agents + high % agents
        overlap = torch.zeros(agents**2, dtype=torch.bool)
        overlap[pair[distance <= 2 * near.radius]] = True
        touched &= overlap[pair]
    both = torch.cat([low[touched], high[touched]])
    return torch.bincount(both, minlength=environments * agents).view(environments, agents)
