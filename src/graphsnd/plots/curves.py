"""Runs over time: curves with bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.errors import InputError, check_number, describe
from graphsnd.plots.distances import Array, to_array
from graphsnd.plots.style import FAINT, GROUP_COLOURS, INK, drawing, group_look, label, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # centre, low, high: [steps] each

MARKED = 20  # points of a curve up to which each has a marker
LOOKS = ("-", (0, (5, 2)), (0, (1.5, 1.5)))  # lines of the first six curves, of the next six, ...


def mean_and_range(runs: NDArray[np.float64]) -> Band:
    """Return mean, minimum and maximum over runs ``[runs, steps]``, of those that are not NaN."""
    return np.nanmean(runs, axis=0), np.nanmin(runs, axis=0), np.nanmax(runs, axis=0)


def over_time(
    steps: Array,
    curves: Mapping[str, Array],
    *,
    ax: Axes | None = None,
    summary: Callable[[NDArray[np.float64]], Band] = mean_and_range,
    target: float | None = None,
    xlabel: str = "iteration",
    ylabel: str = "SND",
    title: str = "",
) -> Axes:
    """Draw one curve for each label: the centre of its runs as a line, and a band around it.

    Args:
        steps: ``[steps]``, shared by all curves, or a dict of them by label.
        curves: By label, ``[runs, steps]`` or ``[steps]``. NaN is a value that was not measured; a step at which no run
            has one is left out.
        ax: Where to draw; new axes when None.
        summary: Turns ``[runs, steps]`` into centre, low and high, each ``[steps]``; by default mean and range.
        target: A level to mark across the axes, such as what a controller was asked for.
        xlabel: What the steps are.
        ylabel: What the curves are.
        title: Above the axes.

    Returns:
        The axes.

    Raises:
        InputError: For no curve, and for one that does not fit its steps.

    Example:
        >>> ax = over_time([1, 2, 3], {"ours": [[0.1, 0.4, 0.5], [0.2, 0.3, 0.6]]})
        >>> [round(float(y), 2) for y in ax.lines[0].get_ydata()]
        [0.15, 0.35, 0.55]
    """
    from matplotlib.ticker import MaxNLocator

    if not curves:
        raise InputError("curves", "to hold at least one curve", "none")
    if not callable(summary):
        raise InputError("summary", "to be a function of [runs, steps]", describe(summary))
    with drawing(ax, 5.8, 3.7) as axes:
        if target is not None:
            target = check_number("target", target)
            axes.axhline(target, color=shade(INK), linewidth=1.0, linestyle=(0, (1, 2)), label=f"target {target:g}")
        for place, (name, values) in enumerate(curves.items()):
            runs = np.atleast_2d(to_array(values, f"curves[{name!r}]"))
            if isinstance(steps, Mapping) and name not in steps:
                raise InputError("steps", f"to have {name!r}, as the curves do", list(steps))
            at = to_array(steps[name] if isinstance(steps, Mapping) else steps, "steps")
            if runs.ndim != 2 or at.shape != runs.shape[1:] or not runs.size:
                expected = f"[runs, {at.size}], one value for each step"
                raise InputError(f"curves[{name!r}]", expected, list(runs.shape))
            measured = ~np.isnan(runs).all(axis=0)
            band = to_array(summary(runs[:, measured]), "summary")
            if band.shape != (3, measured.sum()):
                raise InputError("summary", "to give centre, low and high at each step", list(band.shape))
            draw_curve(axes, at[measured], (band[0], band[1], band[2]), place, label=label(name))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        axes.grid(color=shade(FAINT))
        axes.margins(x=0.02)
        if len(curves) > 1 or target is not None:
            entries = len(curves) + (target is not None)
            columns = 1 if entries < 4 else 2
            # Room above the curves, in points: a legend in the "best" place can still cover one.
            share = (8 + 15 * math.ceil(entries / columns)) / (axes.bbox.height * 72 / axes.figure.dpi)
            low, high = axes.get_ylim()
            axes.set_ylim(low, low + (high - low) / (1 - min(share, 0.6)))
            axes.legend(loc="upper left", ncols=columns)
        return axes


def draw_curve(ax: Axes, steps: Array, band: Band, place: int, **look: Any) -> None:
    """Draw one line and its band, in the colour, marker and dashes of its place among the curves."""
    colour, marker = group_look(place)
    few = len(steps) <= MARKED
    dashes = LOOKS[place // len(GROUP_COLOURS) % len(LOOKS)]
    # Markers of curves that agree would hide each other: long curves carry few, at different places.
    every = max(1, len(steps) // 8)
    marks = {"markevery": 1 if few else (place * every // 3 % every, every), "markersize": 4.5, "marker": marker}
    centre, low, high = band
    ax.fill_between(steps, low, high, color=colour, alpha=0.14, linewidth=0)
    ax.plot(steps, centre, color=colour, **{"linewidth": 1.7, "linestyle": dashes, **marks, **look})
