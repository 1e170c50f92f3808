"""``graphsnd bench``: how fast SND is on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsnd.cli.progress import steps
from graphsnd.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


def bench(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="JSON files for --plot.")] = None,
    device: Annotated[str | None, typer.Option(metavar="cpu|cuda", help="Default: cuda where there is one.")] = None,
    out: Annotated[Path | None, typer.Option("--json", metavar="PATH", help="Write the measurements.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure, time against n.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small teams, seconds: does it run?")] = False,
    full: Annotated[bool, typer.Option("--full", help="Also 10,000 agents, and on a GPU eq. (1) in full.")] = False,
    plot: Annotated[bool, typer.Option("--plot", help="Measure nothing: draw these FILES into --png.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the teams and of the graphs.")] = 0,
) -> None:
    """Time exact and sparse SND on this machine.

    Exact SND against the usual Python loop over pairs and torch.cdist, against a tenth of the pairs, and against the
    arithmetic limit of the device, all in turns within one run; then exact total-variation SND by sorting, and the
    graph builders. Takes about two minutes.
    """
    _check(files or [], quick, full, plot, out, png)
    if plot:
        assert png is not None
        _draw([_read(file) for file in files or []], png)
        typer.echo(f"wrote {png}")
        return
    import torch

    from graphsnd import bench as suite
    from graphsnd.report import origin

    plan = suite.QUICK if quick else suite.FULL if full else suite.DEFAULT
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    mode = " --quick" * quick + " --full" * full
    about = origin(f"graphsnd bench --device {device}{mode} --seed {seed}", seed)
    begin = perf_counter()
    with _progress(suite.parts(plan)) as step:
        result = about | suite.measure(plan, device, seed=seed, step=step)
    result["took_s"] = round(perf_counter() - begin, 1)
    if out is not None:
        out.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    if png is not None:
        _draw([result], png)
    _show(result, [path for path in (out, png) if path is not None])


def _check(files: list[Path], quick: bool, full: bool, plot: bool, out: Path | None, png: Path | None) -> None:
    if quick and full:
        raise InputError("--quick", "or --full", "both")
    if plot and (png is None or not files):
        raise InputError("--plot", "with JSON files and --png", "neither" if png is None and not files else "only one")
    if files and not plot:
        raise InputError("FILE", "only with --plot", f"{files[0].name!r}")
    for option, path in (("--json", out), ("--png", png)):
        if path is not None and not path.parent.is_dir():
            raise InputError(option, "in a folder that exists", repr(str(path)))


def _read(file: Path) -> dict[str, Any]:
    fix = "Write one with graphsnd bench --json."
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("FILE", "to be the JSON of a benchmark", f"{file.name!r}, unreadable", fix) from None
    if not isinstance(found, dict) or found.get("format") != 1 or "exact" not in found:
        raise InputError("FILE", "to be the JSON of a benchmark", f"{file.name!r}", fix)
    return found


def _draw(results: list[dict[str, Any]], png: Path) -> None:
    from graphsnd.report import bench_figure, save_png

    save_png(bench_figure(results), png)


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


def _show(result: dict[str, Any], written: list[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from graphsnd.report import bench_tables as tables
    from graphsnd.report.bench import machine

    console = Console(highlight=False)
    _rule(console, f"{machine(result)} ({result['hardware']['cpu']})")
    console.print("Time of one call, median. Euclidean, 4 features, float32.")
    console.print(tables.times_table(result))
    console.print("* scaled up from a part of the pairs or observations", style="dim")
    console.print("\nHow many times as long as exact SND the others take, and how near it is to the limit.")
    console.print(tables.ratios_table(result))
    if (result["hardware"]["load"] or 0) > 0.25 * (result["hardware"]["cores"] or 1):
        # Torch's threads wait for each other at every operation, so a busy neighbour costs it most.
        busy = "This machine was busy before the run began. That slows what torch does more than compiled kernels:"
        console.print(f"[yellow]{busy} run again when it is idle before quoting ratios.[/yellow]")
    rate = result["limit_pairs_per_second"]
    if rate is not None:
        console.print(f"Limit, the arithmetic of a pair and nothing else: {tables.power(rate)} pairs/s.", style="dim")
    if result.get("equation_1"):
        row = result["equation_1"]
        time = tables.duration(row["contestants"]["fused"]["median_s"])
        console.print(f"Eq. (1) in full, n = {row['n']:,} with {row['observations']:,} observations: {time}.")
    console.print(f"\n[bold]{escape(result['verdict'])}[/bold]")
    _rule(console, "Exact total-variation SND by sorting, 5 categories")
    console.print(tables.sorting_table(result))
    _rule(console, "Graphs")
    console.print(tables.graphs_table(result))
    console.print(f"took {result['took_s']:.0f} s", style="dim")
    for path in written:
        console.print(f"wrote {escape(str(path))}")


def _rule(console: Console, title: str) -> None:
    console.print()
    console.rule(f"[bold]{title}[/bold]", align="left", style="dim")
