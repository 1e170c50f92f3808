"""Distances between two agents' action distributions: their names, options and maxima.

A distance is an embedding and a norm. Each family of behaviours knows how to embed itself for the distances that fit
it (:meth:`~graphsnd.Behavior.embed`); every later stage sees only points and a norm.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from graphsnd.errors import check_integer


@dataclass(frozen=True)
class Distance(ABC):
    """One distance; a metric on distributions, so all theorems of the paper apply to it.

    Functions take the object or its name: ``distance=gs.Hellinger()`` or ``distance="hellinger"``.

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


@dataclass(frozen=True)
class Hellinger(Distance):
    """Hellinger distance ``|sqrt p - sqrt q| / sqrt 2`` between probabilities; at most 1.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Categorical(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])), gs.Hellinger())
        tensor(1.)
    """

    name: ClassVar[str] = "hellinger"
    maximum: ClassVar[float | None] = 1.0


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


@dataclass(frozen=True)
class Sliced(Distance):
    r"""Sliced 2-Wasserstein distance of samples, in units of the 2-Wasserstein distance.

    .. math:: d^2 = \frac{f}{L} \sum_{l=1}^{L} W_2^2(\langle x, t_l \rangle, \langle y, t_l \rangle)

    for ``f`` features and ``L`` directions. With whole frames of directions, the default, :math:`d \le W_2`, and equal
    for one feature, for translations and between isotropic Gaussians.

    Args:
        debias: Subtract what finite samples add to the square: the product of the differences of two disjoint halves
            takes its place. It is exactly unbiased for the squared distance of the *expected* sorted halves, which is
            :math:`W_2^2` for translations, 0 for agents that act alike, and never more than :math:`d^2`. The distance
            is its root, with its sign: for agents that act alike it is as often below 0 as above.
        directions: Number of directions where there are several features; multiples of the features are whole frames.
        seed: Seed of the directions and of the split.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Samples(torch.tensor([[[[0.0], [1.0]], [[1.0], [0.0]], [[8.0], [9.0]]]]))  # 3 agents, 2 samples
        >>> gs.pairwise(team, gs.Sliced())[0].round(decimals=5)
        tensor([0., 0., 8.])
    """

    debias: bool = False
    directions: int | None = None
    seed: int = 0

    maximum: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if self.directions is not None:
            check_integer("directions", self.directions, "to be an integer, at least 1", low=1)
        check_integer("seed", self.seed, "to be an integer, at least 0", low=0)

    @property
    def name(self) -> str:
        """``sliced`` or ``sliced-debiased``."""
        return "sliced-debiased" if self.debias else "sliced"


_KNOWN = (Wasserstein(), TotalVariation(), Hellinger(), JensenShannon(), Sliced(), Sliced(debias=True))
DISTANCES: dict[str, Distance] = {distance.name: distance for distance in _KNOWN}
