"""How ``graphsnd train`` runs a task: progress, results, and what to do when it stops."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from graphsnd.cli.options import list_written
from graphsnd.errors import InputError, plural, printable

if TYPE_CHECKING:
    from graphsnd.rl import Task
    from graphsnd.rl.grid import Stack
    from graphsnd.rl.log import Row

PATIENCE = 10.0  # seconds between two lines where there is no terminal
LONG = 10**9  # observations to learn from, over all epochs; hours on a CPU
Describe = Callable[[Sequence[Any]], str]  # from the rows of an iteration to a line about it


def resume_task(out: Path, iterations: int | None, *, on_ray: bool) -> Task:
    """Return the task of a folder's checkpoint, perhaps with more iterations.

    Args:
        out: Folder of a training.
        iterations: How many there are to be; those of the task when None.
        on_ray: Whether it is to go on on a cluster.
    """
    from graphsnd.rl.checkpoint import load_checkpoint, read_grid

    if uses_stacks(out):
        task, done = read_grid(out)[0], 0
    elif on_ray:
        raise InputError("--ray", "for a training that was cut into stacks", repr(str(out)), "Resume it without --ray.")
    else:
        saved = load_checkpoint(out, logged=True)
        task, done = saved.task, saved.iteration
    more = task.settings.iterations if iterations is None else iterations
    if more == done:
        typer.echo(
            f"already finished: {done} of {more} {plural('iteration', more)}; --iterations {2 * done} goes on", err=True
        )
    return task.with_iterations(more)


def uses_stacks(out: Path) -> bool:
    """Return whether a folder holds a training that was cut into stacks."""
    from graphsnd.rl.checkpoint import STACKS

    return (out / STACKS).is_dir()


def run_task(task: Task, out: Path, *, device: str, **options: Any) -> None:
    """Train a task with progress on stderr, and show the results.

    Args:
        task: What to train.
        out: Folder of its files.
        device: ``"cpu"`` or ``"cuda"``.
        options: Others of :func:`graphsnd.rl.train`.

    Raises:
        Exit: With 130 when it was interrupted, 143 after SIGTERM, 129 after SIGHUP.
    """
    from graphsnd.plots.training import describe_control, iteration_describer
    from graphsnd.rl import train
    from graphsnd.rl.log import read_rows

    runs, total, steps = len(task.run_names()), task.settings.iterations, task.settings.optimiser_steps
    if device == "cpu" and runs * (task.agents or 1) * task.settings.samples * task.settings.epochs * total > LONG:
        typer.echo("these settings take hours on a CPU; a preset with the name of a world takes minutes", err=True)
    describe = describe_control if task.target else iteration_describer(task.settings.samples * runs)
    with warnings.catch_warnings(), watch(total, steps, describe) as (report, progress):
        warnings.showwarning = _show_warning
        result = train(task, out, device=device, on_row=report, progress=progress, **options)
        _leave_closed_terminal()
    rows, threads = read_rows(out), result.threads
    if rows:
        written = [*(out / run for run in task.run_names()), _show_rows(task, out, rows)]
        where = device if device == "cuda" else f"{device} with {threads} {plural('thread', threads)}"
        console = Console(highlight=False)
        console.print(f"took {result.seconds:,.0f} s on {where}", style="dim")
        if device == "cuda" and result.trainer.eager is not None:
            why = f"without CUDA graphs: {result.trainer.eager}"
            console.print(why, style="dim", soft_wrap=True, markup=False)
        list_written([*written, out / "metrics.csv"])
    if not result.finished:
        done = f"stopped after iteration {result.trainer.iteration} of {total}"
        typer.echo(f"{done}; go on with: {_resume_command(out)}", err=True)
        raise typer.Exit(128 + result.stopped)


def run_grid(task: Task, out: Path, **options: Any) -> None:
    """Train stacks of runs with one table of them on stderr, and show the results.

    Args:
        task: What to train.
        out: Folder of its files.
        options: Others of :func:`graphsnd.rl.train_grid`.

    Raises:
        InputError: For stacks that failed, when the others are finished.
        Exit: As for :func:`run_task`.
    """
    from rich.live import Live

    from graphsnd.plots.training import describe_grid, grid_table
    from graphsnd.rl import train_grid
    from graphsnd.rl.checkpoint import STACKS
    from graphsnd.rl.log import read_rows

    console, begin, last = Console(stderr=True), perf_counter(), 0.0
    first = -1  # iterations that were done before

    with Live(console=console, transient=True, auto_refresh=False) as live:

        def report(stacks: Sequence[Stack]) -> None:
            nonlocal first, last
            seconds = perf_counter() - begin
            news, first = first < 0, sum(stack.done for stack in stacks) if first < 0 else first
            if console.is_terminal:
                live.update(grid_table(stacks, seconds, first), refresh=True)
            elif news or seconds - last > PATIENCE:
                last = seconds
                typer.echo(f"{seconds:7.1f} s  {describe_grid(stacks, seconds, first)}", err=True)

        stacks, stopped = train_grid(task, out, report=report, **options)
    if rows := read_rows(out):
        list_written([out / STACKS, _show_rows(task, out, rows), out / "metrics.csv"])
    seconds = perf_counter() - begin
    if all(stack.state == "finished" for stack in stacks):
        typer.echo(f"took {seconds:,.0f} s: {describe_grid(stacks, seconds)}", err=True)
    else:
        console.print(grid_table(stacks, seconds, first))
    if stopped:
        typer.echo(f"stopped; go on with: {_resume_command(out)}", err=True)
        raise typer.Exit(128 + stopped)
    failed = [stack for stack in stacks if stack.state == "failed"]
    if failed:
        fix = f"Try again with: {_resume_command(out)}"
        raise InputError("stacks", "to finish", f"{len(failed)} that failed", fix)


def _show_rows(task: Task, out: Path, rows: Sequence[Row]) -> Path:
    """Print the table of a log, and return the file of its figure."""
    from graphsnd.plots.style import save_png
    from graphsnd.plots.training import control_figure, control_table, curves_figure, training_table

    table, figure = (control_table, control_figure) if task.target else (training_table, curves_figure)
    Console(highlight=False).print(table(rows))
    return save_png(figure(rows), out / "curves.png")


def _resume_command(out: Path) -> str:
    return f"graphsnd train --resume --out {printable(shlex.quote(str(out)))}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"graphsnd: {message}", err=True)


def _leave_closed_terminal() -> None:
    """Redirect output of a closed terminal to the null device, as after SIGHUP: what follows must not fail for it."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)


@contextmanager
def watch(
    total: int, steps: int, describe: Describe
) -> Iterator[tuple[Callable[[Sequence[Any]], None], Callable[[int], None]]]:
    """Show a bar on a terminal, which moves with every gradient step, and lines now and then elsewhere; on stderr.

    Args:
        total: Number of iterations.
        steps: Gradient steps of each.
        describe: What to say about an iteration.
    """
    if not Console(stderr=True).is_terminal:
        yield _report_lines(total, describe), lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=12), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar, before = shown.add_task("", total=total), 0

        def report(rows: Sequence[Any]) -> None:
            nonlocal before
            before = rows[0].iteration
            shown.update(bar, completed=before, description=describe(rows))

        yield report, lambda done: shown.update(bar, completed=round(before + done / steps, 2))


def _report_lines(total: int, describe: Describe) -> Callable[[Sequence[Any]], None]:
    begin = last = perf_counter()

    def report(rows: Sequence[Any]) -> None:
        nonlocal last
        now, iteration, text = perf_counter(), rows[0].iteration, describe(rows)
        measured = rows[0].snd is not None
        if measured or iteration in (1, total) or now - last > PATIENCE:
            last = now
            typer.echo(f"{now - begin:7.1f} s  {iteration:>{len(str(total))}}/{total}  {text}", err=True)

    return report
