"""``graphsnd measure``: the SND of a team in files with its interval, or a table of several saved teams."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from csv import writer
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import graphsnd
from graphsnd.cli.options import AsJson, check_output, list_written, plain_warnings, steps
from graphsnd.errors import InputError, check_choice, check_integer, printable
from graphsnd.files import write_whole

COLUMNS = ("run", "iteration", "SND", "low", "high")
Row = tuple[str, int, float, float | None, float | None]


def measure(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="A file of arrays, a saved team, or with --policy state dicts."),
    ],
    design: Annotated[
        str | None,
        typer.Option(metavar="DESIGN", show_default="complete", help="Which pairs to measure: see above."),
    ] = None,
    tol: Annotated[
        float | None, typer.Option(metavar="X", help="Draw until the half-width of the interval is at most X.")
    ] = None,
    rel_tol: Annotated[float | None, typer.Option(metavar="X", help="The same, relative to SND: 0.01 for 1%.")] = None,
    distance: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="total-variation for discrete actions, wasserstein for others",
            help="wasserstein, total-variation, hellinger, jensen-shannon, sliced, or sliced-debiased.",
        ),
    ] = None,
    observations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What to show policies: a file with the key observations."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Your function that makes the module of a state dict; it is imported and called. Or FILE.py:FUNCTION.",
        ),
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --policy: the key of the state dict, if a file holds several."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random draws.")] = 0,
    confidence: Annotated[float, typer.Option(metavar="X", help="Coverage of the interval.")] = 0.95,
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option(metavar="PATH", help="Write one self-contained page.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the table of several saved teams.")] = None,
) -> None:
    """Measure how differently the agents of a team behave (SND).

    \b
    FILE is one of these:
      team.npz         arrays, also .safetensors or .pt
      runs/nav/seed-0  a saved team, with --observations or those beside it
      ckpts/*.pt       state dicts, one per agent: needs --policy, --observations
      runs/nav         several saved teams: a table of SND over training

    \b
    Arrays in a file, of shape [observations, agents, actions]:
      loc, scale         Gaussian policies; covariance in place of scale
      probs or logits    discrete policies; optional mask
      actions            deterministic policies
      values, samples    quantiles or samples, on one more axis
      positions          [agents, features], optional: for knn and radius
      clusters           [observations], optional: episode of each observation
      names              [agents], optional

    \b
    DESIGN says which pairs to measure. The first seven measure or estimate SND:
      complete           all pairs
      bernoulli:0.1      each pair with probability 0.1
      uniform:500        500 random pairs
      regular:8          8 random partners of each agent
      matching           random pairs at each observation (matching:20: 20 pairs)
      ring:8             8 partners on a random ring at each observation
      agents:4           all pairs of 4 random agents at each observation
      knn:5              the 5 nearest neighbours: a local measure, not SND
      radius:0.5         pairs within 0.5: a local measure, not SND

    Pickled objects are never loaded.
    """  # noqa: D301 (the mark before lines that stay as they are)
    from graphsnd.behavior.distances import DISTANCES
    from graphsnd.cli.read_team import find_teams, read_checkpoints, read_team

    for name, path in (("html", html), ("png", png), ("csv", csv)):
        check_output(name, path)
    if distance is not None:
        check_choice("distance", distance, DISTANCES)
    options: dict[str, Any] = {
        "design": design, "tol": tol, "rel_tol": rel_tol, "confidence": confidence,
        "distance": None if distance is None else DISTANCES[distance],
        "seed": check_integer("seed", seed, "to be an integer, at least 0", low=0),
    }  # fmt: skip
    files = [Path(file) for file in files]  # texts in older typers
    teams = files if policy is not None else find_teams(files)
    if policy is None and len(teams) > 1:
        if html is not None:
            raise InputError("html", "with one team", f"{len(teams)} saved teams", "Use --csv or --png.")
        with steps(len(teams)) as step, plain_warnings():
            rows, shown = measure_teams(teams, observations, step, **options)
        _show_teams(rows, shown, png, csv, as_json=as_json)
        return
    if csv is not None:
        raise InputError("csv", "with several saved teams", "one team", "Use --json.")
    with steps(3) as step, plain_warnings():
        step("reading")
        if policy is None:
            source = read_team(teams[0], observations)
        else:
            source = read_checkpoints(files, policy, entry, observations)
        step("measuring")
        arguments = {"positions": source.positions, "clusters": source.clusters, **options}
        estimate = graphsnd.measure(source.team, source.observations, **arguments)
        names = [file.name for file in files]
        title = " ... ".join(dict.fromkeys((names[0], names[-1])))
        if html is not None or png is not None:
            step("drawing")
            from graphsnd.plots.page import report, report_figure
            from graphsnd.plots.style import save_png

            if png is not None:
                save_png(report_figure(estimate), png)
            if html is not None:
                write_whole(html, report(estimate, title=f"Behavioural diversity of {title}"))
    if as_json:
        typer.echo(json.dumps({**estimate.to_dict(), "seed": seed, "version": graphsnd.__version__}, allow_nan=False))
        return
    from graphsnd.plots.tables import lines_table, summarise

    console = Console(highlight=False)
    console.print(f"\n{printable(title)}", style="bold", markup=False)
    console.print(lines_table(summarise(estimate)))
    list_written(path for path in (html, png) if path is not None)


def measure_teams(
    teams: list[Path], observations: Path | None, step: Callable[[str], None], **options: Any
) -> tuple[list[Row], Path]:
    """Measure saved teams on the same observations; return a row for each, and the file of the observations.

    Args:
        teams: Folders of the teams.
        observations: Observations for all of them; those beside the last team when None.
        step: Called with what is being done.
        options: Options of :func:`graphsnd.measure`.
    """
    from graphsnd.cli.read_team import read_team
    from graphsnd.teams.files import OBSERVATIONS

    beside = [team / OBSERVATIONS for team in teams if (team / OBSERVATIONS).is_file()]
    if observations is None and not beside:
        raise InputError("observations", "for teams that have none beside them", "no such option")
    shown, above = observations or beside[-1], os.path.commonpath(list(map(_run_of, teams)))
    rows: dict[Row, None] = {}  # the last team of a training lies beside its checkpoints too
    for at, path in enumerate(teams):
        step(f"measuring {at + 1} of {len(teams)}")
        source = read_team(path, shown)
        about: dict[str, Any] = getattr(source.team, "about", None) or {}
        numbers = re.findall(r"\d+", path.name)
        iteration = int(about.get("iteration", numbers[-1] if numbers else at))
        run = os.path.relpath(_run_of(path), above)
        estimate = graphsnd.measure(source.team, source.observations, clusters=source.clusters, **options)
        low, high = estimate.population_interval or (None, None)
        rows[path.name if run == "." else run, iteration, estimate.value, low, high] = None
    return sorted(rows, key=lambda row: row[:2]), shown


def _run_of(team: Path) -> str:
    """Return the folder of a run, also of a team that was kept at one of its checkpoints."""
    path = team.resolve()
    return str(path.parents[2] / path.name if path.parents[1].name == "teams" else path)


def _show_teams(rows: list[Row], shown: Path, png: Path | None, path: Path | None, *, as_json: bool) -> None:
    """Print a table of saved teams, and write CSV and figure where they are asked for."""
    from graphsnd.plots.tables import table

    if path is not None:
        buffer = io.StringIO()
        writer(buffer, lineterminator="\n").writerows([COLUMNS, *rows])
        write_whole(path, buffer.getvalue())
    if png is not None:
        _draw_teams(rows, png)
    if as_json:
        about = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        typer.echo(json.dumps({"checkpoints": about, "observations": shown.name}))
        return
    cells = [(*map(str, row[:2]), *("" if one is None else f"{one:.6g}" for one in row[2:])) for row in rows]
    note = "low, high: for other observations like these"
    Console(highlight=False).print(table(COLUMNS, cells, align="<>", caption=note))
    list_written(one for one in (path, png) if one is not None)


def _draw_teams(rows: list[Row], png: Path) -> None:
    import numpy as np

    from graphsnd import plots
    from graphsnd.plots.style import save_png, styled_figure

    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row[0], []).append(row)
    bands = {name: np.array([row[2:] for row in mine], dtype=float).T for name, mine in runs.items()}
    with styled_figure(4.8, 3.6) as figure:
        steps = {name: [row[1] for row in mine] for name, mine in runs.items()}
        plots.over_time(steps, bands, ax=figure.subplots(), summary=tuple)
    save_png(figure, png)
