"""``python -m paper``: run the paper's experiments and compare its claims with them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from graphsnd.cli.app import Command, Commands, join_lines
from graphsnd.cli.options import Force, check_folder, check_output, parse_device
from graphsnd.cli.progress import NEWS, steps
from graphsnd.errors import InputError, MissingExtraError, check_choice
from graphsnd.files import write_whole
from paper.experiment import Scale
from paper.judging.changes import changes_text
from paper.judging.claims import Claim, load_claims
from paper.judging.formatting import format_duration, summary, verdicts_table
from paper.judging.page import verdicts_page
from paper.judging.verdicts import Judged, judge_all
from paper.pack import pack
from paper.published import read_published, write_published
from paper.registry import NAMES, check_names, find
from paper.runner import WORK, run
from paper.runner import train as run_training
from paper.store import RESULTS, result_path

PATIENCE = 30.0  # seconds between two lines of news where there is no terminal
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help=f"Some of {', '.join(NAMES)} (default: all).")]
Ray = Annotated[
    str | None,
    typer.Option(metavar="[ADDRESS]", help="Train stacks on a Ray cluster: one that is there, or a new one."),
]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Results and pages.")]


def run_experiments(
    names: Names = None,
    scale: Annotated[Scale, typer.Option(help="How much is run.")] = Scale.LAPTOP,
    out: Out = RESULTS,
    work: Annotated[Path, typer.Option(metavar="FOLDER", help="Unfinished work.")] = WORK,
    again: Annotated[bool, typer.Option("--again", help="Repeat finished experiments from the start.")] = False,
    force: Force = False,
    ray: Ray = None,
) -> None:
    """Run experiments and judge the claims that they decide.

    Every claim has a rule, and gets a verdict: confirmed, confirmed in direction, corrected, not confirmed, or
    undecided where the noise of a timing spans a limit; rules.md shows the rules that changed since the first ones.
    Results go to FOLDER as JSON with a figure, and all claims to a page. What is finished is not repeated. Ctrl-C,
    SIGTERM and SIGHUP stop, and the same command resumes.

    On two cores all experiments take a minute or two at smoke scale, which is too little for most claims, ten to thirty
    minutes at laptop scale, and hours at paper scale. There, logs of trainings on a GPU are read from the results; a
    machine with a GPU trains those that are missing, and with [cyan]--again[/cyan] all of them; with
    [cyan]--ray[/cyan] the GPUs of a cluster do.

    [cyan]python -m paper run recovery --scale smoke[/cyan]
      One experiment in seconds.

    [cyan]python -m paper run[/cyan]
      All of them.
    """
    chosen = check_names(names or [])
    if ray is not None and scale is not Scale.PAPER:
        raise InputError("--ray", "with --scale paper, whose trainings are stacks", f"--scale {scale.value}")
    check_folder(out, {f"{scale.value}.html": "page", "verdicts.html": "page"}, force=force)
    for path in (result_path(out, name, scale) for name in chosen):
        check_folder(path.parent, {path.name: "JSON", path.with_suffix(".png").name: "PNG"}, force=force)
    failed = _run_all(chosen, scale, out, work, again=again, ray=ray)
    try:
        _conclude(load_claims(), chosen, out, scale)
    except MissingExtraError as error:
        # A borrowed machine with a GPU may lack PyYAML; its results are judged elsewhere.
        typer.echo(f"no verdicts: {error}", err=True)
    for name, message in failed.items():
        typer.echo(f"paper: {name}: {' '.join(message.split())}", err=True)
    if failed:
        raise typer.Exit(2)


def train_stacks(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(NAMES)}, with trainings.")],
    stacks: Annotated[str, typer.Option(metavar="NAMES", help="Some of its stacks, by commas (default: all).")] = "",
    device: Annotated[str, typer.Option(help="Where to train: cuda or cpu.")] = "cuda",
    out: Out = RESULTS,
    work: Annotated[Path, typer.Option(metavar="FOLDER", help="Unfinished work.")] = WORK,
    ray: Ray = None,
) -> None:
    """Train runs of a study at paper scale, and leave their logs where the experiment reads them.

    A stack is a set of runs that are trained together, named by the folder of its log below FOLDER. One that is
    stopped goes on with the same command, and a study can be completed over several visits to a machine with a GPU.
    The experiment itself, [cyan]python -m paper run NAME --scale paper[/cyan], trains all that are missing where there
    is a GPU, and reads the others. With [cyan]--ray[/cyan] each stack is a task of a cluster, whose
    nodes share both folders.

    [cyan]python -m paper train dico-50 --stacks control/n50-full/complete-target-0.12-seed-0[/cyan]
      Full SND at one target and seed, on all observations.
    """
    check_choice("--device", device, ("cpu", "cuda"))
    if ray is None:
        parse_device(device)
    experiment, chosen = find(name), stacks.split(",") if stacks else []
    with steps(1) as begin, _interrupting(name):
        begin(name)
        options: dict[str, Any] = {"device": device, "ray": ray, "step": _tell(begin, name)}
        run_training(experiment, chosen, out=out, work=work, **options)


def show_verdicts(
    names: Names = None,
    scale: Annotated[Scale | None, typer.Option(help="The only scale that counts (default: the largest).")] = None,
    out: Out = RESULTS,
) -> None:
    """Show the verdict on every claim, from results that are there."""
    chosen = check_names(names or [])
    if not any(out.glob("*/*.json")):
        raise InputError("--out", "to be a folder with results", repr(str(out)), "Run an experiment first.")
    _print_verdicts(_judge([claim for claim in load_claims() if claim.experiment in chosen], out, scale))


def pack_sources(file: Annotated[Path, typer.Argument(metavar="FILE", help="A .tgz.")]) -> None:
    """Pack the sources of this commit for a machine without the repository.

    Unpacked there, results know their commit and prove it by a hash. Sources that were changed are refused.
    """
    check_output("FILE", file, None)
    typer.echo(f"packed {pack(file)} into {file}")


def reduce_published(
    clone: Annotated[Path, typer.Argument(metavar="CLONE", help="Of the paper's public repository.")],
) -> None:
    """Reduce the author's public logs to the numbers that claims name, in results/published.json."""
    found = write_published(clone)
    typer.echo(f"{len(found.numbers)} numbers of {found.repository}, commit {found.commit[:7]}", err=True)


def _run_all(names: Sequence[str], scale: Scale, out: Path, work: Path, **options: Any) -> dict[str, str]:
    """Run the experiments one after the other; return the errors of those that failed."""
    failed: dict[str, str] = {}
    with steps(len(names)) as begin:
        for name in names:
            path = result_path(out, name, scale)
            before = path.stat().st_mtime_ns if path.is_file() else None
            begin(name)
            try:
                with _interrupting(name):
                    result = run(find(name), scale, out=out, work=work, step=_tell(begin, name), **options)
            except (InputError, MissingExtraError, OSError) as error:
                failed[name] = str(error)
            else:
                there = "already there, " if path.stat().st_mtime_ns == before else ""
                typer.echo(f"{name}: {there}took {format_duration(result.provenance['took_s'])}", err=True)
    return failed


def _tell(begin: Callable[[str], None], name: str) -> Callable[[str], None]:
    """Return what takes news: to the bar of a terminal, now and then as a line where there is none."""
    last, quiet = perf_counter(), sys.stderr.isatty()

    def tell(news: str) -> None:
        nonlocal last
        begin(f"{NEWS}{name}: {news}")
        if not quiet and perf_counter() - last > PATIENCE:
            last = perf_counter()
            typer.echo(f"{name}: {news}", err=True)

    return tell


@contextmanager
def _interrupting(name: str) -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt an experiment as Ctrl-C does, unless they were ignored before; then exit."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    there = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in there}
    for each, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(each, interrupt)
    try:
        yield
    except KeyboardInterrupt as stop:
        typer.echo(f"stopped in {name}; the same command resumes", err=True)
        raise typer.Exit(128 + (stop.args[0] if stop.args else signal.SIGINT)) from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _judge(claims: Sequence[Claim], out: Path, scale: Scale | None) -> list[Judged]:
    return judge_all(claims, out, scales=tuple(Scale) if scale is None else (scale,))


def _conclude(claims: Sequence[Claim], chosen: Sequence[str], out: Path, scale: Scale) -> None:
    """Write the pages, and print what this scale says about the experiments.

    One page has the verdicts of the largest scale that was run; a smaller scale has another.
    """
    written = [out / "verdicts.html", out / "rules.md"]
    out.mkdir(parents=True, exist_ok=True)
    published, judged = read_published(), _judge(claims, out, None)
    write_whole(written[0], verdicts_page(judged, out, command="python -m paper run", published=published))
    write_whole(written[1], changes_text(judged, out, published))
    if scale is not Scale.PAPER:
        command = f"python -m paper run --scale {scale.value}"
        written.append(out / f"{scale.value}.html")
        write_whole(written[-1], verdicts_page(_judge(claims, out, scale), out, command=command, scale=scale))
    mine = [claim for claim in claims if claim.experiment in chosen]
    ready = [claim for claim in mine if scale in claim.scales]
    _print_verdicts(_judge(ready, out, scale), larger=len(mine) - len(ready), written=written)


def _print_verdicts(judged: Sequence[Judged], *, larger: int = 0, written: Sequence[Path] = ()) -> None:
    console = Console(highlight=False)
    if judged:
        console.print(verdicts_table(judged))
        console.print(summary(judged))
    if larger:
        console.print(f"{larger} {'more' if judged else 'claims'} can only be decided at another scale", style="dim")
    for path in written:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)


app = typer.Typer(
    cls=Commands,
    help="The experiments of the Graph-SND paper, and a verdict on each of its claims.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for name, command in (
    ("run", run_experiments),
    ("train", train_stacks),
    ("verdicts", show_verdicts),
    ("pack", pack_sources),
    ("published", reduce_published),
):
    app.command(name, cls=Command, help=join_lines(command.__doc__))(command)
