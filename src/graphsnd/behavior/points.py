"""Points and norms: the one shape every distance of the metric is reduced to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import torch

COPIED = 1 << 20  # numbers in a copy of double precision


class Norm(Enum):
    """Norm of the difference of two rows of features.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd.behavior.behavior import embed
        >>> embed(gs.Deterministic(torch.zeros(8, 5, 2))).norm
        <Norm.EUCLIDEAN: 'euclidean'>
    """

    EUCLIDEAN = "euclidean"  # sqrt(sum (x - y)^2)
    HALF_L1 = "half-l1"  # sum |x - y| / 2
    SQRT_JS = "sqrt-js"  # sqrt of the Jensen-Shannon divergence of two probability vectors, in nats
    CROSS = "cross"  # signed root of <x1 - y1, x2 - y2>, where x1 and x2 are the halves of x
    BURES = "bures"  # 2-Wasserstein between Gaussians given as [loc, flattened square root of the covariance]
    JOINT = "joint"  # the weighted sum over blocks of features, each under a norm of its own


@dataclass(frozen=True)
class Block:
    """Consecutive features of joint points."""

    norm: Norm
    features: int
    weight: float


class Points:
    """A team embedded for one distance, not to be changed.

    Kernels see nothing else: not the action space, not the policies, not the name of the distance.

    Args:
        values: ``[observations, agents, features]``, all leading dimensions of the behaviour pooled; or several such
            tensors, whose features are side by side in the points. They are copied only where ``values`` is asked for:
            GPU kernels for totals read them where they are, and a copy would double the memory of a large team.
        norm: Norm of the difference of two rows of features.
        dtype: Precision of the results, where the points are kept more precisely than the input; sums behind them are
            float64.
        blocks: Blocks of the joint norm.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Gaussian(torch.zeros(50, 8, 4, 2), torch.ones(2)))
        >>> points.values.shape, points.norm.value  # loc and scale of both actions
        (torch.Size([400, 4, 4]), 'euclidean')
    """

    def __init__(
        self,
        values: torch.Tensor | tuple[torch.Tensor, ...],
        norm: Norm,
        dtype: torch.dtype | None = None,
        blocks: tuple[Block, ...] = (),
    ) -> None:
        self.parts = values if isinstance(values, tuple) else (values,)
        self.norm, self.dtype, self.blocks = norm, dtype, blocks
        self.observations, self.agents, self.features = self.parts[0].shape
        for part in self.parts[1:]:
            self.features += part.shape[2]
        self.result_dtype = dtype or self.parts[0].dtype
        if len(self.parts) == 1:
            self.values = self.parts[0]

    @cached_property
    def values(self) -> torch.Tensor:
        """All features, ``[observations, agents, features]``."""
        return torch.cat(self.parts, dim=-1)

    def replace(self, values: torch.Tensor | tuple[torch.Tensor, ...], norm: Norm | None = None) -> Points:
        """Return other values of the same kind, or under another norm."""
        return Points(values, norm or self.norm, self.dtype, self.blocks)

    @property
    def separable(self) -> bool:
        """Whether the distance is a sum over features of absolute differences, up to a factor."""
        return self.norm is Norm.HALF_L1 or (self.norm is Norm.EUCLIDEAN and self.features == 1)

    def center(self) -> Points:
        """Return the mean agent, ``[observations, 1, features]``.

        A point of the same metric space for every norm here: means of probability vectors are probability
        vectors, means of positive semi-definite square roots are positive semi-definite.
        """
        return self.replace(tuple(map(mean_agent, self.parts)))

    def metric(self) -> Points:
        """Return points under a metric that no distance exceeds; itself, unless the distance is a corrected one."""
        if self.norm is Norm.CROSS:  # by Cauchy-Schwarz
            return self.replace(self.parts, Norm.EUCLIDEAN)
        if self.norm is Norm.JOINT:
            norms = (part.metric().norm for _, part in self.split())
            blocks = tuple(replace(block, norm=norm) for block, norm in zip(self.blocks, norms, strict=True))
            return Points(self.parts, self.norm, self.dtype, blocks)
        return self

    def slice(self, start: int, stop: int) -> Points:
        """Return the observations ``start`` to ``stop``, without a copy."""
        return self.replace(tuple(part[start:stop] for part in self.parts))

    def detach(self) -> Points:
        """Return the same points for measurements that nothing is differentiated through, without a copy."""
        return self.replace(tuple(part.detach() for part in self.parts))

    def split(self) -> list[tuple[float, Points]]:
        """Return points under one norm each, and their weights: the distance is the weighted sum of theirs."""
        if self.norm is not Norm.JOINT:
            return [(1.0, self)]
        parts = self.values.split([block.features for block in self.blocks], dim=2)
        return [
            (block.weight, Points(part.contiguous(), block.norm, self.dtype))
            for block, part in zip(self.blocks, parts, strict=True)
        ]


def mean_agent(values: torch.Tensor) -> torch.Tensor:
    """Return the mean over agents: ``[observations, agents, features]`` to ``[observations, 1, features]``."""
    # The mean of float32 values near the largest float overflows as a sum; float64 does not. A copy of all values would
    # take longer to get memory for than to add up.
    rows = max(1, COPIED // (values.shape[1] * values.shape[2]))
    means = []
    for part in values.split(rows):
        means.append(part.double().mean(dim=1, keepdim=True))
    return torch.cat(means).to(values.dtype)


def flatten(tensor: torch.Tensor) -> torch.Tensor:
    """Pool the observations: ``[..., agents, features]`` to ``[observations, agents, features]``.

    Half precision is widened, see :func:`widen`.
    """
    flat = tensor if tensor.dim() == 3 else tensor.reshape(-1, tensor.shape[-2], tensor.shape[-1])
    return flat if flat.dtype in (torch.float32, torch.float64) else widen(flat)


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Return half precision as float32, because it cannot represent small differences and long means."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
