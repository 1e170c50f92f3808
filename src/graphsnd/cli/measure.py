"""``graphsnd measure``: a file in, a number with its interval out."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

import graphsnd
from graphsnd.cli.files import read_team
from graphsnd.cli.progress import steps
from graphsnd.cli.specs import FORMS, parse_distance, parse_graph
from graphsnd.errors import InputError

GRAPH_HELP = "Which pairs count: " + ", ".join(f"[cyan]{f.example}[/cyan] ({f.meaning})" for f in FORMS.values())
DISTANCE_HELP = (
    "[cyan]wasserstein[/cyan] (default for continuous actions), [cyan]total-variation[/cyan] (default for discrete "
    "ones), [cyan]hellinger[/cyan] or [cyan]jensen-shannon[/cyan]."
)


def measure(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .npz, .safetensors or .pt file of named tensors.")],
    distance: Annotated[str | None, typer.Option(metavar="NAME", help=DISTANCE_HELP)] = None,
    graph: Annotated[str, typer.Option(metavar="SPEC", help=GRAPH_HELP + ".")] = "complete",
    seed: Annotated[int, typer.Option(help="Seed of the random graphs.")] = 0,
    confidence: Annotated[float, typer.Option(help="Coverage of the interval, in (0, 1).")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="PATH", help="Write one self-contained page.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure.")] = None,
) -> None:
    """Measure the diversity of the team in FILE.

    The file holds what every agent would do on shared observations, as tensors of shape [bold]observations x agents x
    actions[/bold] under these names: [cyan]loc[/cyan] and [cyan]scale[/cyan] (diagonal Gaussian), [cyan]loc[/cyan] and
    [cyan]covariance[/cyan] (full Gaussian), [cyan]probs[/cyan] or [cyan]logits[/cyan] with an optional
    [cyan]mask[/cyan] (discrete), or [cyan]actions[/cyan] (deterministic). An optional [cyan]positions[/cyan], agents x
    features, is for knn and radius. Pickled objects are never loaded.

    A sampled graph (bernoulli, uniform, regular) estimates SND, and the interval covers SND. A spatial graph (knn,
    radius) defines a local measure, which is exact and is not an estimate of SND.
    """
    spec, chosen = parse_graph(graph), parse_distance(distance)
    if not 0 < confidence < 1:
        raise InputError("--confidence", "in (0, 1)", confidence, "Write 0.95 for 95%.")
    for option, path in (("--html", html), ("--png", png)):
        if path is not None and not path.parent.is_dir():
            raise InputError(option, "in a folder that exists", repr(str(path)))
    pictures = html is not None or png is not None
    with steps(4 if pictures else 2) as step:
        step("reading")
        team = read_team(file)
        step("measuring")
        begin = perf_counter()
        built = spec.build(team.behavior.agents, team.positions, seed)
        estimate = graphsnd.measure(team.behavior, built, distance=chosen, confidence=confidence)
        seconds = perf_counter() - begin
        if pictures:
            step("looking at the pairs again")
            from graphsnd import report

            lines = report.facts(estimate, spec.text, seconds)
            detail = report.detail(team.behavior, built, chosen, estimate)
            step("drawing")
            if png is not None:
                report.save_png(report.measured_figure(detail), png)
            if html is not None:
                command = _command(file, spec.text, distance, seed, confidence)
                page = report.measure_page(detail, lines, source=file.name, command=command, seed=seed)
                html.write_text(page, encoding="utf-8")
    if as_json:
        extra: dict[str, Any] = {"graph": spec.text, "seed": seed, "seconds": seconds, "version": graphsnd.__version__}
        typer.echo(json.dumps({**estimate.to_dict(), **extra}, allow_nan=False))
        return
    _show(file, estimate, spec.text, seconds, [path for path in (html, png) if path is not None])


def _show(file: Path, estimate: graphsnd.Estimate, graph: str, seconds: float, written: list[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from graphsnd.report.facts import facts
    from graphsnd.report.tables import facts_table

    console = Console()
    console.print(f"\n[bold]{escape(file.name)}[/bold]", highlight=False)
    console.print(facts_table(facts(estimate, graph, seconds)))
    for path in written:
        console.print(f"wrote {escape(str(path))}", highlight=False)


def _command(file: Path, graph: str, distance: str | None, seed: int, confidence: float) -> str:
    """The command without folders: enough to repeat the measurement, nothing about the machine."""
    parts = ["graphsnd", "measure", file.name, "--graph", graph, "--seed", str(seed), "--confidence", f"{confidence:g}"]
    return shlex.join([*parts, *(["--distance", distance] if distance else [])])
