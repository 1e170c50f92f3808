"""Heads: from a stacked network's output to a behaviour, and to a bound on the distance of any two agents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, Categorical, Distance, Gaussian, Wasserstein, from_distribution
from graphsnd.errors import MOST_AGENTS, check_choice, check_integer

MEANS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "identity": lambda loc: loc}
SCALES = ("independent", "network")
LOG_STD_START, LOG_STD_LOW, LOG_STD_HIGH = -0.5, -5.0, 2.0
SCALE_FLOOR = 0.01
SCALE_SHIFT = math.log(math.expm1(1 - SCALE_FLOOR))  # so that a network that puts out 0 has scale 1


def biased_softplus(raw: Tensor) -> Tensor:
    """Return the scale ``max(softplus(raw + c) + 0.01, 1e-4)`` of a network's output, 1 at 0: TorchRL's default.

    Example:
        >>> biased_softplus(torch.zeros(1))
        tensor([1.])
    """
    return (F.softplus(raw + SCALE_SHIFT) + SCALE_FLOOR).clamp_min(1e-4)


def split_moments(output: Tensor, mean: str) -> tuple[Tensor, Tensor]:
    """Return loc and scale from an output that holds both, ``[..., 2 actions]``."""
    loc, raw = output.chunk(2, -1)
    return MEANS[mean](loc), biased_softplus(raw)


def squash_normal(loc: Tensor, scale: Tensor) -> Behavior:
    """Return the quantiles of ``tanh(Normal(loc, scale))``, both ``[..., agents, actions]``."""
    base = D.Normal(loc, scale, validate_args=False)
    return from_distribution(D.TransformedDistribution(base, [D.TanhTransform()], validate_args=False))


def diagonal(low: Tensor, high: Tensor) -> float | None:
    """Return the diagonal of the box around boxes ``[count, coordinates]``, rounded up; None where it is infinite."""
    length = float((high.amax(0) - low.amin(0)).clamp_min(0).norm())
    # float32 rounds the coordinates and the root.
    return length * (1 + 1e-5) if math.isfinite(length) else None


class Head(nn.Module, ABC):
    """Rule that turns a network's output into a distribution.

    Attributes:
        name: Name in files.
        actions: Action dimensions, or number of actions when discrete.
        outputs: Features the network must put out.
        batch: Batch shape of the head's own parameters; None when it has none.

    Example:
        >>> for head in (GaussianHead(2, batch=(5,)), TanhNormalHead(2), CategoricalHead(4)):
        ...     print(head.name, head.actions, head.outputs, head.batch)
        gaussian 2 2 (5,)
        tanh-normal 2 4 None
        categorical 4 4 None
    """

    name: ClassVar[str]
    keywords: ClassVar[tuple[str, ...]] = ()  # arguments beside actions and batch

    def __init__(self, actions: int, outputs: int) -> None:
        super().__init__()
        self.actions = check_integer("actions", actions, "to be an integer, at least 1", low=1, high=MOST_AGENTS)
        self.outputs = outputs
        self.batch: tuple[int, ...] | None = None

    @abstractmethod
    def behavior(self, output: Tensor, agents: Tensor | None = None) -> Behavior:
        """Return the behaviour that an output stands for.

        Args:
            output: Shape ``[..., agents, outputs]``.
            agents: Agents that the second to last axis holds, int64 ``[..., agents]``; all in order when None.
        """

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments that make this head again, apart from ``actions`` and ``batch``."""
        return {name: getattr(self, name) for name in self.keywords}

    @torch.no_grad()
    def bound(self, distance: Distance, low: Tensor, high: Tensor) -> float | None:
        """Return an upper bound on the distance between two agents whose outputs lie in ``low .. high``.

        Every head is monotone in every output, so ranges of outputs become ranges of the coordinates in which the
        2-Wasserstein distance is Euclidean. Its bound is the diagonal of the box that holds all agents' ranges.

        Args:
            distance: Any distance that fits the head's behaviours.
            low: Smallest outputs, shape ``[agents, outputs]``; may be infinite.
            high: Largest outputs, of the same shape.

        Returns:
            The bound; None when there is none.

        Raises:
            InputError: For a distance that does not fit the behaviour.
        """
        self.behavior(torch.zeros_like(low).unsqueeze(0)).accept(distance)
        if not isinstance(distance, Wasserstein):
            return distance.maximum
        return diagonal(*self._box(low, high))

    @abstractmethod
    def _box(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Return the ranges of the 2-Wasserstein coordinates for ranges of outputs, each ``[agents, coordinates]``."""

    def extra_repr(self) -> str:
        """Actions and options."""
        return ", ".join(f"{key}={value!r}" for key, value in {"actions": self.actions, **self.options()}.items())


class GaussianHead(Head):
    """Diagonal Gaussians.

    Args:
        actions: Action dimensions.
        batch: Batch shape of the network; only read for independent scales.
        mean: ``"tanh"`` (the paper's policy, actions in [-1, 1]) or ``"identity"``.
        scale: ``"independent"``: a learned log standard deviation for every agent and dimension, whatever the
            observation, from -0.5 and kept in [-5, 2]. ``"network"``: further outputs through :func:`biased_softplus`.

    Example:
        >>> GaussianHead(2, batch=(5,)).behavior(torch.zeros(16, 5, 2))
        Gaussian(agents=5, observations=16)
    """

    name = "gaussian"
    keywords = ("mean", "scale")

    def __init__(
        self, actions: int, *, batch: Sequence[int] = (), mean: str = "tanh", scale: str = "independent"
    ) -> None:
        check_choice("mean", mean, MEANS)
        check_choice("scale", scale, SCALES)
        super().__init__(actions, actions if scale == "independent" else 2 * actions)
        self.mean, self.scale = mean, scale
        if scale == "independent":
            self.batch = tuple(batch)
            self.log_std = nn.Parameter(torch.full((*batch, 1, actions), LOG_STD_START))

    def behavior(self, output: Tensor, agents: Tensor | None = None) -> Behavior:
        """A Gaussian."""
        return Gaussian(*self._moments(output, self._log_std(agents)))

    def moments(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return loc and scale of actions for a network's output ``[*batch, rows, outputs]``."""
        return self._moments(output, self.log_std if self.scale == "independent" else None)

    def _log_std(self, agents: Tensor | None) -> Tensor | None:
        if self.scale == "network":
            return None
        every = self.log_std.squeeze(-2)
        return every if agents is None else every[agents]

    def _moments(self, output: Tensor, log_std: Tensor | None) -> tuple[Tensor, Tensor]:
        if log_std is None:
            return split_moments(output, self.mean)
        loc = MEANS[self.mean](output)
        return loc, log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH).exp().expand_as(loc)

    def _box(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        log_std = self._log_std(None)
        return torch.cat(self._moments(low, log_std), -1), torch.cat(self._moments(high, log_std), -1)


class TanhNormalHead(Head):
    """Tanh-squashed Gaussians, ``action ~ tanh(Normal(loc, scale))`` with both from the network, as in DiCo.

    Agents are compared by what the environment receives, through quantiles.

    Args:
        actions: Action dimensions.

    Example:
        >>> TanhNormalHead(2).behavior(torch.zeros(16, 5, 4))
        Quantiles(agents=5, observations=16)
    """

    name = "tanh-normal"

    def __init__(self, actions: int) -> None:
        super().__init__(actions, 2 * actions)

    def behavior(self, output: Tensor, agents: Tensor | None = None) -> Behavior:
        """Quantiles of the squashed distribution."""
        return squash_normal(*self.moments(output))

    def moments(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return loc and scale before the tanh for a network's output ``[..., outputs]``."""
        return split_moments(output, "identity")

    def _box(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        # Actions in [-1, 1], whatever the output; the quadrature's weights sum to 1.
        return -torch.ones_like(low[:, : self.actions]), torch.ones_like(low[:, : self.actions])


class CategoricalHead(Head):
    """Discrete actions; the network puts out logits.

    Args:
        actions: Number of actions.

    Example:
        >>> CategoricalHead(4).behavior(torch.zeros(16, 5, 4))
        Categorical(agents=5, observations=16)
    """

    name = "categorical"

    def __init__(self, actions: int) -> None:
        super().__init__(actions, actions)

    def behavior(self, output: Tensor, agents: Tensor | None = None) -> Behavior:
        """Probabilities."""
        return Categorical(logits=output)

    def _box(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        raise AssertionError("no 2-Wasserstein distance between categories; refused when the distance was embedded")


HEADS: dict[str, type[Head]] = {head.name: head for head in (GaussianHead, TanhNormalHead, CategoricalHead)}
