"""The answer: a number, how sure it is, and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A measured diversity.

    ``interval`` and ``standard_error`` speak of the error made by looking at some pairs instead of all of them,
    on the observations given. ``observation_error`` speaks of the other error, that other observations would have
    given another number; it is never mixed into the interval.
    """

    value: float
    target: str  # what the value estimates: "SND", or "Graph-SND" where the graph defines the measure
    standard_error: float  # of sampling pairs, from the design; 0 when every pair of the target was used
    interval: tuple[float, float]  # covers the target with at least this confidence, for every distance matrix
    asymptotic_interval: tuple[float, float]  # value -+ z * standard_error, for large samples
    confidence: float
    method: str  # how the interval was made
    observation_error: float | None  # batch-means standard error over observations; None below 16 observations
    agents: int
    observations: int
    pairs_total: int
    pairs_used: int
    policy_evaluations: int  # agents times observations
    distance: str
    graph: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.interval
        if low == high:
            used = f"{self.pairs_used} pairs, {self.observations} observations"
            return f"{self.target} {self.value:.6g} (exact over {used})"
        return (
            f"{self.target} {self.value:.6g} ± {self.standard_error:.2g}, in [{low:.6g}, {high:.6g}] "
            f"with {self.confidence:.0%} confidence ({self.pairs_used} of {self.pairs_total} pairs)"
        )
