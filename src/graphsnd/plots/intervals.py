"""Estimates and how sure they are: on these observations, and on others like them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.errors import InputError, check_number
from graphsnd.estimation import Estimate
from graphsnd.plots.matrix import describe_unit
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
    first = rows[0]
    with drawing(ax, 5.8, 2.3 + 0.5 * len(rows)) as axes:
        if truth is not None:
            truth = check_number("truth", truth)
            axes.axvline(truth, color=shade(TRUTH), linewidth=1.6, zorder=1)
        for y, each in enumerate(rows):
            draw_estimate(axes, y, each)
            draw_bar(axes, y + 0.25, each.population_interval, color=shade(GREEN), linewidth=3)
        axes.set_yticks(range(len(rows)), [f"{label(name)}\n{each.value:.4g}" for name, each in named])
        axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=f"{first.target}  [{describe_unit(first.distance)}]")
        style_rows(axes)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.32 if len(rows) == 1 else -0.2), "fontsize": 8.5}
        handles = interval_handles(rows, truth)
        if handles:
            sure = f"{100 * first.confidence:.4g}% intervals"
            axes.legend(handles=handles, title=sure, **place, title_fontsize=8.5)
        return axes


def draw_estimate(ax: Axes, y: float, one: Estimate) -> None:
    """Draw a value with the intervals of the pairs that were chosen: thin the guaranteed, thick the asymptotic one."""
    colour = shade(ESTIMATE)
    if not one.exact:
        if one.guaranteed:
            draw_bar(ax, y, one.interval, color=colour, linewidth=1.6, alpha=0.55, ends=True)
        draw_bar(ax, y, one.asymptotic_interval, color=colour, linewidth=6, zorder=3)
    ax.plot(one.value, y, "o", color=shade("#FFFFFF"), markeredgecolor=shade(INK), markersize=5, zorder=4)


def draw_bar(ax: Axes, y: float, ends_at: tuple[float, float] | None, *, ends: bool = False, **look: Any) -> None:
    """Draw an interval along x; nothing where there is none or it has no end."""
    if ends_at is None or not all(map(math.isfinite, ends_at)):
        return
    ax.plot(ends_at, (y, y), solid_capstyle="butt", **{"zorder": 2, **look})
    for end in ends_at if ends else ():
        ax.plot((end, end), (y - 0.12, y + 0.12), **{"zorder": 2, **look})


def interval_handles(estimates: Sequence[Estimate], truth: float | None, *, explain: bool = True) -> list[Any]:
    """Return legend entries for what is drawn; ``explain`` says what each interval is about."""
    from matplotlib.lines import Line2D

    def line(text: str, **look: Any) -> Any:
        return Line2D([], [], **look, label=text)

    sure, colour = f"{100 * estimates[0].confidence:.4g}% interval", shade(ESTIMATE)
    sampled = [e for e in estimates if not e.exact and e.pairs_total]
    handles = [] if truth is None else [line(f"exact SND, {truth:.3f}", color=shade(TRUTH), linewidth=1.6)]
    if sampled:
        text = "SND on these observations, large samples" if explain else f"asymptotic {sure}"
        handles.append(line(text, color=colour, linewidth=6))
    if any(e.guaranteed for e in sampled):
        text = "SND on these observations, every team" if explain else f"guaranteed {sure}"
        handles.append(line(text, color=colour, linewidth=1.6, alpha=0.55))
    if explain and any(e.population_interval is not None for e in estimates):
        handles.append(line("SND on others like them, large samples", color=shade(GREEN), linewidth=3))
    return handles
