"""Drawing functions that the figures of several experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from paper.experiment import Number


def error_bars(ax: Axes, x: Sequence[float], numbers: Sequence[Number], **look: Any) -> None:
    """Draw numbers with their intervals."""
    ends = [(n.value, n.value if n.low is None else n.low, n.value if n.high is None else n.high) for n in numbers]
    sides = [[max(0.0, value - low) for value, low, _ in ends], [max(0.0, high - value) for value, _, high in ends]]
    sizes: dict[str, Any] = {"linewidth": 1.5, "elinewidth": 1.1, "capsize": 2.5, "markersize": 5.5}
    ax.errorbar(x, [value for value, _, _ in ends], sides, **sizes | look)
