r"""Range finders: the distance from the centre of an agent at which its rays meet another agent.

For a ray from :math:`x_i` in direction u and a disc of radius r around :math:`x_j`, with w = x_j - x_i,

.. math:: \mathrm{value} = |w \cdot u| - \sqrt{r^2 - |w - (w \cdot u) u|^2}
    \quad\text{if } |w - (w \cdot u)u| < r \text{ and } w \cdot u > 0,

and the range otherwise. A reading is the minimum over all other agents. It may be negative for overlapping agents.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.rl.worlds.physics import gaps, has_programs

PAIRS = 2**18  # pairs at a time on the CPU, so that a crowd of agents cannot take all memory
ENTRIES = 2**25  # entries of one temporary tensor on a GPU without Triton
SLACK = 1e-4  # tolerance of the test without square roots, far above its rounding error


@dataclass(frozen=True, eq=False)
class Lidar:
    """Equally spaced rays that see discs of one radius."""

    directions: Tensor  # [rays, 2]
    range: float
    radius: float
    squared: float  # the square of the radius, rounded as float32 rounds it

    @classmethod
    def make(cls, rays: int, range: float, radius: float, device: torch.device) -> Lidar:
        """Return rays at angles 2 pi q / rays."""
        angles = torch.linspace(0, 2 * torch.pi, rays + 1)[:rays]
        squared = float(torch.tensor(radius).square())
        return cls(torch.stack([angles.cos(), angles.sin()], -1).to(device), range, radius, squared)

    @property
    def reach(self) -> float:
        """Distance beyond which another agent cannot be seen: rays end before they meet it."""
        return self.range + self.radius + SLACK

    def dense(self, positions: Tensor) -> Tensor:
        """Return readings ``[E, N, rays]`` from all pairs; nothing is read back from the device."""
        if has_programs(positions):
            from graphsnd.rl.worlds.pairs_gpu import cast_rays

            return cast_rays(positions, self.directions, self.reach, self.range, self.radius, self.squared)
        environments, agents = positions.shape[:2]
        rows = max(1, ENTRIES // max(1, environments * agents * len(self.directions)))
        itself = torch.eye(agents, dtype=torch.bool, device=positions.device)[..., None]
        others = positions[:, None, :, None]
        blocks = []
        # Blocks of observers bound the memory; their number follows from the shapes alone.
        for mine, same in zip(positions.split(rows, 1), itself.split(rows, 0), strict=True):
            values = self._cast(mine[:, :, None, None], others, self.directions)
            blocks.append(values.masked_fill_(same, self.range).amin(2))
        return torch.cat(blocks, 1)

    def sparse(self, positions: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return readings ``[M, rays]`` of the agents at ``positions`` ``[M, 2]``, from candidate pairs."""
        rays = len(self.directions)
        least = positions.new_full((len(positions) * rays,), self.range)
        for a, b in zip(low.split(PAIRS), high.split(PAIRS), strict=True):
            distance, x, y = gaps(positions, a, b)
            near = (distance < self.reach).nonzero()[:, 0]
            a, b, x, y = (value.index_select(0, near) for value in (a, b, x, y))
            ray, which = self._may_hit(torch.cat([-x, x]), torch.cat([-y, y]))
            observer, seen = torch.cat([a, b]).index_select(0, which), torch.cat([b, a]).index_select(0, which)
            origin, centre = positions.index_select(0, observer), positions.index_select(0, seen)
            values = self._cast(origin, centre, self.directions.index_select(0, ray))
            least.scatter_reduce_(0, observer * rays + ray, values, "amin")
        return least.view(-1, rays)

    def _may_hit(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rays and offsets that hit, and a few near misses, without square roots."""
        u, v = self.directions.T.contiguous().unsqueeze(-1)
        across = (v * x).sub_(u * y).abs_() < self.radius + SLACK
        hits = across.logical_and_((u * x).add_(v * y) > -SLACK).view(-1).nonzero()[:, 0]
        return torch.div(hits, len(x), rounding_mode="floor"), hits % len(x)

    def _cast(self, origin: Tensor, centre: Tensor, direction: Tensor) -> Tensor:
        """Return the distance at which rays meet discs; all arguments ``[..., 2]`` and broadcast.

        The foot of the perpendicular is computed in world coordinates from the middle of the ray, as VMAS does. A
        direct formula would be more accurate. But near a tangent the square root amplifies rounding to 1e-4 and turns a
        hit into a miss, so the rounding must be that of VMAS.
        """
        u, v = direction.unbind(-1)
        ox, oy = origin.unbind(-1)
        cx, cy = centre.unbind(-1)
        mx, my = ox + u * (self.range / 2), oy + v * (self.range / 2)
        back = ((mx - cx) * u).add_((my - cy) * v)
        fx, fy = mx - back * u, my - back * v
        ax, ay = cx - fx, cy - fy
        across = ax.square_().add_(ay.square_()).sqrt_()
        ahead = ((cx - ox) * u).add_((cy - oy) * v) > 0
        hit = (across < self.radius) & ahead
        room = self.squared - across.square_()
        half_chord = torch.where(room > 0, room, 1e-8).sqrt_()
        bx, by = fx.sub_(ox), fy.sub_(oy)
        reading = bx.square_().add_(by.square_()).sqrt_().sub_(half_chord)
        return torch.where(hit, reading, self.range)
