"""The result of a measurement: a number, how sure it is, and what it cost."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

from graphsnd.errors import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = tuple[float, float]


@dataclass(frozen=True, repr=False)
class Estimate:
    """A measured diversity.

    ``interval``, ``asymptotic_interval`` and ``standard_error`` are about SND on the observations given: the error made
    by looking at some pairs, or at some of those observations, instead of all. ``observation_error`` is the other
    error, that other observations would have given another number. ``population_interval`` is about SND on
    observations like these, and has both errors.

    Printed, it is a sentence, and in notebooks a small table; :meth:`table` has all fields. ``float(estimate)`` and
    ``f"{estimate:.3f}"`` are of its value.

    Example:
        >>> import torch, graphsnd as gs
        >>> estimate = gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> print(estimate)
        SND 4 (exact over 3 pairs, 1 shared observation)
        >>> estimate.value, estimate.target, estimate.interval
        (4.0, 'SND', (4.0, 4.0))
    """

    value: float  # the estimate of the target
    target: str  # what the value estimates: "SND", or "Graph-SND" where the graph defines the measure
    standard_error: float  # on the given observations, from the design; 0 when everything of the target was used
    interval: Interval  # covers the target with at least this confidence; see method for what it assumes
    asymptotic_interval: Interval  # value -+ quantile * standard_error, for large samples
    confidence: float  # coverage of the intervals
    method: str  # how the interval was made
    observation_error: float | None  # standard error over observations, by clusters; None where too few
    agents: int  # size of the team
    observations: int  # that were used
    pairs_total: int  # n(n-1)/2
    pairs_used: int  # distances measured at each observation, the rounded mean where each has its own graph
    policy_evaluations: int  # policies times observations they were shown
    distance: str  # its name
    design: str  # as designs.parse reads it, or the family of a graph
    pair_error: float = 0.0  # the part of the standard error that comes from choosing pairs
    population_interval: Interval | None = None  # asymptotic, clustered: SND on others like these; both errors
    observations_total: int = 0  # that were given
    distances: int = 0  # measured in all
    why: str = ""  # why this design
    met: bool | None = None  # whether the tolerance was met; None without one
    looks: int = 1  # how often the data were inspected to decide whether to go on
    seconds: float = 0.0  # that it took
    empty_share: float = 0.0  # of the observations whose own graph has no weight, which count as 0
    guaranteed: bool = True  # whether the interval holds for every team, or only for large samples
    names: tuple[str, ...] = ()  # of the agents in order, where they have any

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    @property
    def exact(self) -> bool:
        """Whether nothing is left to chance on the given observations."""
        return self.guaranteed and self.interval[0] == self.interval[1]

    def table(self) -> str:
        """All fields and their values, one on each line."""
        rows = {part.name: getattr(self, part.name) for part in fields(self)}
        rows["names"] = reprlib.repr(self.names)  # the first six
        return "\n".join(f"{name:<20}  {value}" for name, value in rows.items())

    def __repr__(self) -> str:
        error = "exact" if self.exact else f"± {self.standard_error:.2g}"
        return f"Estimate({self.target} {self.value:.6g}, {error}, {self.design}, agents={self.agents})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import estimate_html

        return estimate_html(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the value with its intervals, see :func:`graphsnd.plots.estimate`."""
        from graphsnd.plots import estimate

        return estimate(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; None where a number is infinite, as an error that nothing is known about."""
        values = {part.name: finite(getattr(self, part.name)) for part in fields(self)}
        return {**values, "exact": self.exact}

    def __str__(self) -> str:
        if self.exact:
            shared = plural("shared observation", self.observations)
            used = f"{self.pairs_used:,} {plural('pair', self.pairs_used)}, {self.observations:,} {shared}"
            return f"{self.target} {self.value:.6g} (exact over {used})"
        value, low, high = round_outwards(self.value, *self.interval, self.standard_error)
        text = f"{self.target} {value}, standard error {self.standard_error:.2g}, in [{low}, {high}]"
        used = f"{self.design}, {self.distances:,} {plural('distance', self.distances)} on shared observations"
        text += f" with {100 * self.confidence:.4g}% confidence{' for every team' * self.guaranteed} ({used})"
        return f"{text}; the tolerance was not met" if self.met is False else text


def round_outwards(value: float, low: float, high: float, error: float) -> tuple[str, str, str]:
    """Return a value and the ends of its interval with the digits that its standard error leaves.

    Ends are rounded outwards, so that what is guaranteed of the interval holds for what is printed.

    Example:
        >>> round_outwards(1.0940038, 0.7857092, 1.4022984, 0.0241)
        ('1.094', '0.785', '1.403')
    """
    digits = max(0, 1 - math.floor(math.log10(error))) if 0 < error < math.inf else 99
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
