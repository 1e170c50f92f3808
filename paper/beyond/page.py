"""The answers of the study as a figure and a table, in ``results/beyond``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from graphsnd.files import write_whole
from graphsnd.plots.intervals import draw_levels
from graphsnd.plots.style import save_png, theme
from graphsnd.plots.training_tables import training_curves
from paper.beyond.answers import LAST, Answer, Logs, answer_all
from paper.beyond.online import OFF
from paper.beyond.tasks import ALL, STUDIED, TENTH, Studied, iteration_seconds
from paper.control.logs import split_runs

ONLINE = "Is SND of a thousand agents close enough to log, from {}?"


def write_page(logs: Logs, folder: Path) -> None:
    """Write ``answers.md`` and ``levels.png`` from the logs that are there, and from ``online.json``."""
    minutes = sum(sum(iteration_seconds(rows)) for rows in logs.values()) / 60
    runs = sum(len({(row.arm, row.target, row.seed) for row in rows}) for rows in logs.values())
    found = [*answer_all(logs), *answer_online(folder / "online.json")]
    lines = [f"| {one.question} | {one.answer} | {one.what} |" for one in found]
    head = f"{runs} runs, {minutes:.1f} minutes of a GPU.\n\n| question | answer | numbers |\n| --- | --- | --- |"
    write_whole(folder / "answers.md", "\n".join((head, *lines)) + "\n")
    drawn = [name for name in STUDIED if f"beyond/{name}/complete" in logs]
    if drawn:
        with theme():
            figure, axes = plt.subplots(
                1, len(drawn), figsize=(3.9 * len(drawn), 3.6), squeeze=False, layout="constrained"
            )
            for ax, name in zip(axes[0], drawn, strict=True):
                draw_task(name, STUDIED[name], logs, ax)
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        save_png(figure, folder / "levels.png")


def draw_task(name: str, studied: Studied, logs: Logs, ax: Axes) -> None:
    """Draw reward against audited SND for both designs, and where ``Seek`` ends with each seed."""
    rows = [row for design in ("complete", "bernoulli") for row in logs.get(f"beyond/{name}/{design}", ())]
    labels = {ALL: "all pairs", TENTH: "a tenth of the pairs"}
    draw_levels({labels[design]: curve for design, curve in training_curves(rows).items()}, ax=ax)
    sought = [run.rows[-LAST:] for run in split_runs(rows) if run.run.arm == studied.sought]
    ends = [(fmean(row.audit or 0.0 for row in end), fmean(row.reward for row in end)) for end in sought]
    ax.plot(*zip(*ends, strict=True), "*", color="#111111", markersize=9, linestyle="", label="Seek", zorder=5)
    ax.set_title(f"{name.replace('_', ' ')}, {studied.agents} agents")
    ax.legend().remove()  # the figure has one for all


def answer_online(path: Path) -> Iterator[Answer]:
    """Yield whether sampled pairs are accurate enough to log, for each design."""
    moments = json.loads(path.read_text(encoding="utf-8"))["moments"] if path.is_file() else []
    for design in moments[0]["errors"] if moments else ():
        errors = [moment["errors"][design] for moment in moments]
        answer = "yes" if max(errors) < OFF else "no"
        yield Answer(ONLINE.format(design), answer, f"root mean square errors {min(errors):.2%} to {max(errors):.2%}")
