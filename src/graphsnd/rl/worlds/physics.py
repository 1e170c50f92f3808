"""Motion and contact of discs in the plane, as VMAS 1.5.2 and the particle environments compute them.

The order of operations is that of the originals, because flags depend on comparisons of float32 distances. Contacts are
computed in two ways that agree. A GPU computes all pairs, because the host would have to wait for the length of a list
of pairs; with Triton no tensor of pairs is stored. A CPU searches for close pairs (:class:`Near`) once per step and
uses them until an agent has moved too far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from graphsnd.kernels.dispatch import available

DT = 0.1  # seconds per step
KEPT_SPEED = 0.75  # factor of drag on the velocity, once per step
STIFFNESS = 100.0
MARGIN = 1e-3  # distance over which contact softens
NEAR_MISS = 0.005  # a gap that still counts as a collision
CELLS = 2**20  # points further out than this many cells share the outermost one: slow, but correct
WIDER = 1 + 1e-6  # widens the search, so that rounding loses no pair; callers test distances themselves
COINCIDENT = 1e-6  # discs closer than this have no direction to be pushed in


def length(delta: Tensor) -> Tensor:
    """Return the Euclidean norm of ``[..., 2]``, by component: a reduction over two numbers is many times slower."""
    return norm(*delta.unbind(-1))


def norm(x: Tensor, y: Tensor) -> Tensor:
    """Return the Euclidean norm from components."""
    return (x * x).add_(y * y).sqrt_()


def offsets(to: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """Return the components of every ``to`` ``[E, A, 2]`` minus every ``origin`` ``[E, B, 2]``: two ``[E, B, A]``.

    Separate components are contiguous, which saves far more time than the copy of the small tensors costs.
    """
    x, y = (t.contiguous().unsqueeze(1) - o.unsqueeze(2) for t, o in zip(to.unbind(-1), origin.unbind(-1), strict=True))
    return x, y


def has_programs(positions: Tensor) -> bool:
    """Return whether the Triton programs of ``pairs_gpu`` can run on these positions."""
    return positions.is_cuda and positions.dtype == torch.float32 and available()["gpu"] is None


def push(x: Tensor, y: Tensor, distance: Tensor, touching: float) -> tuple[Tensor, Tensor]:
    r"""Return the force of a soft contact on a disc.

    .. math:: f = 100 \, \frac{\delta}{|\delta|} \; k \log\bigl(1 + e^{(d_{\min} - |\delta|) / k}\bigr),
        \qquad k = 10^{-3}

    Args:
        x: First component of :math:`\delta`, this disc's centre minus the other's.
        y: Second component of :math:`\delta`.
        distance: Norm of :math:`\delta`.
        touching: Distance between the centres of discs that touch, :math:`d_{\min}`.

    Returns:
        The components of the force; 0 for coincident discs. The small force beyond contact is included; VMAS sets it to
        0, which is left to the caller.
    """
    depth = torch.logaddexp(torch.zeros_like(distance), (touching - distance) / MARGIN) * MARGIN
    guarded = torch.where(distance > 0, distance, 1e-8)
    nowhere = distance < COINCIDENT
    fx, fy = ((STIFFNESS * d / guarded).mul_(depth).masked_fill_(nowhere, 0.0) for d in (x, y))
    return fx, fy


def contact_dense(positions: Tensor, touching: float, *, tail: bool = False) -> Tensor:
    """Return the sum of contact forces on every agent, ``[E, N, 2]``, from all pairs; nothing is read back.

    Args:
        positions: ``[E, N, 2]``.
        touching: Distance of touching centres.
        tail: Whether discs push very slightly without touching, as in mpe2.
    """
    if has_programs(positions):
        from graphsnd.rl.worlds import pairs_gpu

        return pairs_gpu.contact(positions, touching, MARGIN, STIFFNESS, COINCIDENT, tail=tail)
    x, y = offsets(positions, positions)  # other minus self, so signs are reversed
    distance = norm(x, y)
    forces = push(x, y, distance, touching)
    if not tail:
        beyond = distance > touching
        forces = forces[0].masked_fill_(beyond, 0.0), forces[1].masked_fill_(beyond, 0.0)
    return -torch.stack([forces[0].sum(2), forces[1].sum(2)], -1)


def add_contact(forces: Tensor, positions: Tensor, low: Tensor, high: Tensor, touching: float) -> Tensor:
    """Add contact forces of the candidate pairs to ``forces``.

    Args:
        forces: ``[M, 2]``, changed and returned.
        positions: ``[M, 2]``.
        low: int64 ``[P]``, an agent of each pair.
        high: int64 ``[P]``, the other one.
        touching: Distance of touching centres.
    """
    distance, x, y = gaps(positions, low, high)
    near = (distance <= touching).nonzero()[:, 0]
    low, high, distance = low.index_select(0, near), high.index_select(0, near), distance.index_select(0, near)
    force = torch.stack(push(x.index_select(0, near), y.index_select(0, near), distance, touching), -1)
    # In one dimension, because torch scatters rows one by one.
    where = (torch.cat([high, low]) * 2).unsqueeze(1) + torch.arange(2)
    forces.view(-1).scatter_add_(0, where.view(-1), torch.cat([-force, force]).view(-1))
    return forces


def gaps(positions: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distances of the centres of agents ``a`` and ``b``, and the components of a minus b, ``[P]`` each."""
    x, y = (subtract_rows(component.contiguous(), a, b) for component in positions.unbind(1))
    return norm(x, y), x, y


def clamp_to(positions: Tensor, half: tuple[float, float]) -> Tensor:
    """Clamp positions to the walls. Velocities stay: an agent at a wall keeps its speed and observes it."""
    x, y = positions.unbind(-1)
    return torch.stack([x.clamp(-half[0], half[0]), y.clamp(-half[1], half[1])], -1)


@dataclass(frozen=True, eq=False)
class Near:
    """Pairs that may matter as long as no agent moves further than half of ``skin`` from ``positions``."""

    positions: Tensor  # [E, N, 2], at the time of the search
    sight: float  # distance at which agents matter to each other
    radius: float  # radius of the agents
    skin: float  # extra distance of the search
    low: Tensor  # int64 [P], into the flattened E * N agents
    high: Tensor  # int64 [P]
    contact: tuple[Tensor, Tensor]  # the few pairs that may touch

    @classmethod
    def find(cls, positions: Tensor, sight: float, radius: float, skin: float = 0.0) -> Near:
        """Search for the pairs of all environments.

        Args:
            positions: ``[E, N, 2]`` on the CPU.
            sight: Distance within which agents matter to each other; pairs that may touch are always found.
            radius: Radius of the agents.
            skin: Extra distance of the search.
        """
        environments, agents = positions.shape[:2]
        touch = 2 * radius + 2 * NEAR_MISS
        flat, group = positions.reshape(-1, 2), torch.arange(environments).repeat_interleave(agents)
        low, high = near_pairs(flat, group, max(sight, touch) + skin)
        close = gaps(flat, low, high)[0] <= touch + skin
        contact = low.masked_select(close), high.masked_select(close)
        return cls(positions, sight, radius, skin, low, high, contact)

    def update(self, positions: Tensor) -> Near:
        """Return these pairs, or search again if an agent moved so far that another pair may count."""
        if positions is self.positions:
            return self
        moved = 2 * float(length(positions - self.positions).max())
        return self if moved <= self.skin else Near.find(positions, self.sight, self.radius, self.skin)


def count_contacts(positions: Tensor, radius: float, near: Near | None, *, gated: bool) -> Tensor:
    """Return the number of other agents in contact with each agent, ``[E, N]``.

    Args:
        positions: ``[E, N, 2]``.
        radius: Radius of the agents.
        near: Pairs that may touch; None for all pairs.
        gated: Whether a near miss counts only if the same two overlap in some environment.
    """
    environments, agents = positions.shape[:2]
    if near is None and not gated and has_programs(positions):
        from graphsnd.rl.worlds import pairs_gpu

        return pairs_gpu.count_touches(positions, radius, NEAR_MISS)
    if near is None:
        distance = norm(*offsets(positions, positions))
        touched = distance - radius - radius <= NEAR_MISS
        if gated:
            touched = touched & (distance <= 2 * radius).any(0)
        itself = torch.eye(agents, dtype=torch.bool, device=positions.device)
        return (touched & ~itself).sum(-1)
    low, high = near.contact
    distance = gaps(positions.reshape(-1, 2), low, high)[0]
    touched = distance - radius - radius <= NEAR_MISS
    if gated:
        pair = low % agents * agents + high % agents
        overlap = torch.zeros(agents**2, dtype=torch.bool)
        overlap[pair[distance <= 2 * radius]] = True
        touched &= overlap[pair]
    both = torch.cat([low[touched], high[touched]])
    return torch.bincount(both, minlength=environments * agents).view(environments, agents)


def near_pairs(points: Tensor, group: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Return all pairs of points of the same group at distance at most ``reach``.

    Points are sorted by square cells of side ``reach``, row by row, so that the partners of a point lie in two runs of
    the sorted list: the rest of its own row of cells, and three cells of the next row. Time and memory are proportional
    to the number of points and of pairs in neighbouring cells.

    Args:
        points: ``[M, 2]`` on the CPU; the number of pairs depends on the data, so a GPU would have to wait for it.
        group: int64 ``[M]``, from 0; usually the environment.
        reach: A distance above 0.

    Returns:
        Two int64 tensors of indices, the lower one of each pair first. Pairs further apart than ``reach`` by less than
        a millionth of it may be included.

    Example:
        >>> low, high = near_pairs(torch.tensor([[0.0, 0.0], [0.3, 0.0], [2.0, 0.0]]), torch.zeros(3).long(), 0.5)
        >>> low.tolist(), high.tolist()
        ([0], [1])
    """
    if len(points) < 2:
        return group[:0], group[:0]
    # A NaN or an agent far away has a cell too: a broken team must not hide pairs or exhaust the memory.
    cell = (points.double() / (reach * WIDER)).floor_().nan_to_num_(0.0).clamp_(-CELLS, CELLS).long()
    cell -= cell.amin(0)
    columns, rows = (cell.amax(0) + 3).tolist()
    keys, order = ((group * rows + cell[:, 1]) * columns + cell[:, 0] + 1).sort(stable=True)
    here = torch.arange(len(keys))
    start_of = _index_starts(keys, (int(group.max()) + 1) * rows * columns)
    begin = torch.cat([here + 1, start_of(keys + (columns - 1))])
    end = torch.cat([start_of(keys + 2), start_of(keys + (columns + 2))])
    first, second = _expand_runs(here.repeat(2), begin, end)
    a, b = order.index_select(0, first), order.index_select(0, second)
    x, y = points.unbind(1)
    dx, dy = subtract_rows(x.contiguous(), a, b), subtract_rows(y.contiguous(), a, b)
    close = dx.square_() + dy.square_() <= (reach * WIDER) ** 2
    a, b = a.masked_select(close), b.masked_select(close)
    return torch.minimum(a, b), torch.maximum(a, b)


def subtract_rows(values: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return ``values[a] - values[b]``; selecting from one dimension is several times faster than indexing rows."""
    return values.index_select(0, a) - values.index_select(0, b)


def _index_starts(keys: Tensor, size: int) -> Callable[[Tensor], Tensor]:
    """Return a function from a key to its first place in the sorted ``keys``: a table if it is small, else a search."""
    if size > 16 * len(keys) + 4096:
        return partial(torch.searchsorted, keys)
    table = torch.zeros(size + 1, dtype=torch.long)
    torch.cumsum(torch.bincount(keys, minlength=size), 0, out=table[1:])
    return partial(torch.index_select, table, 0)


def _expand_runs(owner: Tensor, begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers ``begin .. end-1`` of all owners in a row, the owner of each number first."""
    counts = end - begin
    before = counts.cumsum(0) - counts
    which = torch.repeat_interleave(counts)
    return owner.index_select(0, which), torch.arange(len(which)) + (begin - before).index_select(0, which)
