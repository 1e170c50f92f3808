"""``python -m paper``: run the paper's experiments and compare its claims with them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from graphsnd.cli.app import Command
from graphsnd.errors import InputError, MissingExtraError, check_choice
from graphsnd.files import write_whole
from paper.experiment import NAMES, Scale, find
from paper.judging.claims import load_claims
from paper.judging.formatting import format_duration, summary, verdicts_table
from paper.judging.page import verdicts_page
from paper.judging.verdicts import Judged, judge_all
from paper.pack import pack
from paper.published import read_published
from paper.runner import RESULTS, WORK, result_path, run

PATIENCE = 10.0  # seconds between two lines of news
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help=f"Some of {', '.join(NAMES)} (default: all).")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Results and the page.", show_default="paper/results")]

app = typer.Typer(
    help="The experiments of the Graph-SND paper, and a verdict on each of its claims.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command("run", cls=Command)
def run_experiments(
    names: Names = None,
    scale: Annotated[Scale, typer.Option(help="How much is run.")] = Scale.LAPTOP,
    out: Out = RESULTS,
    work: Annotated[Path, typer.Option(metavar="FOLDER", help="Unfinished work.")] = WORK,
    again: Annotated[bool, typer.Option("--again", help="Repeat finished experiments from the start.")] = False,
    ray: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Ray cluster that trains.")] = None,
) -> None:
    """Run experiments and judge the claims that they decide.

    Every claim has a rule, and gets a verdict: confirmed, confirmed in direction, corrected, not confirmed, or
    undecided where the noise of a timing spans a limit. Results go to FOLDER as JSON with a figure, and all claims to
    a page. What is finished is not repeated. Ctrl-C, SIGTERM and SIGHUP stop, and the same command resumes.

    Results that are already in FOLDER are read and do not run again. On two cores all experiments take two minutes at
    smoke scale, which is too little for most claims, six to thirty minutes at laptop scale, and hours at paper scale.
    Smoke and laptop scale run everything but the training of 100 agents, whose teams are read from the committed
    results. Paper scale also reads the logs of other trainings on a GPU, times of a GPU, and the author's tables. A
    machine with a GPU trains what is missing, and with --again all of it; with --ray the GPUs of a cluster do.
    """
    chosen = _check_names(names)
    if ray is not None and scale is not Scale.PAPER:
        raise InputError("--ray", "with --scale paper, whose trainings are stacks", f"--scale {scale.value}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    failed: dict[str, str] = {}
    for name in chosen:
        path = result_path(out, name, scale)
        before = path.stat().st_mtime_ns if path.is_file() else None
        try:
            result = run(find(name), scale, out=out, work=work, again=again, ray=ray, step=_News(name).tell)
        except (InputError, MissingExtraError, OSError) as error:
            failed[name] = str(error)
        except KeyboardInterrupt as stop:
            typer.echo(f"stopped in {name}; the same command resumes", err=True)
            raise typer.Exit(128 + (stop.args[0] if stop.args else signal.SIGINT)) from None
        else:
            took = format_duration(result.provenance["took_s"])
            did = f"nothing ran, read {path}, which took" if path.stat().st_mtime_ns == before else "ran,"
            folders = ", ".join(dict.fromkeys("/".join(source.split("/")[:3]) for source in result.sources))
            typer.echo(f"{name}: {did} {took}" + (f", from {folders}" if folders else ""), err=True)
    _conclude(chosen, out, scale)
    for name, message in failed.items():
        typer.echo(f"paper: {name}: {' '.join(message.split())}", err=True)
    if failed:
        raise typer.Exit(2)


@app.command("verdicts", cls=Command)
def show_verdicts(
    names: Names = None,
    scale: Annotated[Scale | None, typer.Option(help="The only scale that counts (default: the largest).")] = None,
    out: Out = RESULTS,
) -> None:
    """Show the verdict on every claim, from the existing results."""
    chosen = _check_names(names)
    claims = [claim for claim in load_claims() if claim.experiment in chosen]
    _print_verdicts(judge_all(claims, out, scales=tuple(Scale) if scale is None else (scale,)))


@app.command("pack", cls=Command)
def pack_sources(file: Annotated[Path, typer.Argument(metavar="FILE", help="A .tgz.")]) -> None:
    """Pack the sources of this commit for a machine without the repository.

    Results made from the unpacked sources record their commit, and a hash proves it. Changed sources are refused.
    """
    typer.echo(f"packed {pack(file)} into {file}")


def main() -> None:
    """Run the command line; an input error prints one line."""
    try:
        app(prog_name="python -m paper")
    except (InputError, MissingExtraError) as error:
        sys.exit(f"paper: {error}")


class _News:
    """Prints the progress of an experiment, at most once every ``PATIENCE`` seconds."""

    def __init__(self, name: str) -> None:
        self.name, self.last = name, perf_counter()

    def tell(self, news: str) -> None:
        """Print a line, unless the last one is recent."""
        if perf_counter() - self.last > PATIENCE:
            self.last = perf_counter()
            typer.echo(f"{self.name}: {news}", err=True)


def _check_names(names: Sequence[str] | None) -> list[str]:
    """Return these names in the order of the paper; all of them when there are none."""
    for name in names or ():
        check_choice("NAME", name, NAMES)
    return [name for name in NAMES if not names or name in names]


def _conclude(chosen: Sequence[str], out: Path, scale: Scale) -> None:
    """Write the page, where the largest finished scale decides, and print the verdicts of this scale."""
    out.mkdir(parents=True, exist_ok=True)
    claims = load_claims()
    write_whole(out / "verdicts.html", verdicts_page(judge_all(claims, out), out, read_published()))
    mine = [claim for claim in claims if claim.experiment in chosen]
    ready = [claim for claim in mine if scale in claim.scales]
    _print_verdicts(judge_all(ready, out, scales=(scale,)))
    console = Console(highlight=False)
    if len(ready) < len(mine):
        console.print(f"decided only at another scale: {len(mine) - len(ready)} of {len(mine)} claims", style="dim")
    console.print(f"wrote {escape(str(out / 'verdicts.html'))}", soft_wrap=True)


def _print_verdicts(judged: Sequence[Judged]) -> None:
    console = Console(highlight=False)
    if judged:
        console.print(verdicts_table(judged))
        console.print(summary(judged))
