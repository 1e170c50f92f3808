"""Motion and contact of discs in the plane, as VMAS 1.5.2 and the particle environments compute them.

The order of operations is that of the originals, because flags hang on comparisons of float32 distances.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.worlds.cells import apart

DT = 0.1  # seconds of a step
KEPT_SPEED = 0.75  # what drag leaves of a velocity, once for each step
STIFFNESS = 100.0
MARGIN = 1e-3  # over which contact softens
COINCIDENT = 1e-6  # discs closer than this have no direction to be pushed in


def length(delta: Tensor) -> Tensor:
    """Euclidean norm of ``[..., 2]``, component by component: a reduction over two numbers is many times slower."""
    return norm(*delta.unbind(-1))


def norm(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean norm from components."""
    return (x * x).add_(y * y).sqrt_()


def offsets(to: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """Components of every ``to`` minus every ``origin``, ``[E, A, 2]`` and ``[E, B, 2]``: two tensors ``[E, B, A]``.

    Apart they are contiguous, which pays for the copy of the small tensors many times.
    """
    x, y = (t.contiguous().unsqueeze(1) - o.unsqueeze(2) for t, o in zip(to.unbind(-1), origin.unbind(-1), strict=True))
    return x, y


def push(x: Tensor, y: Tensor, distance: Tensor, touching: float) -> tuple[Tensor, Tensor]:
    r"""Force of a soft contact on a disc.

    .. math:: f = 100 \, \frac{\delta}{|\delta|} \; k \log\bigl(1 + e^{(d_{\min} - |\delta|) / k}\bigr),
        \qquad k = 10^{-3}

    Args:
        x: First component of :math:`\delta`, this disc's centre minus the other's.
        y: Its second component.
        distance: The norm of it.
        touching: The distance of the centres at which the discs touch, :math:`d_{\min}`.

    Returns:
        The components of the force; 0 for coincident discs. The tail beyond contact is left to the caller: VMAS cuts
        it off.
    """
    depth = torch.logaddexp(torch.zeros_like(distance), (touching - distance) / MARGIN) * MARGIN
    guarded = torch.where(distance > 0, distance, 1e-8)
    nowhere = distance < COINCIDENT
    fx, fy = ((STIFFNESS * d / guarded).mul_(depth).masked_fill_(nowhere, 0.0) for d in (x, y))
    return fx, fy


def contact_dense(positions: Tensor, touching: float, *, tail: bool = False) -> Tensor:
    """Sum of contact forces on every agent, ``[E, N, 2]``, from all pairs; nothing is read back.

    Args:
        positions: ``[E, N, 2]``.
        touching: Distance of touching centres.
        tail: Whether discs that do not touch push too, very little, as in mpe2.
    """
    x, y = offsets(positions, positions)  # other minus self, so signs turn
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
    # One dimension, because scattering rows is done one by one.
    where = (torch.cat([high, low]) * 2).unsqueeze(1) + torch.arange(2)
    forces.view(-1).scatter_add_(0, where.view(-1), torch.cat([-force, force]).view(-1))
    return forces


def gaps(positions: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distance of the centres of agents ``a`` and ``b``, and the two components of a minus b, ``[P]`` each."""
    x, y = (apart(component.contiguous(), a, b) for component in positions.unbind(1))
    return norm(x, y), x, y


def clamp_to(positions: Tensor, half: tuple[float, float]) -> Tensor:
    """Stop at the walls. The velocity is not touched: an agent that leans on a wall keeps, and sees, its speed."""
    x, y = positions.unbind(-1)
    return torch.stack([x.clamp(-half[0], half[0]), y.clamp(-half[1], half[1])], -1)
