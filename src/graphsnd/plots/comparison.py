"""Algorithms beside each other: curves over seeds, final values, and what they show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsnd.analysis import MetricComparison
from graphsnd.analysis.comparing import ALPHA, iqm
from graphsnd.estimation.estimate import Interval
from graphsnd.plots.curves import compare, over_time
from graphsnd.plots.page import HtmlTable, Picture, Section, render_page
from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.style import phone_figure, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from graphsnd.plots.curves import Band

COLUMNS = ("algorithm", "runs", "IQM", "less the first", "P(above first)", "difference")
RESAMPLES = 999  # of the band of a curve, at each step
NOTE = "IQM: mean of the middle half of the runs. Intervals: bootstrap over seeds. p: permutation test of means"
FEW = "Too few seeds: no difference can be called significant, because this test cannot give a p-value of 0.05 or less."


def bootstrap_band(runs: NDArray[np.float64]) -> Band:
    """Return the interquartile mean of runs ``[runs, steps]`` and its 95% bootstrap interval, step by step.

    NaN where a run has no value: the mean of other runs is not comparable with that of all.
    """
    from scipy.stats import bootstrap

    centre = iqm(runs, axis=0)
    if len(runs) < 2:
        return centre, centre, centre
    options = {"n_resamples": RESAMPLES, "batch": 64, "method": "percentile", "rng": np.random.default_rng(0)}
    ends = bootstrap((runs,), iqm, axis=0, vectorized=True, **options).confidence_interval
    return centre, ends.low, ends.high


def comparison_rows(comparison: MetricComparison) -> list[tuple[str, ...]]:
    """Return a row under ``COLUMNS`` for each algorithm."""
    rows: list[tuple[str, ...]] = []
    for name, score in comparison.final.scores.items():
        count = sum(len(task) for task in score.runs)
        cells = (name, str(count), _with_interval(f"{score.value:.4g}", score.interval))
        less, chance, verdict = "", "", ""  # of the first algorithm
        if gap := comparison.final.differences.get(name):
            less = _with_interval(f"{gap.value:+.3g}", gap.interval, 3)
            chance = _with_interval(f"{gap.probability:.2f}", gap.probability_interval, 2)
            verdict = gap.verdict
        rows.append((*cells, less, chance, verdict))
    return rows


def comparison_notes(comparison: MetricComparison) -> str:
    """Return what a reader of the rows has to know."""
    differences = list(comparison.final.differences.values())
    paired = ""
    if differences and (pairs := differences[0].pairs):
        least = f"{pairs} pairs, which give p = {differences[0].resolution:.2g} at best"
        paired = f" Runs with the same seed are compared with each other: {least}."
    times = f" p-values are times {len(differences)}, the number of comparisons." * (len(differences) > 1)
    few = f" {FEW}" * any(gap.resolution > ALPHA for gap in differences)
    return f"{NOTE}.{paired}{times}{few}"


def _with_interval(value: str, ends: Interval | None, digits: int = 4) -> str:
    return value if ends is None else f"{value} [{ends[0]:.{digits}g}, {ends[1]:.{digits}g}]"


def comparison_figure(comparisons: Mapping[str, MetricComparison]) -> Figure:
    """Return curves with intervals over seeds, and the final values of runs, a row of two panels for each metric."""
    with styled_figure(11.5, 3.9 * len(comparisons)) as figure:
        axes = figure.subplots(len(comparisons), 2, squeeze=False, width_ratios=[1.25, 1])
        for (curves, ends), (kind, one) in zip(axes, comparisons.items(), strict=True):
            _draw_curves(curves, kind, one)
            _draw_ends(ends, kind, one)
        return figure


def _draw_curves(ax: Axes, kind: str, comparison: MetricComparison) -> None:
    whole = {name: runs[:, ~np.isnan(runs).any(axis=0)] for name, runs in comparison.curves.items()}
    steps = {name: at[~np.isnan(comparison.curves[name]).any(axis=0)] for name, at in comparison.steps.items()}
    title = f"{kind.capitalize()} over training"
    over_time(steps, whole, ax=ax, summary=bootstrap_band, xlabel="step", ylabel=comparison.metric, title=title)


def _draw_ends(ax: Axes, kind: str, comparison: MetricComparison) -> None:
    scores = comparison.final.scores
    intervals = {name: score.interval for name, score in scores.items() if score.interval is not None}
    runs = {name: [value for task in score.runs for value in task] for name, score in scores.items()}
    centres = {name: score.value for name, score in scores.items()}
    title = f"{kind.capitalize()} at the end"
    note = f"points: runs; circle: IQM; bar: {comparison.final.confidence:.0%}"
    compare(runs, intervals=intervals, centres=centres, ax=ax, xlabel=comparison.metric, title=title, note=note)


def comparison_page(comparisons: Mapping[str, MetricComparison], *, command: str, seed: int) -> str:
    """Return the page of a comparison as a string.

    Args:
        comparisons: By kind, as :func:`~graphsnd.analysis.compare_folders` gives them.
        command: What made the page, for the footer.
        seed: Of bootstrap and tests.
    """
    sections: list[Section] = []
    cards = []
    for kind, one in comparisons.items():
        pictures = []
        for draw, alt in ((_draw_curves, "over training, with bands"), (_draw_ends, "at the end of each run")):
            pictures.append(Picture(phone_figure(3.2, draw, kind, one), f"{one.metric} {alt}, of each algorithm."))
        text = "" if sections else comparison_notes(one)
        text += f" Tasks: {', '.join(one.tasks)}." * (len(one.tasks) > 1)
        text += f" Stopped early: {', '.join(one.stopped)}." * bool(one.stopped)
        rows = HtmlTable(COLUMNS, comparison_rows(one))
        sections.append(Section(kind.capitalize(), text, pictures=pictures, table=rows))
        best = max(one.final.scores, key=lambda name, one=one: one.final.scores[name].value)  # type: ignore[misc]
        cards.append((f"Highest {kind}", f"{one.final.scores[best].value:.4g}", f"{best}, {one.metric}"))
    names = list(next(iter(comparisons.values())).final.scores)
    lead = f"Final values of the runs, means over their last part, and whether they differ from those of {names[0]}."
    title = " and ".join(names) if len(names) < 4 else f"{len(names)} algorithms"
    return render_page(f"{title} compared", lead, cards, sections, footer_lines(command, seed))
