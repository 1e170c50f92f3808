"""The figure of a control study: diversity over iterations, errors, and rewards of pairs of arms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from graphsnd.errors import plural
from graphsnd.plots.style import BLUE, GREEN, INK, MUTED, PURPLE, VERMILLION, styled_figure
from paper.control.faulty_controllers import FaultyStudy
from paper.control.study import REFERENCE, Study, compare_rewards, compare_seeds, group_arms

ARM_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE)
DASHES, DOTS = (0, (4, 2)), (0, (1, 2))
MARKS: dict[str, dict[str, Any]] = {
    "tracking_error": {"marker": "o", "markersize": 6, "markerfacecolor": "white"},
    "audit_error": {"marker": "D", "markersize": 6},
    "absolute_audit_error": {"marker": "|", "markersize": 12, "markeredgewidth": 1.8},
}


def draw_study(study: Study, faulty: FaultyStudy | None = None) -> Figure:
    """Draw a study, with a panel for the faulty controllers if they are given."""
    colours = pick_colours(study.arms)
    panels: list[Callable[[Axes], None]] = [
        *(partial(_draw_diversity, study=study, target=target, colours=colours) for target in study.targets),
        partial(_draw_errors, study=study, colours=colours),
        partial(_draw_pairs, study=study, colours=colours),
        *([] if faulty is None else [partial(_draw_faulty, faulty=faulty)]),
    ]
    half = (len(panels) + 1) // 2  # targets and their errors above
    rows = [panels] if len(panels) < 4 else [panels[:half], panels[half:]]
    with styled_figure(13.6, 1.0 + 3.4 * len(rows)) as figure:
        for part, row in zip(np.atleast_1d(figure.subfigures(len(rows), 1)), rows, strict=True):
            for ax, draw in zip(np.atleast_1d(part.subplots(1, len(row))), row, strict=True):
                draw(ax)
        _draw_legend(figure, study, colours)
        return figure


def pick_colours(arms: Sequence[str]) -> dict[str, str]:
    """Return a colour for each arm; the uncontrolled arm is grey."""
    held = [arm for arm in arms if arm not in ("unconstrained", "homogeneous")]
    return dict.fromkeys(arms, MUTED) | dict(zip(held, itertools.cycle(ARM_COLOURS)))


def _draw_diversity(ax: Axes, study: Study, target: float, colours: dict[str, str]) -> None:
    mine = [curve for curve in study.curves if curve.target == target]
    for curve in mine:
        at, colour, audit = curve.iteration, colours[curve.arm], curve.audit
        ax.fill_between(at, audit.low, audit.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(at, audit.mean, color=colour, linewidth=1.4)
        ax.plot(at, curve.applied.mean, color=colour, linewidth=1.0, linestyle=DASHES)
    ax.axhline(target, color=INK, linewidth=1.0, linestyle=DOTS)
    # The first rollout is not controlled yet and would dominate the axis.
    ends = [_skip(end) for curve in mine for end in (curve.audit.high, curve.audit.low)]
    reach = 1.2 * max([0.04 * target, *(abs(value - target) for end in ends for value in end)])
    ax.set_ylim(target - reach, target + reach)
    _frame(ax, f"Diversity, target {target:g}", "SND", "iteration")


def _skip(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the first sixth."""
    return values[min(len(values) - 1, max(1, len(values) // 6)) :]


def _draw_errors(ax: Axes, study: Study, colours: dict[str, str]) -> None:
    """Draw three errors of the last iterations, a line for each arm and target, in the order of arms."""
    cells = sorted(group_arms(study.runs), key=lambda cell: (study.arms.index(cell.arm), cell.target))
    for place, cell in enumerate(cells):
        colour = colours[cell.arm]
        seeds = [run.audit_error for run in cell.runs if run.audit_error is not None]
        ax.plot([min(seeds), max(seeds)], [place, place], color=colour, linewidth=3, alpha=0.25, solid_capstyle="butt")
        for name, look in MARKS.items():
            ax.plot(cell.mean(name), place, color=colour, linestyle="none", **look)
    ax.set_yticks(range(len(cells)), [f"{cell.arm}, {cell.target:g}" for cell in cells])
    ax.set_ylim(len(cells) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    _frame(ax, f"Off target, last {study.window} iterations", None, "relative error")


def _draw_pairs(ax: Axes, study: Study, colours: dict[str, str]) -> None:
    """Draw reward differences from all pairs: a dot per seed and target, and the 95% interval of their mean."""
    compared = {arm: compare_rewards(study.runs, arm) for arm in study.arms if arm != REFERENCE}
    pairs = {arm: pair for arm, pair in compared.items() if pair is not None}
    for place, (arm, pair) in enumerate(pairs.items()):
        colour, values = colours[arm], pair.differences
        shifted = place + np.linspace(-0.16, 0.16, len(values)) if len(values) > 1 else [place]
        ax.plot(values, shifted, linestyle="none", marker="o", color=colour, alpha=0.45, markersize=4.5)
        if (interval := compare_seeds(study.runs, arm)) is not None:
            ends = np.array([interval.low, interval.high], dtype=float)
            ax.plot(ends, [place + 0.3] * 2, color=colour, linewidth=2)
        ax.plot(pair.mean, place + 0.3, marker="D", color=colour, markersize=6)
    labels = [arm if pair.sign_p is None else f"{arm}\nsigns: p = {pair.sign_p:.2g}" for arm, pair in pairs.items()]
    ax.set_yticks(range(len(pairs)), labels)
    ax.set_ylim(len(pairs) - 0.4, -0.6)
    ax.axvline(0, color=INK, linewidth=1.0, linestyle=DOTS)
    ax.locator_params(axis="x", nbins=4)
    _frame(ax, f"Reward less that of {REFERENCE}", None, "difference, with 95% interval over seeds")


def _draw_faulty(ax: Axes, faulty: FaultyStudy) -> None:
    """Draw the applied signal and the audit of a sound controller and two that are wrong on purpose."""
    for run, colour in zip(faulty.arms, (BLUE, VERMILLION, PURPLE), strict=True):
        at = range(1, len(run.series["audit"]) + 1)
        label = f"{run.arm}: tracking {run.tracking_error:.1%}, audit {run.audit_error:.0%}"
        ax.plot(at, run.series["audit"], color=colour, linewidth=1.5, label=label)
        ax.plot(at, run.series["applied"], color=colour, linewidth=1.1, linestyle=DASHES)
    ax.axhline(faulty.target, color=INK, linewidth=1.0, linestyle=DOTS)
    ends = [value for run in faulty.arms for value in _skip(run.series["audit"])]
    ax.set_ylim(0, 1.6 * max([faulty.target, *ends]))
    _frame(ax, "Wrong on purpose", "SND", "iteration")
    ax.legend(loc="upper right", handlelength=1.2, handletextpad=0.5, borderaxespad=0.1, fontsize=8)


def _frame(ax: Axes, title: str, ylabel: str | None, xlabel: str) -> None:
    ax.set_title(title)
    ax.set_xlabel(xlabel)
    if xlabel == "iteration":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if ylabel:
        ax.set_ylabel(ylabel)
    ax.grid(axis="both" if ylabel else "x")


def _draw_legend(figure: Figure, study: Study, colours: dict[str, str]) -> None:
    handles = [Line2D([], [], color=colour, linewidth=2, label=arm) for arm, colour in colours.items()]
    handles += [
        Line2D([], [], color=INK, linewidth=1.4, label="audit: SND over all pairs"),
        Line2D([], [], color=INK, linewidth=1.0, linestyle=DASHES, label="applied: estimate x scale"),
        Line2D([], [], color=INK, linewidth=1.0, linestyle=DOTS, label="target"),
    ]
    for name, look in MARKS.items():
        handles.append(Line2D([], [], color=INK, linestyle="none", label=name.replace("_", " "), **look))
    seeds = len(study.seeds)
    title = f"means and ranges over {seeds} {plural('seed', seeds)}"
    if study.missing:
        title += f"; {len(study.missing)} of {study.wanted} runs are missing"
    figure.legend(handles=handles, loc="outside upper center", ncols=6, title=title)
