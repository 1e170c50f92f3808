"""The part that the callbacks of all frameworks share: when to measure, and on which observations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphsnd.designs.design import as_design
from graphsnd.errors import EmptyDrawError, check_integer
from graphsnd.estimation import measure


class Probe:
    """Measure a team every few iterations while it is trained, and keep the numbers.

    A callback passes the team, observations and clusters, and logs the numbers: ``snd``, and its interval over
    observations, ``snd_low`` and ``snd_high``, if there are enough observations. If the design defines another measure
    (``knn:3``, a graph of your own), they are called ``graph_snd``.

    Args:
        every: Steps from one measurement to the next, in the unit in which the framework counts.
        observations: Largest number of observations to measure on.
        **options: Options of :func:`graphsnd.measure`: ``design``, ``distance``, ``rel_tol`` and so on. Random pairs
            are drawn again for each measurement. If a draw has no pairs, all are measured instead.

    Example:
        >>> import torch, graphsnd as gs
        >>> probe = Probe(every=10)
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0]], [[0.0], [5.0]]]))
        >>> for step in range(0, 30, 5):
        ...     if probe.due(step):
        ...         probe.record(step, probe.measure(step, team))
        >>> [(row["step"], row["snd"]) for row in probe.rows]
        [(0, 4.0), (10, 4.0), (20, 4.0)]
    """

    def __init__(self, every: int = 1, observations: int = 2048, **options: Any) -> None:
        self.every = check_integer("every", every, "to be at least 1", low=1)
        self.observations = check_integer("observations", observations, "to be at least 1", low=1)
        if options.get("design") is not None:  # so a wrong one is refused before training begins
            options["design"] = as_design(options["design"])
        self.options = options
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._last: dict[str, int] = {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The recorded numbers, a dictionary for each step and its labels."""
        return list(self._rows.values())

    def record(self, step: int, numbers: dict[str, float], **labels: Any) -> None:
        """Add numbers to the row of a step and its labels."""
        self._rows.setdefault((step, *labels.values()), {"step": step, **labels}).update(numbers)

    def due(self, step: int, who: str = "") -> bool:
        """Return whether it is time to measure at a step; each learner ``who`` has its own clock."""
        last = self._last.get(who)
        if last is not None and last <= step < last + self.every:  # a count that restarted is smaller
            return False
        self._last[who] = step
        return True

    def places(self, count: int) -> Tensor:
        """Return which of ``count`` observations to measure on: all, or evenly spaced ones."""
        return torch.linspace(0, count - 1, min(count, self.observations)).round().long()

    @torch.no_grad()
    def measure(
        self,
        step: int,
        team: Any,
        observations: Any = None,
        *,
        clusters: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> dict[str, float]:
        """Return the numbers of a team.

        Args:
            step: Step of the framework, which seeds random pairs.
            team: Team, as :func:`graphsnd.measure` takes it.
            observations: Observations, as :func:`graphsnd.measure` takes them; None for a behaviour.
            clusters: Episode or environment of each observation; treated as unknown if there is only one.
            positions: Positions of the agents, as :func:`graphsnd.measure` takes them.
        """
        if clusters is not None and clusters.unique().numel() < 2:
            clusters = None
        given = {"clusters": clusters, "positions": positions, "seed": torch.Generator().manual_seed(step)}
        try:
            estimate = measure(team, observations, **{**given, **self.options})
        except EmptyDrawError:
            estimate = measure(team, observations, **{**given, **self.options, "design": None})
        name = estimate.target.lower().replace("-", "_")
        numbers = {name: estimate.value}
        if estimate.population_interval is not None:
            numbers[f"{name}_low"], numbers[f"{name}_high"] = estimate.population_interval
        return numbers

    def __getstate__(self) -> dict[str, Any]:  # frameworks pickle callbacks to make them again
        return {**self.__dict__, "_rows": {}, "_last": {}}
