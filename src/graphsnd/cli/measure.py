"""``graphsnd measure``: a file in, a number with its interval out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

import graphsnd
from graphsnd.behavior import Behavior, Distance
from graphsnd.cli.designs import FORMS as DESIGNS
from graphsnd.cli.designs import parse_budget, parse_design
from graphsnd.cli.files import TeamFile, read_observations, read_team
from graphsnd.cli.progress import NEWS, steps
from graphsnd.cli.specs import FORMS, parse_distance, parse_graph
from graphsnd.errors import InputError
from graphsnd.estimation import Budget, Design, Estimate
from graphsnd.teams import Team
from graphsnd.teams.files import DESCRIPTION as TEAM
from graphsnd.teams.files import OBSERVATIONS

GRAPH_HELP = "Which pairs count: " + ", ".join(f"[cyan]{f.example}[/cyan] ({f.meaning})" for f in FORMS.values())
DESIGN_HELP = (
    "Which pairs to draw for each observation: "
    + ", ".join(f"[cyan]{form.example}[/cyan] ({form.meaning})" for form in DESIGNS.values())
    + "; [cyan]@1000[/cyan] behind one of the first five: at 1000 random observations"
)
BUDGET_HELP = "At most [cyan]1e6[/cyan] distances, [cyan]1e6e[/cyan] policy evaluations or [cyan]5s[/cyan]."
DISTANCE_HELP = (
    "[cyan]wasserstein[/cyan] (default for continuous actions), [cyan]total-variation[/cyan] (default for discrete "
    "ones), [cyan]hellinger[/cyan] or [cyan]jensen-shannon[/cyan]."
)


def measure(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .npz, .safetensors or .pt file of named tensors, or a saved team.")
    ],
    distance: Annotated[str | None, typer.Option(metavar="NAME", help=DISTANCE_HELP)] = None,
    graph: Annotated[str | None, typer.Option(metavar="SPEC", help=GRAPH_HELP + ".")] = None,
    design: Annotated[str | None, typer.Option(metavar="SPEC", help=DESIGN_HELP + ".")] = None,
    tol: Annotated[float | None, typer.Option(help="Stop when the interval is this narrow, half-width.")] = None,
    rel_tol: Annotated[float | None, typer.Option(help="The same, relative to SND: 0.01 is 1%.")] = None,
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help=BUDGET_HELP)] = None,
    observations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For a saved team, unless they lie beside it: a file with the key [cyan]observations[/cyan].",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
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
    features, is for knn and radius; an optional [cyan]clusters[/cyan], an integer for every observation, tells which
    belong to one episode. Pickled objects are never loaded.

    Or it is the folder of a saved team; then [cyan]--observations[/cyan] says what to show it, and only the policies
    that the design asks for are evaluated.

    A sampled graph (bernoulli, uniform, regular) estimates SND, and the interval covers SND. A spatial graph (knn,
    radius) defines a local measure, which is exact and is not an estimate of SND. With [cyan]--tol[/cyan],
    [cyan]--rel-tol[/cyan], [cyan]--budget[/cyan] or [cyan]--design[/cyan], pairs are drawn anew for every observation,
    until the interval is narrow enough or the budget is spent.
    """
    request = _Request(parse_design(design), tol, rel_tol, parse_budget(budget), seed, confidence)
    if graph is not None and request.budgeted:
        raise InputError("--graph", "without --design, --tol, --rel-tol and --budget", "both", "Use --design.")
    spec, chosen = parse_graph(graph or "complete"), parse_distance(distance)
    if not 0 < confidence < 1:
        raise InputError("--confidence", "in (0, 1)", confidence, "Write 0.95 for 95%.")
    for option, path in (("--html", html), ("--png", png)):
        if path is not None and not path.parent.is_dir():
            raise InputError(option, "in a folder that exists", repr(str(path)))
    pictures = html is not None or png is not None
    with steps(4 if pictures else 2) as step:
        step("reading")
        source = _read(file, observations)
        step("measuring")
        begin = perf_counter()
        built = None
        if request.budgeted or isinstance(source, _Policies):
            if graph is not None:
                raise InputError("--graph", "with a file of behaviour", "a saved team", "Use --design.")
            estimate = request.run(source, chosen, lambda e: step(_progress(e)))
            text = design or "chosen"
        else:
            built = spec.build(source.behavior.agents, source.positions, seed)
            groups = source.clusters
            estimate = graphsnd.measure(source.behavior, built, distance=chosen, confidence=confidence, clusters=groups)
            text = spec.text
        seconds = perf_counter() - begin
        if pictures:
            step("looking at the pairs again")
            from graphsnd import plots

            lines = plots.summarise(estimate, text, seconds)
            pairs = plots.pair_distances(source.evaluated(), built, chosen, estimate)
            step("drawing")
            if png is not None:
                plots.save_png(plots.measurement_figure(pairs), png)
            if html is not None:
                what = {"graph": graph, "design": design, "tol": tol, "rel_tol": rel_tol, "budget": budget}
                rest = {"distance": distance, "observations": observations, "seed": seed, "confidence": confidence}
                command = _command(file, **what, **rest)
                page = plots.measurement_page(pairs, lines, source=file.name, command=command, seed=seed)
                html.write_text(page, encoding="utf-8")
    if as_json:
        extra: dict[str, Any] = {"graph": text, "seed": seed, "seconds": seconds, "version": graphsnd.__version__}
        typer.echo(json.dumps({**estimate.to_dict(), **extra}, allow_nan=False))
        return
    _show(file, estimate, text, seconds, [path for path in (html, png) if path is not None])


@dataclass(frozen=True, eq=False)
class _Policies:
    """A saved team and what to show it."""

    team: Team
    observations: Tensor
    clusters: Tensor | None

    def evaluated(self) -> Behavior:
        """Everybody on everything, for pictures."""
        with torch.no_grad():
            return self.team.evaluate(self.observations)


@dataclass(frozen=True)
class _Request:
    """What was asked of :func:`graphsnd.estimate`."""

    design: Design | None
    tol: float | None
    rel_tol: float | None
    budget: Budget | None
    seed: int
    confidence: float

    @property
    def budgeted(self) -> bool:
        """Whether anything was."""
        return any(asked is not None for asked in (self.design, self.tol, self.rel_tol, self.budget))

    def run(
        self, source: TeamFile | _Policies, distance: Distance | None, callback: Callable[[Estimate], None]
    ) -> Estimate:
        """Answer it."""
        team = source.team if isinstance(source, _Policies) else source.behavior
        return graphsnd.estimate(
            team,
            source.observations if isinstance(source, _Policies) else None,
            design=self.design,
            distance=distance,
            tol=self.tol,
            rel_tol=self.rel_tol,
            confidence=self.confidence,
            budget=self.budget,
            clusters=source.clusters,
            seed=self.seed,
            callback=callback,
        )


def _read(file: Path, observations: Path | None) -> TeamFile | _Policies:
    if not file.is_dir():
        if observations is not None:
            raise InputError("--observations", "with the folder of a saved team", f"{file.name!r}, a file")
        return read_team(file)
    if not (file / TEAM).is_file():
        inside = sorted(path.parent for path in file.glob(f"*/{TEAM}"))
        fix = f"Name one of its teams: {', '.join(map(str, inside[:3]))}." if inside else ""
        raise InputError("FILE", f"to be a file, or a folder with {TEAM}", repr(str(file)), fix)
    beside = file / OBSERVATIONS
    if observations is None and not beside.is_file():
        raise InputError("--observations", "with the folder of a saved team", "no such option")
    return _Policies(Team.load(file), *read_observations(beside if observations is None else observations))


def _progress(estimate: Estimate) -> str:
    """How far the interval has closed."""
    low, high = estimate.interval
    return f"{NEWS}SND {estimate.value:.5g} in [{low:.5g}, {high:.5g}] after {estimate.distances:,} distances"


def _show(file: Path, estimate: graphsnd.Estimate, graph: str, seconds: float, written: list[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from graphsnd.plots import summarise
    from graphsnd.plots.tables import lines_table

    console = Console()
    console.print(f"\n[bold]{escape(file.name)}[/bold]", highlight=False)
    console.print(lines_table(summarise(estimate, graph, seconds)))
    for path in written:
        console.print(f"wrote {escape(str(path))}", highlight=False)


def _command(file: Path, **options: object) -> str:
    """The command without folders: enough to repeat the measurement, nothing about the machine."""
    words = ["graphsnd", "measure", file.name]
    for name, value in options.items():
        if value is not None:
            text = value.name if isinstance(value, Path) else f"{value:g}" if isinstance(value, float) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)
