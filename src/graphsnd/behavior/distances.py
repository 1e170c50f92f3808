"""Distances between two agents' action distributions.

A distance is an embedding and a norm: :meth:`Distance.embed` turns a behaviour into points, and every
later stage is blind to which distance it was.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from graphsnd.arguments import checked
from graphsnd.behavior.behavior import Behavior, flatten, warn_axis
from graphsnd.behavior.categorical import Categorical
from graphsnd.behavior.gaussian import Gaussian
from graphsnd.behavior.points import Norm, Points
from graphsnd.behavior.samples import Samples, Slicing, energy_points, sliced_points
from graphsnd.errors import InputError, describe, plural


@dataclass(frozen=True)
class Distance(ABC):
    """One distance; a metric on distributions, so all theorems of the paper apply to it.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Categorical(probs=torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]))
        >>> for distance in (gs.TotalVariation(), gs.Hellinger()):
        ...     print(distance.name, distance.maximum, round(float(gs.snd(team, distance)), 4))
        total-variation 1.0 0.5
        hellinger 1.0 0.5412
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in results and files."""

    @property
    @abstractmethod
    def maximum(self) -> float | None:
        """D_max of the paper's Theorem 9, None where the distance is unbounded."""

    @abstractmethod
    def embed(self, behavior: Behavior) -> Points:
        """Return points whose norm is this distance.

        Raises:
            InputError: When the behaviour is of a family this distance does not know.
        """


@dataclass(frozen=True)
class Wasserstein(Distance):
    """2-Wasserstein distance, the paper's choice for continuous actions (equation 1).

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Deterministic(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]])), gs.Wasserstein())
        tensor(5.)
    """

    name: ClassVar[str] = "wasserstein"
    maximum: ClassVar[float | None] = None

    def embed(self, behavior: Behavior) -> Points:
        """Return the points of the family's own embedding."""
        check_behavior(behavior)
        return behavior.wasserstein_points()


@dataclass(frozen=True)
class TotalVariation(Distance):
    """Total variation, half the L1 distance between probabilities; at most 1.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Categorical(torch.tensor([[[1.0, 0.0], [0.75, 0.25]]])), gs.TotalVariation())
        tensor(0.2500)
    """

    name: ClassVar[str] = "total-variation"
    maximum: ClassVar[float | None] = 1.0

    def embed(self, behavior: Behavior) -> Points:
        """Return the probabilities, under half the L1 norm."""
        return Points(flatten(_probs(behavior, self)), Norm.HALF_L1)


@dataclass(frozen=True)
class Hellinger(Distance):
    """Hellinger distance, ``|sqrt p - sqrt q| / sqrt 2``, of probabilities or of Gaussian densities; at most 1.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Categorical(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])), gs.Hellinger())
        tensor(1.)
    """

    name: ClassVar[str] = "hellinger"
    maximum: ClassVar[float | None] = 1.0

    def embed(self, behavior: Behavior) -> Points:
        """Return the square roots of the probabilities, under the Euclidean norm.

        They are kept in float64: rounded to float32, the roots of two nearly equal policies differ by chance. Roots
        of Gaussian densities are functions; those come as ``[loc, scale]``, under their own pair function.
        """
        if isinstance(behavior, Gaussian):
            loc = flatten(behavior.loc)
            return Points(torch.cat([loc, flatten(behavior.scale)], -1).double(), Norm.GAUSSIAN_HELLINGER, loc.dtype)
        given = flatten(_probs(behavior, self))
        return Points(_HalfRoot.apply(given), Norm.EUCLIDEAN, given.dtype)


class _HalfRoot(torch.autograd.Function):
    """sqrt(p / 2) in float64, in two passes over memory, with the derivative 0 at p = 0.

    There sqrt has none; but that is where a masked action sits for every agent, and it counts as constant.
    """

    @staticmethod
    def forward(ctx: Any, probs: torch.Tensor) -> torch.Tensor:
        roots = torch.empty(probs.shape, dtype=torch.float64, device=probs.device)
        roots = torch.mul(probs, 0.5, out=roots).sqrt_()
        ctx.save_for_backward(roots)
        return roots

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (roots,) = ctx.saved_tensors  # autograd casts to the dtype of the probabilities
        return torch.where(roots > 0, grad / (4 * torch.where(roots > 0, roots, 1)), 0)


@dataclass(frozen=True)
class JensenShannon(Distance):
    """Square root of the Jensen-Shannon divergence in nats, a metric; at most ``sqrt(ln 2)``.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Categorical(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])), gs.JensenShannon())  # sqrt(ln 2)
        tensor(0.8326)
    """

    name: ClassVar[str] = "jensen-shannon"
    maximum: ClassVar[float | None] = math.sqrt(math.log(2.0))

    def embed(self, behavior: Behavior) -> Points:
        """Return the probabilities, under their own pair function."""
        return Points(flatten(_probs(behavior, self)), Norm.SQRT_JS)


@dataclass(frozen=True)
class _Sampled(Slicing, Distance):
    maximum: ClassVar[float | None] = None

    @property
    def name(self) -> str:
        """The name of the class, and of the correction."""
        return type(self).__name__.lower() + "-debiased" * self.debias + "-pooled" * self.pooled

    def _read(self, behavior: Behavior) -> Samples:
        if not isinstance(behavior, Samples):
            fix = "Draw samples of the policies: graphsnd.Samples, graphsnd.draw_samples."
            raise InputError("distance", f"to fit a {type(behavior).__name__} behaviour", self.name, fix)
        return behavior


@checked(own="behavior")
@dataclass(frozen=True)
class Sliced(_Sampled):
    r"""Sliced 2-Wasserstein distance of samples, in units of the 2-Wasserstein distance.

    .. math:: d^2 = \frac{f}{L} \sum_{l=1}^{L} W_2^2(\langle x, t_l \rangle, \langle y, t_l \rangle)

    for ``f`` features and ``L`` directions. With whole frames of directions, the default, :math:`d \le W_2`, and equal
    for one feature, for translations and between isotropic Gaussians.

    Args:
        debias: Subtract what finite samples add to the square: the product of the differences of two disjoint halves
            takes its place, averaged over several splits. It is exactly unbiased for the squared distance of the
            *expected* sorted halves, which is :math:`W_2^2` for translations, 0 for agents that act alike, and never
            more than :math:`d^2`. The distance is the root of its positive part.
        pooled: Root mean square over observations in place of the mean: the root is taken once for each pair, after
            the noise has averaged out. The observations then count as one.
        directions: Their number where there are several features; multiples of the features are whole frames.
        seed: Of directions and splits.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Samples(torch.tensor([[[[0.0], [1.0]], [[1.0], [0.0]], [[8.0], [9.0]]]]))  # 3 agents, 2 samples
        >>> gs.pairwise(team, Sliced())[0]
        tensor([0., 0., 8.])
    """

    def embed(self, behavior: Behavior) -> Points:
        """Return sorted samples along directions; for ``debias``, those of two halves."""
        return sliced_points(self._read(behavior), self)


@checked(own="behavior")
@dataclass(frozen=True)
class Energy(_Sampled):
    r"""Energy distance of samples (Szekely and Rizzo): :math:`d^2 = 2 E|x - y| - E|x - x'| - E|y - y'|`.

    With several features, the mean over directions that equals it on average over directions. Linear in mixtures:
    agents that share a part ``q`` of what they do are at ``1 - q`` times the distance of the rest.

    Args:
        debias: Leave pairs of a sample with itself out of the last two terms (U-statistic): the square is then exactly
            unbiased. The distance is the root of its positive part.
        pooled: As in :class:`Sliced`.
        directions: As in :class:`Sliced`.
        seed: Of the directions.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Samples(torch.tensor([[[[0.0], [1.0]], [[0.0], [1.0]], [[8.0], [9.0]]]]))  # 3 agents, 2 samples
        >>> [round(float(d) ** 2, 4) for d in gs.pairwise(team, Energy())[0]]  # 2 * 8 - 1 / 2 - 1 / 2
        [0.0, 0.0, 15.0]
    """

    def embed(self, behavior: Behavior) -> Points:
        """Return sorted samples along directions and a correction, under their own pair function."""
        return energy_points(self._read(behavior), self)


_KNOWN: tuple[Distance, ...] = (Wasserstein(), TotalVariation(), Hellinger(), JensenShannon(), Sliced(), Energy())
_KNOWN += (Sliced(debias=True), Energy(debias=True))
DISTANCES: dict[str, Distance] = {distance.name: distance for distance in _KNOWN}


def _probs(behavior: Behavior, distance: Distance) -> torch.Tensor:
    if not isinstance(behavior, Categorical):
        fix = "Use graphsnd.Wasserstein(), or wrap the policies' probabilities in graphsnd.Categorical."
        raise InputError("distance", f"to fit a {type(behavior).__name__} behaviour", distance.name, fix)
    return behavior.probs


def check_behavior(behavior: object) -> None:
    """Raise unless it is a behaviour."""
    if not isinstance(behavior, Behavior):
        fix = "Wrap tensors in graphsnd.Gaussian, Categorical or Deterministic, or use from_distribution."
        raise InputError("behavior", "to be a graphsnd behaviour", type(behavior).__name__, fix)


def default_distance(behavior: Behavior) -> Distance:
    """Return total variation for discrete actions, as in the paper's discrete panel; 2-Wasserstein otherwise.

    A behaviour of several parts brings its own.

    Args:
        behavior: Of any family.

    Example:
        >>> import torch, graphsnd as gs
        >>> default_distance(gs.Categorical(logits=torch.zeros(5, 3, 4)))
        TotalVariation()
    """
    check_behavior(behavior)
    return behavior.distance or (TotalVariation() if isinstance(behavior, Categorical) else Wasserstein())


def check_distance(distance: Any, behavior: Behavior) -> Distance:
    """Return the distance, or the behaviour's default for None; raise for anything else."""
    if distance is not None and not isinstance(distance, Distance):
        by_part = "Give those of single parts to graphsnd.Joint(parts, distance={...})."
        fix = by_part if isinstance(distance, Mapping) else "Names are for the command line only."
        raise InputError("distance", "to be a distance object such as graphsnd.Hellinger()", describe(distance), fix)
    return distance or default_distance(behavior)


def check_unpooled(distance: Distance, why: str) -> None:
    """Raise for a distance that counts all observations as one; ``why`` not is for the message, after "which"."""
    if getattr(distance, "pooled", False):
        raise InputError("distance", f"not to pool observations, which {why}", distance.name, "Use pooled=False.")


@checked(own="behavior distance")
def embed(behavior: Behavior, distance: Distance | None = None, *, fewest: int = 2) -> Points:
    """Embed a behaviour for a distance, its own default when none is given.

    Args:
        behavior: What the agents would do.
        distance: A distance object, e.g. ``Hellinger()``.
        fewest: Agents that it must have: 1 for a part of a team.

    Returns:
        The points.

    Raises:
        InputError: For anything that is not a behaviour or a distance, and for fewer agents.

    Example:
        >>> import torch, graphsnd as gs
        >>> embed(gs.Gaussian(torch.zeros(5, 3, 2), torch.ones(2))).parts[0].shape  # [observations, agents, features]
        torch.Size([5, 3, 2])
    """
    check_behavior(behavior)
    distance = check_distance(distance, behavior)
    if behavior.agents < fewest:
        expected = f"to have at least {fewest} {plural('agent', fewest)}"
        raise InputError("behavior", expected, behavior.agents, "Diversity needs a pair." if fewest == 2 else "")
    warn_axis(behavior)
    return behavior._embed(distance)
