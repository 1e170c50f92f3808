"""``graphsnd measure``: a file in, a number with its interval out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import graphsnd
from graphsnd.cli import options as shared
from graphsnd.cli.checkpoints import find_teams, measure_checkpoints
from graphsnd.cli.options import check_output, check_pictures, list_written, show_path
from graphsnd.cli.progress import steps
from graphsnd.errors import InputError, check_choice
from graphsnd.files import write_whole

if TYPE_CHECKING:
    from graphsnd.behavior import Distance
    from graphsnd.estimation import Estimate

# What the designs of designs.FORMS measure; here, because --help should not wait for torch, which designs need.
DESIGNS = {
    "complete": "all pairs, SND itself",
    "bernoulli:0.1": "each pair with probability 0.1",
    "uniform:500": "500 random pairs",
    "regular:8": "8 random partners for each agent",
    "knn:5": "the 5 nearest neighbours in `positions`, a local measure",
    "radius:0.5": "pairs within 0.5 in `positions`, a local measure",
    "matching": "agents in random pairs at each observation (matching:20, only 20 of the pairs)",
    "ring:8": "8 partners on a random ring at each observation",
    "agents:4": "all pairs of 4 random agents at each observation; only they are evaluated",
}
_FORMS = ", ".join(f"[cyan]{example}[/cyan] ({meaning})" for example, meaning in DESIGNS.items())
DESIGN_HELP = f"Which pairs to measure: one of {_FORMS}."
DISTANCES = "wasserstein for continuous actions, total-variation for discrete ones"
DISTANCE_HELP = (
    "[cyan]wasserstein[/cyan], [cyan]total-variation[/cyan], [cyan]hellinger[/cyan], [cyan]jensen-shannon[/cyan]; of "
    "samples also [cyan]sliced-debiased[/cyan], [cyan]energy[/cyan] or [cyan]energy-debiased[/cyan]."
)
POLICY_HELP = (
    "For state dicts: the function that makes the module they are loaded into. It is [bold]your own code, which is "
    "imported and called[/bold]; nothing in the files is. Also [cyan]path/file.py:function[/cyan]."
)


def measure(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A .npz, .safetensors or .pt file of named tensors, or a saved team; with --policy, state dicts.",
        ),
    ],
    design: Annotated[str | None, typer.Option(metavar="SPEC", show_default="all pairs", help=DESIGN_HELP)] = None,
    tol: Annotated[float | None, typer.Option(help="Stop when the half-width of the interval is this small.")] = None,
    rel_tol: Annotated[float | None, typer.Option(help="The same, relative to SND: 0.01 is 1%.")] = None,
    distance: Annotated[str | None, typer.Option(metavar="NAME", show_default=DISTANCES, help=DISTANCE_HELP)] = None,
    observations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For policies, unless they lie beside a saved team: a file with the key [cyan]observations[/cyan].",
        ),
    ] = None,
    policy: Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help=POLICY_HELP)] = None,
    entry: Annotated[
        str | None, typer.Option(metavar="KEY", help="With --policy: where the state dict is, if a file holds several.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    confidence: Annotated[float, typer.Option(help="Coverage of the interval, in (0, 1).")] = 0.95,
    as_json: shared.AsJson = False,
    html: shared.Html = None,
    png: shared.Png = None,
    table: Annotated[
        Path | None, typer.Option("--csv", metavar="PATH", help="Write the table, of several saved teams.")
    ] = None,
    force: shared.Force = False,
) -> None:
    """Measure the diversity of the team in FILE.

    The file holds what every agent would do on shared observations, as tensors of shape [bold]observations x agents x
    actions[/bold] under these names: [cyan]loc[/cyan] and [cyan]scale[/cyan] (diagonal Gaussian), [cyan]loc[/cyan] and
    [cyan]covariance[/cyan] (full Gaussian), [cyan]probs[/cyan] or [cyan]logits[/cyan] with an optional
    [cyan]mask[/cyan] (discrete), [cyan]actions[/cyan] (deterministic), [cyan]values[/cyan] (quantiles) or
    [cyan]samples[/cyan], both with one more axis. [bold]graphsnd.save_behavior[/bold] writes such a file. Optional:
    [cyan]positions[/cyan] for knn and radius, agents x features or observations x agents x features;
    [cyan]clusters[/cyan], the episode of each observation as an integer; and [cyan]names[/cyan] of the agents. Pickled
    objects are never loaded.

    Or it is the folder of a saved team; then [cyan]--observations[/cyan] says what to show it, and only the policies
    that the design asks for are evaluated. Or there are several state dicts, one agent for each file, and
    [cyan]--policy[/cyan] names the function that makes their module:
    [cyan]graphsnd measure ckpts/*.pt --policy mymodule:make --observations obs.npz[/cyan]

    Several saved teams, or a folder of them (as [cyan]graphsnd train --keep-teams[/cyan] leaves), give diversity over
    training: all are shown the same observations, those of [cyan]--observations[/cyan] or those beside the last.

    Random designs estimate SND, and the interval covers SND. [cyan]knn[/cyan] and [cyan]radius[/cyan] define a local
    measure, which is exact and is not an estimate of SND. With [cyan]--tol[/cyan] or [cyan]--rel-tol[/cyan],
    observations and pairs are drawn until the interval is narrow enough.
    """
    from graphsnd import designs
    from graphsnd.cli.files import read_checkpoints, read_team

    chosen = None if design is None else designs.parse(design, "--design")
    metric = parse_distance(distance)
    if not 0 < confidence < 1:
        raise InputError("--confidence", "in (0, 1)", confidence, "Write 0.95 for 95%.")
    files = [Path(file) for file in files]  # texts in older typers
    teams = find_teams(files) if policy is None else []
    if table is not None and not teams:
        raise InputError("--csv", "with several saved teams", "one team", "Use --json.")
    inputs = [*files, *files[0].glob("*"), *([] if observations is None else [observations])]
    check_pictures(html, png, inputs=inputs, force=force)
    options = {
        "design": chosen, "tol": tol, "rel_tol": rel_tol, "confidence": confidence, "distance": metric, "seed": seed,
    }  # fmt: skip
    names = [file.name for file in files]
    if teams:
        check_output("--csv", table, None, inputs=inputs, force=force)
        with steps(1 + len(teams)) as step, _hints():
            measure_checkpoints(
                teams, observations, {"csv": table, "png": png, "html": html},
                as_json=as_json, progress=step, **options,
            )  # fmt: skip
        return
    title = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names)} files)"
    with steps(3) as step:
        step("reading")
        if policy is None:
            source = read_team(files[0], observations)
        else:
            source = read_checkpoints(files, policy, entry, observations)
        if chosen is not None and chosen.needs_positions and source.positions is None:
            fix = "Add the key, of shape (agents, d) or (observations, agents, d), or use a design such as regular:8."
            raise InputError("positions", f"in the file for {chosen}", "no such key", fix)
        step("measuring")
        with _hints():
            estimate = graphsnd.measure(
                source.team,
                source.observations,
                positions=source.positions,
                clusters=source.clusters,
                **options,  # type: ignore[arg-type]
            )
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
    _show(title, estimate, [path for path in (html, png) if path is not None])


@contextmanager
def _hints() -> Iterator[None]:
    """Show warnings as one line on stderr, in the words of the command line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        typer.echo(f"graphsnd: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def parse_distance(text: str | None) -> Distance | None:
    """Return the distance of a name; None stays None, the default of the behaviour.

    Raises:
        InputError: With all names, for anything else.

    Example:
        >>> parse_distance("hellinger")
        Hellinger()
    """
    from graphsnd.behavior.distances import DISTANCES

    if text is None:
        return None
    check_choice("--distance", text.lower(), DISTANCES)
    return DISTANCES[text.lower()]


def _show(title: str, estimate: Estimate, written: list[Path]) -> None:
    from rich.console import Console

    from graphsnd.plots.tables import lines_table, summarise

    console = Console()
    console.print(f"\n[bold]{show_path(Path(title))}[/bold]", highlight=False)
    console.print(lines_table(summarise(estimate)))
    list_written(written)
