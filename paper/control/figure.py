"""Figures of the control studies: diversity and reward over time, errors, arms in pairs, and where seconds go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.style import BLUE, FAINT, GREEN, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION, new_figure, style
from paper.control.costs import PARTS
from paper.control.mistaken import BLIND, DOUBLED, SOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARM_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE)
PART_COLOURS = dict(zip(PARTS, (FAINT, "#A3ABB5", ORANGE, INK, SKY), strict=True))  # not those of arms
PART_NAMES = {"policies": "estimate: networks", "distances": "estimate: pairs"}
DASHES, DOTS = (0, (4, 2)), (0, (1, 2))


def control_figure(data: dict[str, Any]) -> Figure:
    """Draw a study.

    Args:
        data: What :func:`~paper.control.data.assemble` gives, after JSON; with ``mistaken`` or without.
    """
    with style():
        rows = layout(len(data["targets"]), mistaken="mistaken" in data)
        heights = [3.0] * (len(rows) - 1) + [3.7]
        figure = new_figure(13.6, sum(heights) + 0.8)
        axes: dict[str, Axes] = {}
        parts = figure.subfigures(len(rows), 1, height_ratios=heights)
        for part, names in zip(np.atleast_1d(parts), rows, strict=True):
            widths = [1.35 if name == "mistaken" else 1.0 for name in names]
            axes |= zip(names, np.atleast_1d(part.subplots(1, len(names), width_ratios=widths)), strict=True)
        colours = arm_colours(data["arms"])
        for place, target in enumerate(data["targets"]):
            _diversity(axes[f"snd {place}"], data, target, colours)
            _reward(axes[f"reward {place}"], data, target, colours)
        _share_reward_axis([axes[f"reward {place}"] for place in range(len(data["targets"]))])
        _errors(axes["errors"], data, colours)
        _pairs(axes["pairs"], data, colours)
        _costs(axes["costs"], data)
        if "mistaken" in data:
            _mistaken(axes["mistaken"], data["mistaken"])
        _legend(figure, data, colours)
        return figure


def layout(targets: int, *, mistaken: bool) -> list[list[str]]:
    """Names of panels, row by row.

    Example:
        >>> layout(1, mistaken=False)
        [['snd 0', 'reward 0'], ['errors', 'pairs', 'costs']]
        >>> [len(row) for row in layout(3, mistaken=True)]
        [3, 3, 4]
    """
    above = [[f"{kind} {place}" for place in range(targets)] for kind in ("snd", "reward")]
    if targets == 1:
        above = [above[0] + above[1]]
    return [*(row for row in above if row), ["errors", "pairs", "costs", *(["mistaken"] if mistaken else [])]]


def arm_colours(arms: Sequence[str]) -> dict[str, str]:
    """One for each arm; what is not controlled is grey."""
    held = [arm for arm in arms if arm not in ("unconstrained", "homogeneous")]
    found = {arm: ARM_COLOURS[place % len(ARM_COLOURS)] for place, arm in enumerate(held)}
    return {arm: found.get(arm, MUTED) for arm in arms}


def _diversity(ax: Axes, data: dict[str, Any], target: float, colours: dict[str, str]) -> None:
    mine = [curve for curve in data["curves"] if curve["target"] == target]
    for curve in mine:
        at, colour, audit = curve["iteration"], colours[curve["arm"]], curve["audit"]
        ax.fill_between(at, audit["low"], audit["high"], color=colour, alpha=0.18, linewidth=0)
        ax.plot(at, audit["mean"], color=colour, linewidth=1.4)
        ax.plot(at, curve["applied"]["mean"], color=colour, linewidth=1.0, linestyle=DASHES)
    ax.axhline(target, color=INK, linewidth=1.0, linestyle=DOTS)
    # The first rollout is not controlled yet and would take all the room.
    settled = [abs(v - target) for c in mine for v in (*_late(c["audit"]["high"]), *_late(c["audit"]["low"]))]
    reach = 1.2 * max([0.04 * target, *settled])
    ax.set_ylim(target - reach, target + reach)
    _frame(ax, f"Diversity, target {target:g}", "SND", "iteration")


def _late(values: Sequence[float]) -> Sequence[float]:
    """Without the first sixth."""
    return values[min(len(values) - 1, max(1, len(values) // 6)) :]


def _reward(ax: Axes, data: dict[str, Any], target: float, colours: dict[str, str]) -> None:
    for curve in data["curves"]:
        if curve["target"] in (None, target):
            at, colour, reward = curve["iteration"], colours[curve["arm"]], curve["reward"]
            ax.fill_between(at, reward["low"], reward["high"], color=colour, alpha=0.15, linewidth=0)
            ax.plot(at, reward["mean"], color=colour, linewidth=1.4)
    _frame(ax, f"Reward, target {target:g}", "mean reward of a step", "iteration")


def _share_reward_axis(axes: Sequence[Axes]) -> None:
    ends = [end for ax in axes for end in ax.get_ylim()]
    for ax in axes:
        ax.set_ylim(max(0.0, min(ends)), max(ends))


def _errors(ax: Axes, data: dict[str, Any], colours: dict[str, str]) -> None:
    """A line for each arm and target, in the order of arms: three errors of the late window."""
    from matplotlib.ticker import FuncFormatter

    order = {arm: place for place, arm in enumerate(data["arms"])}
    held = [cell for cell in data["cells"] if cell["target"] is not None]
    cells = sorted(held, key=lambda cell: (order[cell["arm"]], cell["target"]))
    for place, cell in enumerate(cells):
        colour = colours[cell["arm"]]
        seeds = [r["audit_error"] for r in data["runs"] if (r["arm"], r["target"]) == (cell["arm"], cell["target"])]
        ax.plot([min(seeds), max(seeds)], [place, place], color=colour, linewidth=3, alpha=0.25, solid_capstyle="butt")
        for name, look in _marks().items():
            ax.plot(cell[name], place, color=colour, linestyle="none", **look)
    ax.set_yticks(range(len(cells)), [f"{cell['arm']}, {cell['target']:g}" for cell in cells])
    ax.set_ylim(len(cells) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    _frame(ax, f"Off target, last {data['window']} iterations", None, "relative error")


def _marks() -> dict[str, dict[str, Any]]:
    return {
        "tracking_error": {"marker": "o", "markersize": 6, "markerfacecolor": "white"},
        "audit_error": {"marker": "D", "markersize": 6},
        "absolute_audit_error": {"marker": "|", "markersize": 12, "markeredgewidth": 1.8},
    }


def _pairs(ax: Axes, data: dict[str, Any], colours: dict[str, str]) -> None:
    """Rewards less those with all pairs, each seed and target a dot, and the 95% interval of their mean."""
    pairs = data["pairs"]
    for place, pair in enumerate(pairs):
        colour, values = colours[pair["arm"]], pair["differences"]
        shifted = place + np.linspace(-0.16, 0.16, len(values)) if len(values) > 1 else [place]
        ax.plot(values, shifted, linestyle="none", marker="o", color=colour, alpha=0.45, markersize=4.5)
        if pair["low"] is not None:
            ax.plot([pair["low"], pair["high"]], [place + 0.3] * 2, color=colour, linewidth=2)
        ax.plot(pair["mean"], place + 0.3, marker="D", color=colour, markersize=6)
    labels = [_with_p(pair) for pair in pairs]
    ax.set_yticks(range(len(pairs)), labels)
    ax.set_ylim(len(pairs) - 0.4, -0.6)
    ax.axvline(0, color=INK, linewidth=1.0, linestyle=DOTS)
    ax.locator_params(axis="x", nbins=4)
    _frame(ax, "Reward less that of full", None, "difference, with 95% interval")


def _with_p(pair: dict[str, Any]) -> str:
    return pair["arm"] if pair["sign_p"] is None else f"{pair['arm']}\nsigns: p = {pair['sign_p']:.2g}"


def _costs(ax: Axes, data: dict[str, Any]) -> None:
    """Milliseconds of an iteration of one run, by part."""
    costs = data["costs"]
    for place, cost in enumerate(costs):
        left = 0.0
        for part in PARTS:
            width = 1000 * cost["parts"][part]
            label = None if place else PART_NAMES.get(part, part)
            ax.barh(place, width, left=left, color=PART_COLOURS[part], height=0.62, label=label)
            left += width
    ax.set_yticks(range(len(costs)), [cost["arm"] for cost in costs])
    ax.set_ylim(len(costs) * 1.45 - 0.3, -0.6)  # room for the legend
    _frame(ax, "Time of an iteration", None, "ms for one run")
    ax.legend(loc="lower left", ncols=2, handlelength=1.0, handletextpad=0.5, columnspacing=0.8, fontsize=8)


def _mistaken(ax: Axes, mistaken: dict[str, Any]) -> None:
    """Applied signal and audit of a sound controller and two that are wrong on purpose."""
    looks = {SOUND: BLUE, DOUBLED: VERMILLION, BLIND: PURPLE}
    for arm in mistaken["arms"]:
        at = range(1, len(arm["series"]["audit"]) + 1)
        said = f"{arm['arm']}: tracking {arm['tracking_error']:.1%}, audit {arm['audit_error']:.0%}"
        ax.plot(at, arm["series"]["audit"], color=looks[arm["arm"]], linewidth=1.5, label=said)
        ax.plot(at, arm["series"]["applied"], color=looks[arm["arm"]], linewidth=1.1, linestyle=DASHES)
    ax.axhline(mistaken["target"], color=INK, linewidth=1.0, linestyle=DOTS)
    ends = [value for arm in mistaken["arms"] for value in _late(arm["series"]["audit"])]
    ax.set_ylim(0, 1.6 * max([mistaken["target"], *ends]))
    _frame(ax, "Wrong on purpose", "SND", "iteration")
    ax.legend(loc="upper right", handlelength=1.2, handletextpad=0.5, borderaxespad=0.1, fontsize=8)


def _frame(ax: Axes, title: str, ylabel: str | None, xlabel: str) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_title(title)
    ax.set_xlabel(xlabel)
    if xlabel == "iteration":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if ylabel:
        ax.set_ylabel(ylabel)
    ax.grid(axis="both" if ylabel else "x")


def _legend(figure: Figure, data: dict[str, Any], colours: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=2) for colour in colours.values()]
    labels = list(colours)
    lines: tuple[tuple[str, dict[str, Any]], ...] = (
        ("audit: SND over all pairs", {"linewidth": 1.4}),
        ("applied: estimate x scale", {"linewidth": 1.0, "linestyle": DASHES}),
        ("target", {"linewidth": 1.0, "linestyle": DOTS}),
    )
    for text, look in lines:
        handles.append(Line2D([], [], color=INK, **look))
        labels.append(text)
    for name, look in _marks().items():
        handles.append(Line2D([], [], color=INK, linestyle="none", **look))
        labels.append(name.replace("_", " "))
    seeds = len(data["seeds"])
    title = f"means and ranges over {seeds} seed{'s' * (seeds > 1)}"
    if data["missing"]:
        title += f"; {len(data['missing'])} of {data['wanted']} runs are missing"
    figure.legend(handles, labels, loc="outside upper center", ncols=6, title=title)
