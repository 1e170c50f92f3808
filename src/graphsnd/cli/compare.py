"""``graphsnd compare``: algorithms over seeds, or two teams on the same observations."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsnd.cli import options as shared
from graphsnd.cli.options import check_pictures, list_written, repeat_command
from graphsnd.errors import InputError, printable
from graphsnd.files import write_whole

TEAMS = (".npz", ".safetensors", ".pt", ".pth")  # files of teams; a saved team is a folder with team.json
OF_RUNS = ("reward", "diversity", "last", "no_pair", "html", "png")  # options that teams do not have


def compare(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]PATH...", help="Folders of runs, the first as the baseline; or two teams."),
    ],
    reward: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="the usual names", help="The metric of reward.")
    ] = None,
    diversity: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="the usual names", help="The metric of diversity.")
    ] = None,
    last: Annotated[float, typer.Option(help="Share of a run, at its end, over which it is averaged.")] = 0.1,
    no_pair: Annotated[
        bool, typer.Option("--no-pair", help="Do not compare seed by seed where all have the same seeds.")
    ] = False,
    observations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For two saved teams, unless they lie beside the first.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Coverage of the intervals, in (0, 1).")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of bootstrap and tests.")] = 0,
    as_json: shared.AsJson = False,
    html: shared.Html = None,
    png: shared.Png = None,
    force: shared.Force = False,
    max_bytes: shared.MaxBytes = 2**33,
) -> None:
    """Compare algorithms over seeds, or two teams on the same observations.

    Each PATH is one algorithm: a folder with a run for each seed somewhere below it, of graphsnd train or control, of
    BenchMARL (its csv logger or its JSON), CSV files exported from Weights & Biases or TensorBoard, or a CSV of your
    own for each run, which begins with step,snd,reward. The table has interquartile means with bootstrap intervals, the
    probability that a run is above one of the first algorithm, and whether the difference is shown, by a permutation
    test; seed by seed where all have the same seeds. Then there is a pair for each seed, and five pairs can show
    nothing: a line below the table has their number and the smallest p-value they can give, [cyan]pairs[/cyan] and
    [cyan]resolution[/cyan] of [cyan]--json[/cyan]. With [cyan]--no-pair[/cyan] five runs of each can show a
    difference, but what a seed does to both counts as noise. Runs that end before 90% of the steps of the longest of
    their algorithm are named, and algorithms that end so before another: they count with the last values they have.

    Two files of actions, or two saved teams, are compared by SND: a paired interval over observations, by episode where
    the file has [cyan]clusters[/cyan], and a test.
    """
    named = _read_names(paths)
    check_pictures(html, png, force=force)
    files = list(named.values())
    if all(path.suffix in TEAMS or (path / "team.json").is_file() for path in files):
        if len(files) != 2:
            raise InputError("PATH", "to be two teams", len(files))
        for name in OF_RUNS:
            if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE":
                raise InputError(f"--{name.replace('_', '-')}", "for folders of runs", "two teams")
        teams = _compare_teams(files, observations, confidence, seed, max_bytes)
        typer.echo(json.dumps(dataclasses.asdict(teams), allow_nan=False) if as_json else str(teams))
        return
    if observations is not None:
        raise InputError("--observations", "for two saved teams", "folders of runs")
    from graphsnd.analysis import compare_folders

    comparisons = compare_folders(
        named, reward=reward, diversity=diversity, last=last, pair=not no_pair, confidence=confidence, seed=seed
    )
    if html is not None or png is not None:
        from graphsnd import plots
        from graphsnd.plots.comparison import comparison_figure, comparison_page

        given = [name if name == path.name else f"{name}={path.name}" for name, path in named.items()]
        command = repeat_command("compare", given, context.params)
        if png is not None:
            plots.save_png(comparison_figure(comparisons), png)
        if html is not None:
            write_whole(html, comparison_page(comparisons, command=command, seed=seed))
    if as_json:
        about = {kind: {"metric": one.metric, "stopped": one.stopped, **dataclasses.asdict(one.final)}
                 for kind, one in comparisons.items()}  # fmt: skip
        typer.echo(json.dumps(about, allow_nan=False))
        return
    _show(comparisons, [path for path in (html, png) if path is not None])


def _read_names(paths: list[str]) -> dict[str, Path]:
    """Return the paths by the names before ``=``, or by their own, in full where two are the same."""
    pairs = [(name, Path(rest)) for name, _, rest in (text.rpartition("=") for text in paths)]
    if missing := [path for _, path in pairs if not path.exists()]:
        raise InputError("PATH", "to be a file or a folder", repr(str(missing[0])))
    short = [name or path.resolve().name for name, path in pairs]
    labels = [one if short.count(one) == 1 else str(path) for one, (_, path) in zip(short, pairs, strict=True)]
    if len(set(labels)) < len(labels):
        raise InputError("PATH", "to be different", ", ".join(paths))
    return {label: path for label, (_, path) in zip(labels, pairs, strict=True)}


def _compare_teams(files: list[Path], observations: Path | None, confidence: float, seed: int, max_bytes: int) -> Any:
    import graphsnd
    from graphsnd.cli.files import read_team
    from graphsnd.teams.saved import OBSERVATIONS

    first = read_team(files[0], observations, max_bytes=max_bytes)
    beside = observations or (files[0] / OBSERVATIONS if files[0].is_dir() else None)
    second = read_team(files[1], beside if files[1].is_dir() else None, max_bytes=max_bytes)
    behaviors = [team.evaluate() for team in (first, second)]
    clusters = first.clusters if first.clusters is not None else second.clusters
    return graphsnd.compare(*behaviors, clusters=clusters, confidence=confidence, seed=seed)


def _show(comparisons: dict[str, Any], written: list[Path]) -> None:
    from rich.console import Console
    from rich.text import Text

    from graphsnd.plots.comparison import COLUMNS, comparison_notes, comparison_rows
    from graphsnd.plots.tables import table

    console = Console()
    for kind, one in comparisons.items():
        console.print(f"\n[bold]{kind.capitalize()}[/bold]", end=" ")
        console.print(one.metric, markup=False, highlight=False)
        # A verdict is a sentence, and intervals go below their values: the rest fits into 80 columns.
        rows = comparison_rows(one)
        cells = [[Text(printable(cell).replace(" [", "\n[")) for cell in row[:-1]] for row in rows]
        console.print(table(COLUMNS[:-1], cells, align="<>"))
        for name, *_, verdict in rows[1:]:
            console.print(f"{printable(name)}: {verdict}", markup=False, highlight=False)
        if one.stopped:
            console.print(printable(f"Stopped early: {', '.join(one.stopped)}"), markup=False, highlight=False)
    console.print(comparison_notes(one), style="dim")
    list_written(written)
