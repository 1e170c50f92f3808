"""Policies that can only be sampled, compared through their sorted samples along fixed directions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch

from graphsnd.arguments import checked
from graphsnd.behavior.behavior import Agents, Behavior, names_of, read_agents, widen
from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import InputError
from graphsnd.sums import add_last

DIRECTIONS = 32  # at least, where samples have several features
SPLITS = 4  # of the samples in halves; more take a tenth off the spread of the corrected square


@checked(own="samples")
class Samples(Behavior):
    r"""Independent samples of what each agent does, all agents on the same observations.

    For diffusion policies, simulators and language models, whose densities are unknown. Sorted samples of one feature
    are quantiles: the 2-Wasserstein distance of the empirical distributions is Euclidean on them. Samples of several
    features are compared along directions, see :class:`~graphsnd.Sliced`.

    Distances of finite samples are too large, also between agents that act alike. ``distance=Sliced(debias=True)`` and
    ``Energy(debias=True)`` correct the square, and :func:`~graphsnd.measure` reports what is left.

    Args:
        samples: Shape ``[..., agents, samples, features]``, or a dict of one array ``[..., samples, features]`` per
            agent. Samples of different agents must be independent: not made of the same noise.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> import torch, graphsnd as gs
        >>> round(float(gs.snd(gs.Samples(torch.tensor([[[[0.0], [2.0]], [[3.0], [1.0]]]])))), 3)
        1.0
    """

    def __init__(self, samples: Agents, *, validate: bool = True) -> None:
        layout = "(..., agents, samples, features)"
        self.samples = read_agents("samples", samples, layout, trailing=2, finite=validate)
        super().__init__(self.samples.shape[:-1], names_of(samples))

    def wasserstein_points(self) -> Points:
        """Sorted samples along directions, under the Euclidean norm."""
        return sliced_points(self, Slicing())

    def _split(self, size: int) -> Samples:
        """Return twice the agents with ``size`` random samples: agents ``i`` and ``n + i`` are parts of one agent."""
        keys = torch.rand(self.samples.shape[:-1], generator=torch.Generator().manual_seed(0))
        chosen = keys.argsort(-1)[..., : 2 * size].to(self.samples.device)
        parts = self.samples.take_along_dim(chosen.unsqueeze(-1), -2).split(size, -2)
        return Samples(torch.cat(parts, dim=-3), validate=False)


@dataclass(frozen=True)
class Slicing:
    """How samples are compared; the options of :class:`~graphsnd.Sliced` and :class:`~graphsnd.Energy`."""

    debias: bool = False
    pooled: bool = False
    directions: int | None = None
    seed: int = 0


def sliced_points(behavior: Samples, how: Slicing) -> Points:
    """Embed for :class:`~graphsnd.Sliced`."""
    values = _project(behavior, how)
    parts, count = values.unsqueeze(2), values.shape[-1]  # [observations, agents, 1, directions, samples]
    if how.debias:
        orders = torch.rand(SPLITS, count, generator=torch.Generator().manual_seed(how.seed)).argsort(-1)
        halves = orders[:, : count // 2 * 2].unflatten(-1, (2, -1)).to(values.device)
        parts = values[..., halves].movedim(-2, 2)  # [observations, agents, 2, directions, splits, samples / 2]
    parts = parts.sort(dim=-1).values.flatten(3)
    if how.pooled:
        parts = parts.permute(1, 2, 0, 3).flatten(2).unsqueeze(0)
    parts = parts * math.sqrt(behavior.samples.shape[-1] / parts.shape[-1])
    return Points(parts.flatten(2), Norm.CROSS if how.debias else Norm.EUCLIDEAN)


def energy_points(behavior: Samples, how: Slicing) -> Points:
    """Embed for :class:`~graphsnd.Energy`."""
    values = _project(behavior, how).sort(dim=-1).values
    count, features = behavior.samples.shape[-2:]
    if how.pooled:
        values = values.transpose(0, 1).flatten(1, 2).unsqueeze(0)
    wide = values.double() * (length_constant(features) / values.shape[2])
    own = torch.zeros_like(wide[..., 0, :1])
    if how.debias:
        # The mean distance of two samples of one agent, divided by count - 1: what the square is too large by.
        ranks = torch.arange(1 - count, count, 2, dtype=torch.float64, device=wide.device)
        own = add_last((wide * ranks).flatten(2)).unsqueeze(-1) * (2 / count**2 / (count - 1))
    return Points(torch.cat([wide.flatten(2), own], dim=-1), Norm.ENERGY, values.dtype, samples=count)


def length_constant(features: int) -> float:
    r"""Return the length of a vector over the mean of its absolute coordinate in a uniformly random direction.

    .. math:: c_F = \sqrt{\pi}\, \Gamma((F+1)/2) / \Gamma(F/2)

    Example:
        >>> [round(length_constant(f), 4) for f in (1, 2, 3)]
        [1.0, 1.5708, 2.0]
    """
    return math.sqrt(math.pi) * math.exp(math.lgamma((features + 1) / 2) - math.lgamma(features / 2))


def _project(behavior: Samples, how: Slicing) -> torch.Tensor:
    """Return samples along directions, ``[observations, agents, directions, samples]``."""
    count, features = behavior.samples.shape[-2:]
    if how.debias and count < 2:
        raise InputError("samples", "to be at least 2 of each agent for debias=True", count, "Draw more.")
    given = widen(behavior.samples.reshape(-1, behavior.agents, count, features))
    along = _directions(features, how.directions, how.seed).to(given)
    # Not a matrix product, whose rounding depends on the place of a row: identical agents are at distance 0.
    total = given[:, :, None, :, 0] * along[:, :1]
    for k in range(1, features):
        total = total + given[:, :, None, :, k] * along[:, k : k + 1]
    return total


@lru_cache
@torch.inference_mode(False)  # for calls with gradients too
def _directions(features: int, count: int | None, seed: int) -> torch.Tensor:
    """Return unit vectors ``[count, features]``, float64: random orthonormal frames, the last one perhaps in part.

    Whole frames measure translations exactly: the squares of their parts add up to the square of the length.
    """
    if features == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    count = count or features * math.ceil(DIRECTIONS / features)
    shape = (math.ceil(count / features), features, min(count, features))
    gaussian = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.linalg.qr(gaussian).Q.mT.flatten(0, 1)[:count]
