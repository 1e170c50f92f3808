"""``graphsnd measure`` on several saved teams: diversity over training, on the same observations for all."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from graphsnd.cli.options import list_written
from graphsnd.errors import InputError, plural
from graphsnd.files import write_whole

COLUMNS = ("team", "run", "iteration", "SND", "low", "high")
SHOWN = (*COLUMNS[:-2], "interval")
ABOUT = "Intervals are for SND on other observations like these."


def find_teams(paths: Sequence[Path]) -> list[Path]:
    """Return the saved teams among these paths and in their folders, in the order of their names; none for one team.

    Raises:
        InputError: For several paths of which one holds no saved team.
    """
    from graphsnd.teams.files import DESCRIPTION

    if len(paths) == 1 and (not paths[0].is_dir() or (paths[0] / DESCRIPTION).is_file()):
        return []
    inside = [sorted(file.parent for file in path.rglob(DESCRIPTION)) if path.is_dir() else [] for path in paths]
    teams = list(dict.fromkeys(team for part in inside for team in part))
    if len(paths) > 1 and not teams:
        fix = "One team of several checkpoints: --policy mymodule:make. Diversity over training: folders of teams."
        raise InputError("FILE", "to be one without --policy", ", ".join(path.name for path in paths), fix)
    for path, part in zip(paths, inside, strict=True) if teams else ():
        if not part:
            raise InputError("FILE", "to hold saved teams, as the others do", repr(str(path)))
    return teams


def measure_checkpoints(
    teams: list[Path], observations: Path | None, written: dict[str, Path | None], command: str, *,
    as_json: bool, progress: Callable[[str], None], **options: Any,
) -> None:  # fmt: skip
    """Measure saved teams on the same observations; write a table, and CSV, figure and page where they are asked for.

    Args:
        teams: Their folders.
        observations: To show them; those beside the last team when None.
        written: Paths of csv, png and html; None where not wanted.
        command: For the footer of the page.
        as_json: Whether to print JSON in place of the table.
        progress: Called with what is being done.
        options: Options of :func:`graphsnd.measure`.
    """
    import graphsnd
    from graphsnd.cli.files import read_team
    from graphsnd.plots.tables import table
    from graphsnd.teams.files import OBSERVATIONS

    beside = [team / OBSERVATIONS for team in teams if (team / OBSERVATIONS).is_file()]
    if observations is None and not beside:
        raise InputError("--observations", "for teams that have none beside them", "no such option")
    shown = observations or beside[-1]
    measured: list[tuple[Any, ...]] = []
    trainings: dict[tuple[str, int], set[Path]] = {}
    for at, path in enumerate(teams):
        progress(f"measuring {at + 1} of {len(teams)}")
        source = read_team(path, shown)
        about: dict[str, Any] = getattr(source.team, "about", None) or {}
        numbers = re.findall(r"\d+", path.name)
        iteration = about.get("iteration", int(numbers[-1]) if numbers else at)
        parts = [str(about[key]) for key in ("arm", "target", "seed") if about.get(key) is not None]
        estimate = graphsnd.measure(source.team, source.observations, clusters=source.clusters, **options)
        ends = estimate.population_interval or (None, None)
        measured.append(("/".join(path.parts[-2:]), " ".join(parts), int(iteration), estimate.value, *ends))
        trainings.setdefault(measured[-1][1:3], set()).add(_training_of(path))
    if any(len(each) > 1 for each in trainings.values()):  # the same seed in several trainings
        above = os.path.commonpath([_training_of(path) for path in teams])
        names = [_training_of(path).relative_to(above).as_posix() for path in teams]
        measured = [(row[0], f"{name} {row[1]}", *row[2:]) for name, row in zip(names, measured, strict=True)]
    measured.sort(key=lambda row: row[1:3])
    rows = [*{row[1:]: row for row in measured}.values()]  # the last team of a training lies beside its checkpoints too
    if written["csv"] is not None:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([COLUMNS, *rows])
        write_whole(written["csv"], buffer.getvalue())
    _draw(rows, written, command, "/".join(shown.parts[-2:]), options["seed"])
    if as_json:
        about_all = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        typer.echo(json.dumps({"checkpoints": about_all, "observations": shown.name}))
        return
    Console().print(table(SHOWN, [_format(row) for row in rows], align="<<>>>", caption=ABOUT))
    list_written(path for path in written.values() if path is not None)


def _training_of(team: Path) -> Path:
    """Return the folder of the training that wrote a team, at its end or at a checkpoint."""
    folder = team.resolve().parent
    return folder.parent.parent if folder.parent.name == "teams" else folder


def _format(row: Sequence[Any]) -> tuple[str, ...]:
    name, run, step, value, low, high = row
    return name, run, str(step), f"{value:.6g}", "" if low is None else f"[{low:.4g}, {high:.4g}]"


def _draw(rows: list[tuple[Any, ...]], written: dict[str, Path | None], command: str, shown: str, seed: int) -> None:
    if written["png"] is None and written["html"] is None:
        return
    import numpy as np

    from graphsnd import plots
    from graphsnd.plots.page import HtmlTable, Picture, Section, render_page
    from graphsnd.plots.provenance import footer_lines
    from graphsnd.plots.style import PHONE, styled_figure

    runs: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        name = f"seed {row[1]}" if row[1].isdigit() else row[1]
        runs.setdefault(name or "SND", []).append(row)
    with styled_figure(PHONE, 3.0) as figure:
        steps = {name: [row[2] for row in mine] for name, mine in runs.items()}
        bands = {name: np.array([row[3:] for row in mine], dtype=float).T for name, mine in runs.items()}
        plots.over_time(steps, bands, ax=figure.subplots(), summary=tuple)
    if written["png"] is not None:
        plots.style.save_png(figure, written["png"])
    if written["html"] is not None:
        picture = Picture(figure, "SND of each saved team over iterations, with its interval.")
        table = HtmlTable(SHOWN, [_format(row) for row in rows])
        lead = f"{len(rows)} saved {plural('team', len(rows))}, all on the same observations: {shown}."
        cards = []
        for at in sorted({min(row[2] for row in rows), max(row[2] for row in rows)}):
            values = [row[3] for row in rows if row[2] == at]
            note = f"mean of {len(values)} runs" if len(values) > 1 else ""
            cards.append((f"SND at iteration {at}", f"{sum(values) / len(values):.4g}", note))
        sections = [Section("Every saved team", ABOUT, pictures=[picture], table=table)]
        page = render_page("Diversity over training", lead, cards, sections, footer_lines(command, seed))
        write_whole(written["html"], page)
