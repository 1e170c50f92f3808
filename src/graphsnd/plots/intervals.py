"""Estimates and how sure they are: on these observations, and on others like them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.errors import InputError, check_number
from graphsnd.estimation import Estimate
from graphsnd.estimation.estimate import Interval
from graphsnd.plots.distances import describe_unit
from graphsnd.plots.style import ESTIMATE, GREEN, INK, TRUTH, drawing, label, shade, style_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def estimate(
    estimate: Estimate | Mapping[str, Estimate] | Sequence[Estimate],
    *,
    truth: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measured number with its intervals, or several of them in rows.

    Blue is for SND on the observations that were given, where other pairs might have been drawn: thin for every team,
    thick for large samples. Green is for SND on other observations like them, and has both errors. Where all pairs
    were measured there is no blue.

    Args:
        estimate: One, several by name, or a list of them, which are then called by their designs.
        truth: The exact value, as a line.
        ax: Where to draw; new axes when None.

    Returns:
        The axes.

    Raises:
        InputError: When there is none.

    Example:
        >>> import torch, graphsnd as gs
        >>> ax = gs.plots.estimate(gs.measure(gs.Deterministic(torch.randn(32, 9, 2)), design="uniform:20"))
    """
    if isinstance(estimate, Estimate):
        estimate = [estimate]
    named = estimate.items() if isinstance(estimate, Mapping) else [(each.design, each) for each in estimate]
    rows = [each for _, each in named]
    if not rows:
        raise InputError("estimate", "at least one", "none")
    first, known = rows[0], {}
    with drawing(ax, 5.8, 2.3 + 0.5 * len(rows)) as axes:
        if truth is not None:
            truth = check_number("truth", truth)
            known[f"exact SND, {truth:.3f}"] = axes.axvline(truth, color=shade(TRUTH), linewidth=1.6, zorder=1)
        for y, each in enumerate(rows):
            for about, ends, colour, width in interval_bars(each):
                at = y + 0.25 * (colour == GREEN)
                look: dict[str, Any] = {"color": shade(colour), "linewidth": width, "alpha": 0.55 if width < 2 else 1.0}
                known[about] = axes.plot(ends, (at, at), solid_capstyle="butt", **look)[0]
            axes.plot(each.value, y, "o", color=shade("#FFFFFF"), markeredgecolor=shade(INK), markersize=5, zorder=4)
        axes.set_yticks(range(len(rows)), [f"{label(name)}\n{each.value:.4g}" for name, each in named])
        axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=f"{first.target}  [{describe_unit(first.distance)}]")
        style_rows(axes)
        if known:
            # Below the label of the axis, whatever the height of the axes.
            place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 5}
            sure = f"{100 * first.confidence:.4g}% intervals"
            axes.legend([*known.values()], [*known], title=sure, fontsize=8.5, title_fontsize=8.5, **place)
        return axes


def interval_bars(e: Estimate) -> list[tuple[str, Interval, str, float]]:
    """Return what each interval of an estimate is about, its ends, and its colour and width; only those with ends.

    Example:
        >>> import torch, graphsnd as gs
        >>> estimate = gs.measure(gs.Deterministic(torch.randn(32, 9, 2)), design="uniform:20")
        >>> [about for about, *_ in interval_bars(estimate)]
        ['SND on these observations, every team', 'SND on others like them, large samples']
    """
    here, there = f"{e.target} on these observations", f"{e.target} on others like them"
    bars = [
        (f"{here}, every team", e.interval if e.guaranteed and not e.exact else None, ESTIMATE, 1.6),
        (f"{here}, large samples", None if e.exact else e.asymptotic_interval, ESTIMATE, 6.0),
        (f"{there}, large samples", e.population_interval, GREEN, 3.0),
    ]
    return [(about, ends, colour, width) for about, ends, colour, width in bars if ends and math.isfinite(sum(ends))]
