"""Policies that can only be sampled, compared through their sorted samples along fixed directions."""

from __future__ import annotations

import math
from functools import lru_cache

import torch

from graphsnd.behavior.behavior import Behavior, PerAgent, read_agents
from graphsnd.behavior.distances import Distance, Sliced, Wasserstein
from graphsnd.behavior.points import Norm, Points, widen
from graphsnd.errors import InputError

DIRECTIONS = 32  # at least, where samples have several features


class Samples(Behavior):
    r"""Independent samples of what each agent does, all agents on the same observations.

    For diffusion policies, simulators and language models, whose densities are unknown. Sorted samples of one feature
    are quantiles: the 2-Wasserstein distance of the empirical distributions is Euclidean on them. Samples of several
    features are compared along directions, see :class:`~graphsnd.Sliced`.

    Distances of finite samples are too large, also between agents that act alike. ``distance=Sliced(debias=True)``
    corrects the square, and measures around 0 for agents that act alike.

    Args:
        samples: Shape ``[..., agents, samples, features]``, or a dict of one array ``[..., samples, features]`` per
            agent. Samples of different agents must be independent: not made of the same noise.
        validate: Check values (one host read on a GPU). Shapes are always checked.

    Example:
        >>> import torch, graphsnd as gs
        >>> round(float(gs.snd(gs.Samples(torch.tensor([[[[0.0], [2.0]], [[3.0], [1.0]]]])))), 3)
        1.0
    """

    distances = (Wasserstein, Sliced)

    def __init__(self, samples: PerAgent, *, validate: bool = True) -> None:
        layout = "(..., agents, samples, features)"
        self.samples = read_agents("samples", samples, layout, trailing=2, finite=validate)
        super().__init__(self.samples.shape[:-1], samples)

    def embed(self, distance: Distance) -> Points:
        """Return sorted samples along directions; to debias, those of two halves."""
        how = distance if isinstance(distance, Sliced) else Sliced()
        values = self._project(how)
        parts, count = values.unsqueeze(2), values.shape[-1]  # [observations, agents, 1, directions, samples]
        if how.debias:
            # One split: agents that act alike may swap their first halves, so their distance is as often below 0 as
            # above. The mean of several splits has a tenth less spread, but no such symmetry.
            order = torch.randperm(count, generator=torch.Generator().manual_seed(how.seed))
            halves = order[: count // 2 * 2].unflatten(0, (2, -1)).to(values.device)
            parts = values[..., halves].movedim(-2, 2)  # [observations, agents, 2, directions, samples / 2]
        parts = parts.sort(dim=-1).values.flatten(3)
        parts = parts * math.sqrt(self.samples.shape[-1] / parts.shape[-1])
        return Points(parts.flatten(2), Norm.CROSS if how.debias else Norm.EUCLIDEAN)

    def _project(self, how: Sliced) -> torch.Tensor:
        """Return samples along directions, ``[observations, agents, directions, samples]``."""
        count, features = self.samples.shape[-2:]
        if how.debias and count < 2:
            raise InputError("samples", "to be at least 2 of each agent for debias=True", count, "Draw more.")
        given = widen(self.samples.reshape(-1, self.agents, count, features))
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
