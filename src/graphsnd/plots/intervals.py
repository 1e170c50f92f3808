"""Estimates with their intervals, and runs over time with their bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.analysis.levels import LevelCurve
from graphsnd.errors import InputError, check_number
from graphsnd.estimation import Estimate
from graphsnd.estimation.estimate import Interval
from graphsnd.plots.distances import Array, describe_unit, to_array
from graphsnd.plots.style import (
    ESTIMATE,
    FAINT,
    GREEN,
    GROUP_COLOURS,
    INK,
    TRUTH,
    drawing,
    group_look,
    label,
    shade,
    style_rows,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # centre, low, high: [steps] each

MARKED = 20  # points of a curve up to which each has a marker
LOOKS = ("-", (0, (5, 2)), (0, (1.5, 1.5)))  # line styles: the first six curves, the next six, ...


def estimate(
    estimate: Estimate | Mapping[str, Estimate] | Sequence[Estimate],
    *,
    truth: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measured number with its intervals, or several of them in rows.

    Blue: uncertainty from sampling pairs, on these observations. The thin line holds for every team, the thick one for
    large samples. Green: also from sampling observations. If all pairs were measured, there is no blue.

    Args:
        estimate: One estimate, several by name, or a list of them, which are then named after their designs.
        truth: The exact value, as a line.
        ax: Matplotlib axes; new ones when None.

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
    """Return label, ends, colour and width of each interval of an estimate; those without ends are left out.

    Example:
        >>> import torch, graphsnd as gs
        >>> estimate = gs.measure(gs.Deterministic(torch.randn(32, 9, 2)), design="uniform:20")
        >>> [about for about, *_ in interval_bars(estimate)]
        ['SND on these observations, every team', 'SND on similar observations, large samples']
    """
    here, there = f"{e.target} on these observations", f"{e.target} on similar observations"
    bars = [
        (f"{here}, every team", e.interval if e.guaranteed and not e.exact else None, ESTIMATE, 1.6),
        (f"{here}, large samples", None if e.exact else e.asymptotic_interval, ESTIMATE, 6.0),
        (f"{there}, large samples", e.population_interval, GREEN, 3.0),
    ]
    return [(about, ends, colour, width) for about, ends, colour, width in bars if ends and math.isfinite(sum(ends))]


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
    """Draw a curve for each label: a line for the centre of its runs, and a band around it.

    Args:
        steps: Steps ``[steps]``, shared by all curves, or a dict of them by label.
        curves: Values of each curve by label, ``[runs, steps]`` or ``[steps]``. NaN is a value that was not measured; a
            step at which no run has one is left out.
        ax: Matplotlib axes; new ones when None.
        summary: Function from ``[runs, steps]`` to centre, low and high, each ``[steps]``; by default mean and range.
        target: A level to mark across the axes, such as what a controller was asked for.
        xlabel: Label of the steps.
        ylabel: Label of the values.
        title: Title of the axes.

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
    with drawing(ax, 5.8, 3.7) as axes:
        if target is not None:
            target = check_number("target", target)
            axes.axhline(target, color=shade(INK), linewidth=1.0, linestyle=(0, (1, 2)), label=f"target {target:g}")
        for place, (name, values) in enumerate(curves.items()):
            runs = np.atleast_2d(to_array(values, f"curves[{name!r}]"))
            at = to_array(steps[name] if isinstance(steps, Mapping) else steps, "steps")
            if runs.ndim != 2 or at.shape != runs.shape[1:] or not runs.size:
                expected = f"[runs, {at.size}], one value for each step"
                raise InputError(f"curves[{name!r}]", expected, list(runs.shape))
            measured = ~np.isnan(runs).all(axis=0)
            draw_curve(axes, at[measured], summary(runs[:, measured]), place, label(name))
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
            more = 1 / (1 - min(share, 0.6))
            log = axes.get_yscale() == "log"
            axes.set_ylim(low, low * (high / low) ** more if log else low + (high - low) * more)
            axes.legend(loc="upper left", ncols=columns)
        return axes


def draw_levels(curves: Mapping[str, LevelCurve], *, ax: Axes | None = None) -> Axes:
    """Draw mean rewards with their intervals against SND, one curve for each name; rings are unconstrained agents.

    Args:
        curves: Curves by name. Unconstrained levels without an audit are left out.
        ax: Matplotlib axes; new ones when None.
    """
    with drawing(ax, 5.8, 3.7) as axes:
        for place, (name, curve) in enumerate(curves.items()):
            colour, marker = group_look(place)
            snd, rewards = np.array(curve.snd), np.array(curve.rewards)
            reach = np.nan_to_num(np.array(curve.intervals)[:, 1] - rewards)
            free = np.array([level is None for level in curve.levels])
            held, alone = np.flatnonzero(~free)[np.argsort(snd[~free])], np.flatnonzero(free & ~np.isnan(snd))
            look: dict[str, Any] = {"color": colour, "marker": marker, "capsize": 2.5, "lw": 1.2, "ms": 5}
            axes.errorbar(snd[held], rewards[held], reach[held], label=label(name) or None, **look)
            ring = look | {"linestyle": "", "markerfacecolor": shade("#FFFFFF"), "zorder": 4}
            axes.errorbar(snd[alone], rewards[alone], reach[alone], **ring)
        axes.set(xlabel="SND", ylabel="mean reward")
        axes.grid(color=shade(FAINT))
        if len(curves) > 1:
            axes.legend()
        return axes


def draw_curve(ax: Axes, steps: Array, band: Band, place: int, name: str) -> None:
    """Draw one line and its band, in the colour, marker and dashes of its place among the curves."""
    colour, marker = group_look(place)
    # Markers of curves that agree would hide each other: long curves carry few, at different places.
    every = max(1, len(steps) // 8)
    marked = 1 if len(steps) <= MARKED else (place * every // 3 % every, every)
    look: dict[str, Any] = {
        "linewidth": 1.7,
        "linestyle": LOOKS[place // len(GROUP_COLOURS) % len(LOOKS)],
        "label": name,
    }
    centre, low, high = band
    ax.fill_between(steps, low, high, color=colour, alpha=0.14, linewidth=0)
    ax.plot(steps, centre, color=colour, markevery=marked, markersize=4.5, marker=marker, **look)
