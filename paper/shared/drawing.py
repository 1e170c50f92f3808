"""What the figures of several experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paper.experiment import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)  # of an axis of speed-ups


def error_bars(ax: Axes, x: Sequence[float], numbers: Sequence[Number], **look: Any) -> None:
    """Draw numbers with their intervals."""
    ends = [(n.value, n.value if n.low is None else n.low, n.value if n.high is None else n.high) for n in numbers]
    sides = [[max(0.0, value - low) for value, low, _ in ends], [max(0.0, high - value) for value, _, high in ends]]
    sizes: dict[str, Any] = {"linewidth": 1.5, "elinewidth": 1.1, "capsize": 2.5, "markersize": 5.5}
    ax.errorbar(x, [value for value, _, _ in ends], sides, **sizes | look)


def make_log(ax: Axes, ticks: Sequence[float] | None = TICKS, *, x: Sequence[float] | None = None) -> None:
    """Make the vertical axis logarithmic, and the horizontal one where it has ticks.

    Args:
        ax: With everything drawn.
        ticks: Of the vertical axis, as far as they lie within it; None for matplotlib's own.
        x: Of the horizontal axis.
    """
    ax.set_yscale("log")
    if x is not None:
        ax.set_xscale("log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    if x is not None:
        ax.set_xticks(x, [f"{value:,g}" for value in x])
    if ticks is not None:
        low, high = ax.get_ylim()
        kept = [value for value in ticks if low <= value <= high]
        ax.set_yticks(kept, [f"{value:g}" for value in kept])
    ax.minorticks_off()


def write_below(ax: Axes, y: float, text: str) -> None:
    """Write a word at the right edge of a panel, below a height in data units."""
    ax.annotate(text, (0.99, y), xycoords=("axes fraction", "data"), ha="right", va="top", fontsize=8.5)
