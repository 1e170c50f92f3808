"""The result of a measurement: a number, its intervals, and its cost."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphsnd.errors import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = tuple[float, float]
KEPT = 1 << 16  # pairs up to which an estimate keeps their distances
# What a sentence calls a distance, and the class of a behaviour.
DISTANCE_WORDS = {
    "wasserstein": "2-Wasserstein",
    "total-variation": "total variation",
    "hellinger": "Hellinger distance",
    "jensen-shannon": "Jensen-Shannon distance",
    "sliced": "sliced 2-Wasserstein",
    "sliced-debiased": "debiased sliced 2-Wasserstein",
}
FAMILY_WORDS = {
    "Deterministic": "actions",
    "Gaussian": "Gaussians",
    "MultivariateGaussian": "Gaussians with covariances",
    "Categorical": "action probabilities",
    "Quantiles": "quantile functions",
    "Samples": "samples",
    "Joint": "joint actions",
}


@dataclass(frozen=True, repr=False)
class Estimate:
    """A measured diversity.

    ``interval``, ``asymptotic_interval`` and ``standard_error`` are about SND on the observations given: the error made
    by measuring only some pairs, or some of these observations. ``observation_error`` and
    ``population_interval`` are about SND on other observations like these, and include both errors.

    Printed, it is a sentence in which ± is ``observation_error``; in notebooks a small table; :meth:`table` has all
    fields. ``float(estimate)`` and ``f"{estimate:.3f}"`` are of its value.

    Example:
        >>> import torch, graphsnd as gs
        >>> estimate = gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> print(estimate)
        SND 4 ± unknown (2-Wasserstein of actions, all 3 pairs, 1 observation)
        >>> estimate.value, estimate.target, estimate.interval
        (4.0, 'SND', (4.0, 4.0))
    """

    value: float  # the estimate of the target
    target: str  # what the value estimates: "SND", or "Graph-SND" where the graph defines the measure
    standard_error: float  # on the given observations, from the design; 0 if nothing was sampled
    interval: Interval  # covers the target with at least this confidence; see method for what it assumes
    asymptotic_interval: Interval | None  # value -+ Student's quantile * standard_error; None where freedom is below 30
    confidence: float  # coverage of the intervals
    method: str  # how the interval was made
    observation_error: float | None  # the ± of the sentence: standard error for other observations; None where too few
    agents: int  # size of the team
    observations: int  # observations that were used
    pairs_total: int  # n(n-1)/2
    pairs_used: int  # distances measured at each observation, the rounded mean where each has its own graph
    policy_evaluations: int  # policies times the observations on which they were evaluated
    distance: str  # name of the distance
    design: str  # text of the design, or the family of a graph
    family: str = ""  # class of the compared behaviour
    freedom: float = math.inf  # degrees of freedom of the standard error
    clusters: str = ""  # what observation_error takes as independent, or why it is unknown
    pair_error: float = 0.0  # the part of the standard error that comes from choosing pairs
    population_interval: Interval | None = None  # asymptotic, clustered: SND on similar observations; both errors
    observations_total: int = 0  # observations that were given
    distances: int = 0  # distances measured, at all observations
    why: str = ""  # reason for the design
    zero: str = ""  # reason for a value of exactly 0
    met: bool | None = None  # whether the tolerance was met; None without one
    looks: int = 1  # number of checks whether the tolerance was met
    seconds: float = 0.0  # duration of the measurement
    empty_share: float = 0.0  # share of observations whose own graph has no weight, which count as 0
    redrawn: bool = False  # whether other pairs are measured at each observation
    guaranteed: bool = True  # whether the interval holds for every team, or only for large samples
    names: tuple[str, ...] = ()  # names of the agents in order, if they have any
    # Mean distance of each measured pair, float64 [pairs_used]. None where pairs are redrawn at each observation, and
    # above 2^16 pairs.
    pair_distances: Tensor | None = field(default=None, compare=False)
    edges: Tensor | None = field(default=None, compare=False)  # int64 [pairs_used, 2]; None of all pairs, in this order

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    @property
    def exact(self) -> bool:
        """Whether the value has no sampling error on the given observations."""
        return self.guaranteed and self.interval[0] == self.interval[1]

    def matrix(self) -> Tensor | None:
        """Return the distances that were kept, ``[agents, agents]``: NaN for pairs not measured; None without any.

        Example:
            >>> import torch, graphsnd as gs
            >>> gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))).matrix()
            tensor([[0., 3., 6.],
                    [3., 0., 3.],
                    [6., 3., 0.]], dtype=torch.float64)
        """
        if self.pair_distances is None:
            return None
        i, j = torch.triu_indices(self.agents, self.agents, 1) if self.edges is None else self.edges.T
        matrix = torch.full((self.agents, self.agents), math.nan, dtype=torch.float64).fill_diagonal_(0)
        matrix[i, j] = matrix[j, i] = self.pair_distances
        return matrix

    def _values(self) -> dict[str, Any]:
        """Return all fields but those of single pairs."""
        names = (part.name for part in fields(self))
        return {name: getattr(self, name) for name in names if name not in ("pair_distances", "edges")}

    def table(self) -> str:
        """All fields and their values, one on each line, but not those of single pairs."""
        rows = self._values()
        rows["names"] = reprlib.repr(self.names)  # the first six
        return "\n".join(f"{name:<20}  {value}" for name, value in rows.items())

    def __repr__(self) -> str:
        return f"Estimate({self.target} {self.number()}, {self.design}, agents={self.agents})"

    def number(self) -> str:
        """The value ± ``observation_error``, with the digits that the error leaves."""
        error = self.observation_error
        value = round_outwards(self.value, *self.interval, error or self.standard_error)[0]
        if error is None:
            return f"{value} ± unknown"
        return f"{value} ± {round_outwards(error, error, error, error)[0] if error > 1e-6 else f'{error:.1g}'}"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import estimate_html

        return estimate_html(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the value with its intervals, see :func:`graphsnd.plots.estimate`."""
        from graphsnd.plots import estimate

        return estimate(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without single pairs, ready for JSON; None in place of an infinite number."""
        values = {name: finite(value) for name, value in self._values().items()}
        return {**values, "exact": self.exact, "text": str(self)}

    def __str__(self) -> str:
        words = DISTANCE_WORDS.get(self.distance, self.distance), FAMILY_WORDS.get(self.family, self.family)
        number = f"0: {self.zero}" if self.zero else self.number()
        text = f"{self.target} {number} ({words[0]} of {words[1]}, {self.pairs()}, {self.observations:,}"
        of = f" of {self.observations_total:,}" * (self.observations < self.observations_total)
        text += f"{of} {plural('observation', max(self.observations, self.observations_total))}"
        if not self.exact:
            _, low, high = round_outwards(self.value, *self.interval, self.observation_error or self.standard_error)
            kind = "guaranteed" if self.guaranteed else "approximate"
            text += f"; {kind} {100 * self.confidence:.4g}% interval on these observations [{low}, {high}]"
        return f"{text}){'; the tolerance was not met' * (self.met is False)}"

    def pairs(self) -> str:
        """Which pairs were measured, in words."""
        if self.target == "SND" and self.pairs_used == self.pairs_total:
            return f"all {self.pairs_total:,} pairs" if self.pairs_total > 1 else "1 pair"
        how = " redrawn at each observation" * self.redrawn
        if self.target != "SND" and self.distances != self.pairs_used * self.observations:
            how = " on average"  # each observation has its own graph
        return f"{self.pairs_used:,} of {self.pairs_total:,} {plural('pair', self.pairs_total)}{how} by {self.design}"


def round_outwards(value: float, low: float, high: float, error: float) -> tuple[str, str, str]:
    """Return a value and the ends of its interval with the digits that its standard error leaves: one, or two of 1x.

    Ends are rounded outwards, so that what is guaranteed of the interval holds for what is printed.

    Example:
        >>> round_outwards(1.0940038, 0.7857092, 1.4022984, 0.0241), round_outwards(1.0940038, 0.8, 1.4, 0.0141)
        (('1.09', '0.78', '1.41'), ('1.094', '0.800', '1.400'))
    """
    place = math.floor(math.log10(error)) if 0 < error < math.inf else -99
    digits = max(0, (error < 2 * 10.0**place) - place)
    if digits > 9 or not max(map(abs, (value, low, high))) < 1e15:  # nor NaN
        return f"{value:.6g}", f"{low:.6g}", f"{high:.6g}"
    rounded = zip((value, low, high), (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING), strict=True)
    first, second, third = (str(Decimal(x).quantize(Decimal(1).scaleb(-digits), way)) for x, way in rounded)
    return first, second, third


def finite(value: Any) -> Any:
    """Return the value, or None for a number that JSON cannot hold."""
    if isinstance(value, tuple):
        return tuple(finite(part) for part in value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
