"""``graphsnd reproduce``: run the paper's experiments and hold its claims against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsnd.cli.app import Commands
from graphsnd.cli.watch import Watch, watch
from graphsnd.errors import InputError, MissingExtraError
from paper.store import RESULTS

if TYPE_CHECKING:
    from rich.console import Console

    from paper import Claim, Judged, Scale

DURATION = {
    "smoke": "a minute or two on two cores, which is too little for most claims",
    "laptop": "half an hour on two cores",
    "paper": "hours on two cores; what needs a GPU is read from committed logs",
}


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Experiments, see --list; all of them unless told.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="smoke|laptop|paper", help="How much is run; laptop unless told.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results and pages go.")] = RESULTS,
    work: Annotated[Path, typer.Option(metavar="FOLDER", help="Where unfinished work is.")] = Path("runs/reproduce"),
    again: Annotated[bool, typer.Option("--again", help="Repeat what is finished, from its beginning.")] = False,
    verdicts: Annotated[bool, typer.Option("--verdicts", help="Run nothing: the verdicts on what was run.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Run nothing: the experiments and what was run.")] = False,
) -> None:
    """Run the paper's experiments and hold its claims against them.

    Every claim has a rule that was fixed before measuring, and gets a verdict: confirmed, confirmed in direction,
    corrected, or not confirmed. Results go to FOLDER as JSON with a figure, and all claims to a page. What is finished
    is not repeated; Ctrl-C stops, and the same command goes on from there.

    [cyan]graphsnd reproduce recovery --scale smoke[/cyan]
      One experiment in seconds.

    [cyan]graphsnd reproduce --scale laptop[/cyan]
      All of them.

    [cyan]graphsnd reproduce --verdicts[/cyan]
      Every claim, decided by the largest scale that was run.
    """
    from paper.judging.claims import load_claims
    from paper.registry import check_names

    at = _scale(scale)
    chosen = check_names(names or [])
    if show:
        _list(chosen, out)
        return
    if verdicts:
        if not any(out.glob("*/*.json")):
            fix = "Run an experiment, or point --out to the results/ of a clone."
            raise InputError("--out", "to be a folder with results", repr(str(out)), fix)
        _print(_judge([claim for claim in load_claims() if claim.experiment in chosen], out, at))
        return
    from paper import Scale

    at = at or Scale.LAPTOP
    failed = _run(chosen, at, out, work, again=again)
    try:
        _conclude(load_claims(), chosen, out, at)
    except MissingExtraError as error:
        # A borrowed machine with a GPU may lack PyYAML; its results are judged elsewhere.
        typer.echo(f"no verdicts: {error}", err=True)
    for name, message in failed.items():
        typer.echo(f"graphsnd: {name}: {' '.join(message.split())}", err=True)
    if failed:
        raise typer.Exit(2)


def _scale(text: str | None) -> Scale | None:
    from paper import Scale

    if text is None:
        return None
    try:
        return Scale(text)
    except ValueError:
        raise InputError("--scale", f"to be one of {', '.join(DURATION)}", repr(text)) from None


def _run(names: Sequence[str], scale: Scale, out: Path, work: Path, *, again: bool) -> dict[str, str]:
    """Run the experiments one after the other; what went wrong with those that could not."""
    from paper.registry import NAMES

    failed: dict[str, str] = {}
    with watch(len(names)) as report:
        if len(names) > 1:
            all_of_them = f"; all take {DURATION[scale.value]}" * (len(names) == len(NAMES))
            report.say(f"{len(names)} experiments at {scale.value} scale{all_of_them}")
        for name in names:
            try:
                _one(name, scale, out, work, again, report)
            except (InputError, MissingExtraError, OSError) as error:
                failed[name] = str(error)
                report.end(f"{name}: could not run")
            except KeyboardInterrupt:
                report.say(f"stopped in {name}; go on with the same command")
                raise typer.Exit(130) from None
    return failed


def _one(name: str, scale: Scale, out: Path, work: Path, again: bool, report: Watch) -> None:
    from paper import find, run
    from paper.judging.words import took
    from paper.store import result_path

    there = result_path(out, name, scale).is_file() and not again
    report.begin(name)
    result = run(find(name), scale, out=out, work=work, again=again, step=report.cell)
    seconds = took(result.provenance["took_s"])
    report.end(f"{name}: {'already there, took' if there else 'took'} {seconds}")


def _judge(claims: Sequence[Claim], out: Path, scale: Scale | None) -> list[Judged]:
    from paper import Scale, judge_all

    return judge_all(claims, out, scales=tuple(Scale) if scale is None else (scale,))


def _conclude(claims: Sequence[Claim], chosen: Sequence[str], out: Path, scale: Scale) -> None:
    """Write the pages, and print what this scale says about the chosen experiments."""
    mine = [claim for claim in claims if claim.experiment in chosen]
    ready = [claim for claim in mine if scale in claim.scales]
    written = _pages(claims, out, scale)
    _print(_judge(ready, out, scale), larger=len(mine) - len(ready), written=written)


def _pages(claims: Sequence[Claim], out: Path, scale: Scale) -> list[Path]:
    """One page of this scale, and one on which the largest scale decides."""
    from paper.judging.page import verdicts_page

    written = []
    out.mkdir(parents=True, exist_ok=True)
    for only, name in ((scale, scale.value), (None, "verdicts")):
        command = "graphsnd reproduce" if only is None else f"graphsnd reproduce --scale {scale.value}"
        page = verdicts_page(_judge(claims, out, only), out, command=command, scale=only)
        written.append(out / f"{name}.html")
        written[-1].write_text(page, encoding="utf-8")
    return written


def _print(judged: Sequence[Judged], *, larger: int = 0, written: Sequence[Path] = ()) -> None:
    from rich.console import Console
    from rich.markup import escape

    from paper.judging.tables import summary, verdicts_table

    console = Console(highlight=False)
    if judged:
        console.print(verdicts_table(judged, width=console.width))
        console.print(summary(judged))
    if larger:
        console.print(f"{larger} {'more' if judged else 'claims'} can only be decided at another scale", style="dim")
    for path in written:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def _list(names: Sequence[str], out: Path) -> None:
    from rich.console import Console

    from benchmarks.report_budget_tables import plain_table
    from paper import Scale, find
    from paper.judging.words import took
    from paper.store import read_results

    console: Console = Console(highlight=False)
    table = plain_table("experiment", "", *(scale.value for scale in Scale))
    table.columns[0].no_wrap, table.columns[1].no_wrap, table.columns[1].justify = True, False, "left"
    for name in names:
        found = read_results(out, name)
        times = (took(found[scale].provenance["took_s"]) if scale in found else "-" for scale in Scale)
        table.add_row(name, find(name).title, *times)
    console.print(table)
    console.print(f"- not run yet; times of what is in {out}", style="dim", markup=False)


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")
app.command()(reproduce)


@app.callback()
def _paper() -> None:
    """The experiments of the Graph-SND paper, and a verdict on each of its claims."""
