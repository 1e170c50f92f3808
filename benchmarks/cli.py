"""``graphsnd bench``: how fast SND is on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from benchmarks.suites import SUITES, Suite, rule
from graphsnd.cli.progress import steps
from graphsnd.errors import InputError

SUITE_HELP = "What to measure: " + ", ".join(f"[cyan]{name}[/cyan]" for name in SUITES) + "."


def bench(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="JSON files for --plot.")] = None,
    suite: Annotated[str, typer.Option(metavar="NAME", help=SUITE_HELP)] = "speed",
    device: Annotated[str | None, typer.Option(metavar="cpu|cuda", help="Default: cuda where there is one.")] = None,
    out: Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the measurements.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small teams, seconds: does it run?")] = False,
    full: Annotated[bool, typer.Option("--full", help="Also 10,000 agents, and on a GPU eq. (1) in full.")] = False,
    plot: Annotated[bool, typer.Option("--plot", help="Measure nothing: draw these FILES into --png.")] = False,
    team: Annotated[
        list[Path] | None, typer.Option(metavar="FOLDER", help="designs: a trained team to include; repeat for more.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the teams and of the graphs.")] = 0,
) -> None:
    """Measure speed and accuracy on this machine.

    [cyan]speed[/cyan]: exact SND against the usual Python loop over pairs and torch.cdist, against a tenth of the
    pairs, and against the arithmetic limit of the device, all in turns within one run; then exact total-variation SND
    by sorting, and the graph builders. Takes about two minutes. [cyan]designs[/cyan]: errors, costs and intervals of
    sampling designs. [cyan]worlds[/cyan]: environment steps beside the original simulators. [cyan]training[/cyan]: one
    iteration of stacked PPO.
    """
    chosen = _check(suite, files or [], quick, full, plot, out, png)
    if plot:
        assert png is not None
        _draw(chosen, [_read(file, suite) for file in files or []], png)
        typer.echo(f"wrote {png}")
        return
    import torch

    from graphsnd.plots import collect_provenance

    mode = "quick" if quick else "full" if full else "default"
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    words = f" --suite {suite}" * (suite != "speed") + f" --{mode}" * (mode != "default")
    words += "".join(f" --team {folder.name}" for folder in team or [])
    about = collect_provenance(f"graphsnd bench --device {device}{words} --seed {seed}", seed)
    begin = perf_counter()
    with _progress(chosen.parts(mode, team or [])) as step:
        result = about | chosen.measure(mode, device, seed, team or [], step)
    result["took_s"] = round(perf_counter() - begin, 1)
    if out is not None:
        out.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    if png is not None:
        _draw(chosen, [result], png)
    _show(chosen, result, [path for path in (out, png) if path is not None])


def _check(
    suite: str, files: list[Path], quick: bool, full: bool, plot: bool, out: Path | None, png: Path | None
) -> Suite:
    if suite not in SUITES:
        raise InputError("--suite", f"to be one of {', '.join(SUITES)}", repr(suite))
    if quick and full:
        raise InputError("--quick", "or --full", "both")
    if plot and (png is None or not files):
        raise InputError("--plot", "with JSON files and --png", "neither" if png is None and not files else "only one")
    if files and not plot:
        raise InputError("FILE", "only with --plot", f"{files[0].name!r}")
    for option, path in (("--json", out), ("--png", png)):
        if path is not None and not path.parent.is_dir():
            raise InputError(option, "in a folder that exists", repr(str(path)))
    return SUITES[suite]


def _read(file: Path, suite: str) -> dict[str, Any]:
    fix = "Write one with graphsnd bench --json."
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("FILE", "to be the JSON of a benchmark", f"{file.name!r}, unreadable", fix) from None
    if not isinstance(found, dict) or found.get("format") != 1 or found.get("suite", "speed") != suite:
        raise InputError("FILE", f"to be the JSON of a benchmark of the suite {suite}", f"{file.name!r}", fix)
    return found


def _draw(suite: Suite, results: list[dict[str, Any]], png: Path) -> None:
    from graphsnd.plots import save_png

    save_png(suite.figure(results), png)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; in a log, a line for each part, because the whole takes minutes."""
    from rich.console import Console

    if Console(stderr=True).is_terminal:
        with steps(total) as step:
            yield step
        return
    begin = perf_counter()
    yield lambda name: typer.echo(f"{perf_counter() - begin:6.1f} s  {name}", err=True)


def _show(suite: Suite, result: dict[str, Any], written: list[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from benchmarks.report_bench import machine

    console = Console(highlight=False)
    rule(console, f"{machine(result)} ({result['hardware']['cpu']})")
    suite.show(console, result)
    if (result["hardware"]["load"] or 0) > 0.25 * (result["hardware"]["cores"] or 1):
        # Torch's threads wait for each other at every operation, so a busy neighbour costs it most.
        busy = "This machine was busy before the run began. That slows what torch does more than compiled kernels:"
        console.print(f"[yellow]{busy} run again when it is idle before quoting ratios.[/yellow]")
    console.print(f"took {result['took_s']:.0f} s", style="dim")
    for path in written:
        console.print(f"wrote {escape(str(path))}")
