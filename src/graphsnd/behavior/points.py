"""Points and norms: the one shape every distance of the metric is reduced to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

import torch

from graphsnd.errors import InputError


class Norm(Enum):
    """How two rows of features become one distance.

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


@dataclass(frozen=True, eq=False)
class Points:
    """A team embedded for one distance.

    Kernels see nothing else: not the action space, not the policies, not the name of the distance.

    Example:
        >>> import torch, graphsnd as gs
        >>> from graphsnd.behavior.behavior import embed
        >>> points = embed(gs.Gaussian(torch.zeros(50, 8, 4, 2), torch.ones(2)))
        >>> points.values.shape, points.norm.value  # loc and scale of both actions
        (torch.Size([400, 4, 4]), 'euclidean')
    """

    values: torch.Tensor  # [observations, agents, features]
    norm: Norm  # how two rows of features become a distance
    dtype: torch.dtype | None = None  # of the results, where the points are kept more precisely than the input
    blocks: tuple[Block, ...] = ()  # of the joint norm
    # Tensors [observations, agents, ...] whose features, side by side, are those of the values.
    parts: tuple[torch.Tensor, ...] = field(init=False, repr=False)
    observations: int = field(init=False, repr=False)  # all leading dimensions of the behaviour pooled
    agents: int = field(init=False, repr=False)
    features: int = field(init=False, repr=False)
    # Results come back in the precision of the input; sums behind them are float64.
    result_dtype: torch.dtype = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.norm is Norm.JOINT) != (isinstance(self.blocks, tuple) and self.blocks != ()):
            raise InputError("norm", "to be one norm", self.norm, "Joint actions are for graphsnd.measure.")
        observations, agents, features = self.values.shape[:3]
        self.__dict__.update(parts=(self.values,), observations=observations, agents=agents, features=features)
        self.__dict__.update(result_dtype=self.dtype or self.values.dtype)

    @property
    def separable(self) -> bool:
        """Whether the distance is a sum over features of absolute differences, up to a factor."""
        return self.norm is Norm.HALF_L1 or (self.norm is Norm.EUCLIDEAN and self.features == 1)

    def center(self) -> Points:
        """Return the mean agent, ``[observations, 1, features]``.

        A point of the same metric space for every norm here: means of probability vectors are probability
        vectors, means of positive semi-definite square roots are positive semi-definite.
        """
        # The mean of float32 values near the largest float overflows as a sum; float64 does not.
        mean = self.values.to(torch.float64).mean(dim=1, keepdim=True)
        return replace(self, values=mean.to(self.values.dtype))

    def metric(self) -> Points:
        """Return points under a metric that no distance exceeds; itself, unless the distance is a corrected one."""
        if self.norm is Norm.CROSS:  # by Cauchy-Schwarz
            return replace(self, norm=Norm.EUCLIDEAN)
        if self.norm is Norm.JOINT:
            norms = (part.metric().norm for _, part in self.split())
            blocks = tuple(replace(block, norm=norm) for block, norm in zip(self.blocks, norms, strict=True))
            return self if blocks == self.blocks else replace(self, blocks=blocks)
        return self

    def slice(self, start: int, stop: int) -> Points:
        """Return the observations ``start`` to ``stop``, without a copy."""
        return self._change(lambda part: part[start:stop])

    def detach(self) -> Points:
        """Return the same points for measurements that nothing is differentiated through, without a copy."""
        return self._change(torch.Tensor.detach)

    def _change(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Points:
        return replace(self, values=change(self.values))

    def split(self) -> list[tuple[float, Points]]:
        """Return points under one norm each, and their weights: the distance is the weighted sum of theirs."""
        if self.norm is not Norm.JOINT:
            return [(1.0, self)]
        parts = self.values.split([block.features for block in self.blocks], dim=2)
        return [
            (block.weight, Points(part.contiguous(), block.norm, self.dtype))
            for block, part in zip(self.blocks, parts, strict=True)
        ]


class JoinedPoints(Points):
    """Points that came in several tensors, which are copied side by side only when their values are asked for.

    GPU kernels for totals read the tensors where they are: a copy would double the memory of a large team.
    """

    @staticmethod
    def join(parts: tuple[torch.Tensor, ...], norm: Norm) -> JoinedPoints:
        """Return points of these parts, all of one dtype."""
        points = JoinedPoints.__new__(JoinedPoints)
        observations, agents, features = parts[0].shape[:3]
        for part in parts[1:]:
            features += part.shape[2]
        points.__dict__.update(norm=norm, parts=parts, result_dtype=parts[0].dtype)
        points.__dict__.update(observations=observations, agents=agents, features=features)
        return points

    def _change(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Points:
        return JoinedPoints.join(tuple(map(change, self.parts)), self.norm)

    def __getattr__(self, name: str) -> torch.Tensor:
        if name != "values" or "parts" not in self.__dict__:
            raise AttributeError(name)
        self.__dict__["values"] = torch.cat(self.parts, dim=-1)
        return self.values


def flatten(tensor: torch.Tensor) -> torch.Tensor:
    """Pool the observations: ``[..., agents, features]`` to ``[observations, agents, features]``.

    Half precision is widened, see :func:`widen`.
    """
    flat = tensor if tensor.dim() == 3 else tensor.reshape(-1, tensor.shape[-2], tensor.shape[-1])
    return flat if flat.dtype in (torch.float32, torch.float64) else widen(flat)


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Return half precision as float32, because a difference or a long mean is not representable in it."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
