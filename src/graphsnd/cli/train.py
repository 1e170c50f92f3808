"""``graphsnd train``: train a team, and log or control its diversity."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from graphsnd.cli.options import list_written, plain_warnings
from graphsnd.errors import InputError, check_choice, plural, printable
from graphsnd.files import parse_json, read_json, write_whole

if TYPE_CHECKING:
    from graphsnd.rl import Task
    from graphsnd.rl.grid import Stack

PRESET = "the preset's"
NEW = ("agents", "seeds", "change", "design", "stack")  # options that only a new training takes
PATIENCE = 10.0  # seconds between two lines where there is no terminal
LONG = 10**9  # observations to learn from, over all epochs; hours on a CPU


def train(
    context: typer.Context,
    world: Annotated[
        str | None,
        typer.Argument(
            metavar="WORLD",
            help="navigation, dispersion or simple_spread; the paper's navigation-100, dispersion-10 or dispersion-50; "
            "or settings.json of an earlier training, to repeat it.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="0.3,...",
            help="Hold SND at this value. Several values train together and are compared: 0,0.1,0.3,none. 0 shares all "
            "parameters, none is unconstrained, seek:0.05:0.8 looks for the best level.",
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            metavar="complete,...",
            show_default="complete",
            help="Which pairs the controller measures: bernoulli:0.1, regular:4, knn:3, matching, agents:4.",
        ),
    ] = None,
    agents: Annotated[int | None, typer.Option(metavar="N", show_default=PRESET, help="Team size.")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="0,1,2", show_default="0", help="Train one run for each seed.")
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=PRESET, help="Number of rollouts, with an update after each."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, or with world.KEY an option of the world."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default="runs/WORLD[-TARGET]", help="Where to write."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in FOLDER.")] = False,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.")] = "auto",
    checkpoint_every: Annotated[int, typer.Option(metavar="N", help="Iterations between two checkpoints.")] = 25,
    keep_teams: Annotated[
        bool,
        typer.Option("--keep-teams", help="Keep the teams of every checkpoint, to measure diversity over training."),
    ] = False,
    logger: Annotated[
        list[str] | None, typer.Option(metavar="tensorboard|wandb", help="Also log there. May be repeated.")
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", show_default="all; with --ray by rule", help="Number of runs that train as one."
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Train stacks of runs on a Ray cluster: auto, host:port, or local."),
    ] = None,
) -> None:
    """Train a team with PPO, and log or control its diversity.

    Without --target the agents are independent, and their SND is logged. With --target SND is held at that value
    (DiCo) and audited: one run for every target, design and seed. Several targets with 0 or none among them and several
    seeds end with a page: reward against audited SND, and whether diversity pays.

    FOLDER receives metrics.csv, a figure, a checkpoint, and the team of each run. Ctrl-C saves after the iteration that
    is running, and --resume continues from there.
    """
    from graphsnd.rl.checkpoint import STACKS

    if resume and out is not None and (world or target):
        raise InputError("out", "with --resume alone, without WORLD and --target", f"{world or target} too")
    if world is None and (out is None or not resume):
        raise InputError("world", "or --resume with --out", "none", "For example: graphsnd train navigation")
    held = "" if target is None else f"-{'-'.join(_split(target))}".replace(":", "-")
    folder = Path("runs") / f"{Path(world or '').stem}{held}" if out is None else out
    stacked = ray is not None or stack is not None or (folder / STACKS).is_dir()
    if resume:
        for name in NEW:
            if given := context.params[name]:
                raise InputError(name, "without --resume, which goes on with the settings of the checkpoint", given)
        task = _resume_task(folder, iterations, stacked)
    else:
        task = make_task(world or "", target, design, agents, seeds, iterations, change or ())
    levels = () if task.target is None else task.target
    if len(levels) > 1 and (len(task.seeds) < 2 or not {"homogeneous", "unconstrained"} & {*levels}):
        typer.echo("these levels get no verdict: it takes 0 or none among them, and several --seeds", err=True)
    options: dict[str, Any] = {
        "resume": resume, "checkpoint_every": checkpoint_every, "keep_teams": keep_teams,
        "loggers": tuple(dict.fromkeys(logger or ())),
    }  # fmt: skip
    check_choice("device", device, ("auto", "cpu", "cuda"))
    if stacked:
        _run_grid(task, folder, device=None if device == "auto" else device, ray=ray, stack=stack or 0, **options)
    else:
        _run_task(task, folder, device=device, **options)


def make_task(
    world: str,
    target: str | None,
    design: str | None,
    agents: int | None,
    seeds: str | None,
    iterations: int | None,
    changes: Sequence[str],
) -> Task:
    """Return the task that a command line describes.

    Example:
        >>> task = make_task("dispersion", "0.3", None, 6, "0,1", None, ["tau=0.1", "world.horizon=50"])
        >>> task.target, task.agents, task.seeds, task.settings.tau, task.options["horizon"]
        ((0.3,), 6, (0, 1), 0.1, 50)
    """
    from graphsnd.rl import PRESETS, Task
    from graphsnd.rl.settings import CONTROLLED, INDEPENDENT, check_different

    if world.endswith(".json"):
        task = Task.from_dict(read_json(Path(world), "world"), Path(world))
    else:
        check_choice("world", world, PRESETS)
        task = PRESETS[world]
    settings, options = parse_changes(changes)
    given: dict[str, Any] = {"options": task.options | options}
    if agents is not None:
        given["agents"] = agents
    if seeds is not None:
        try:
            given["seeds"] = tuple(map(int, _split(seeds)))
        except ValueError:
            raise InputError("seeds", "to be integers separated by commas", repr(seeds)) from None
        check_different("seeds", given["seeds"])
    if target is not None:
        given["target"] = tuple(map(_parse_target, _split(target)))
    if design is not None:
        given["design"] = _split(design)
    try:
        task = dataclasses.replace(task, **given, settings=task.settings.replace(**settings))
        task.make_world("cpu")  # so that an unknown option is refused before there is a folder
    except InputError as error:
        where = "--set " if error.name in settings else "--set world." if error.name in options else ""
        error.name = f"{where}{error.name}"
        raise
    if iterations is not None:
        task = task.with_iterations(iterations)
    if design is not None and task.target is None:
        raise InputError("design", "with --target", repr(design), "Independent policies are not controlled.")
    for name in settings.keys() & set(CONTROLLED if task.target is None else INDEPENDENT):
        raise InputError(f"--set {name}", f"{'with' if task.target is None else 'without'} a target", repr(task.target))
    return task


def parse_changes(pairs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that ``--set`` changes, and the options of the world.

    Example:
        >>> parse_changes(["learning_rate=0.1", "world.horizon=9", "hidden=[8]"])
        ({'learning_rate': 0.1, 'hidden': [8]}, {'horizon': 9})
    """
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError("change", "as KEY=VALUE", repr(pair), "For example: --set learning_rate=1e-3")
        try:
            value = parse_json(text)
        except ValueError:
            value = text
        (options if name.startswith("world.") else settings)[name.removeprefix("world.")] = value
    return settings, options


def _split(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


def _parse_target(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return "unconstrained" if word == "none" else word


def _resume_task(folder: Path, iterations: int | None, stacked: bool) -> Task:
    """Return the task of a folder's checkpoint, perhaps with more iterations."""
    from graphsnd.rl.checkpoint import load_checkpoint, read_grid

    if stacked:
        task, done = read_grid(folder)[0], 0
    else:
        saved = load_checkpoint(folder, logged=True)
        task, done = saved.task, saved.iteration
    total = task.settings.iterations if iterations is None else iterations
    if total == done:
        typer.echo(f"already finished: {done} iterations; go on with --iterations {2 * done}", err=True)
    return task.with_iterations(total)


def _run_task(task: Task, folder: Path, *, device: str, **options: Any) -> None:
    """Train a task with progress on stderr, and show the results.

    Raises:
        Exit: 130 if it was interrupted, 143 after SIGTERM, 129 after SIGHUP.
    """
    import torch

    from graphsnd.plots.training_tables import iteration_describer
    from graphsnd.rl import train
    from graphsnd.rl.cuda import check_cuda

    check_cuda(device)
    device = "cuda" if device == "auto" and torch.cuda.is_available() else device.replace("auto", "cpu")
    settings, names = task.settings, task.run_names()
    work = settings.samples * settings.epochs * settings.iterations * len(names) * (task.agents or 1)
    if device == "cpu" and work > LONG:
        typer.echo("these settings take hours on a CPU; the preset with the name of the world takes minutes", err=True)
    describe = iteration_describer(settings.samples * len(names))
    with plain_warnings(), _watch(settings.iterations, settings.optimiser_steps, describe) as (report, progress):
        result = train(task, folder, device=device, on_row=report, progress=progress, **options)
        _leave_closed_terminal()
    threads = "" if device == "cuda" else f" with {result.threads} {plural('thread', result.threads)}"
    _show_results(task, folder, [folder / name for name in names])
    typer.echo(f"took {result.seconds:,.0f} s on {device}{threads}")
    if device == "cuda" and result.trainer.eager is not None:
        typer.echo(f"without CUDA graphs: {result.trainer.eager}")
    if not result.finished:
        done = f"stopped after iteration {result.trainer.iteration} of {settings.iterations}"
        typer.echo(f"{done}; go on with: {_resume_command(folder)}", err=True)
        raise typer.Exit(128 + result.stopped)


def _run_grid(task: Task, folder: Path, **options: Any) -> None:
    """Train stacks of runs with one table of them on stderr, and show the results.

    Raises:
        InputError: For stacks that failed, when the others are finished.
        Exit: As for :func:`_run_task`.
    """
    from rich.live import Live

    from graphsnd.plots.training_tables import describe_grid, grid_table
    from graphsnd.rl import train_grid
    from graphsnd.rl.checkpoint import STACKS

    console, begin, last = Console(stderr=True), perf_counter(), -PATIENCE
    before: int | None = None  # iterations that were done before
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def report(stacks: Sequence[Stack]) -> None:
            nonlocal before, last
            seconds = perf_counter() - begin
            before = sum(stack.done for stack in stacks) if before is None else before
            if console.is_terminal:
                live.update(grid_table(stacks, seconds, before), refresh=True)
            elif seconds - last > PATIENCE:
                last = seconds
                typer.echo(f"{seconds:7.1f} s  {describe_grid(stacks, seconds, before)}", err=True)

        stacks, stopped = train_grid(task, folder, report=report, **options)
    _show_results(task, folder, [folder / STACKS])
    console.print(grid_table(stacks, perf_counter() - begin, before or 0))
    if stopped:
        typer.echo(f"stopped; go on with: {_resume_command(folder)}", err=True)
        raise typer.Exit(128 + stopped)
    if failed := sum(stack.state == "failed" for stack in stacks):
        raise InputError("stacks", "to finish", f"{failed} that failed", f"Try again with: {_resume_command(folder)}")


def _show_results(task: Task, folder: Path, written: Sequence[Path]) -> None:
    """Print the table of a log, draw its figure, and list what was written; nothing where the log is empty.

    Runs at several levels end with the verdict on them, and a page.
    """
    from graphsnd.plots import report
    from graphsnd.plots.style import save_png
    from graphsnd.plots.training import training_figure
    from graphsnd.plots.training_tables import control_table, training_curves, training_table
    from graphsnd.rl.log import read_rows

    if not (rows := read_rows(folder)):
        return
    Console(highlight=False).print((control_table if task.target else training_table)(rows))
    files = [*written, save_png(training_figure(rows), folder / "curves.png"), folder / "metrics.csv"]
    finished = sum(row.iteration == task.settings.iterations for row in rows) == len(task.run_names())
    if finished and task.target and (curves := training_curves(rows)):
        write_whole(folder / "levels.html", report(curves, title=f"How much diversity does {task.world} want?"))
        files.append(folder / "levels.html")
        for design, curve in curves.items():
            typer.echo(f"{design}: " * (len(curves) > 1) + f"{curve}\n")
    list_written(files)


def _resume_command(folder: Path) -> str:
    return f"graphsnd train --resume --out {printable(shlex.quote(str(folder)))}"


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
def _watch(
    total: int, steps: int, describe: Callable[[Sequence[Any]], str]
) -> Iterator[tuple[Callable[[Sequence[Any]], None], Callable[[int], None]]]:
    """Show progress on stderr: a bar that moves with every gradient step on a terminal, else a line now and then.

    Args:
        total: Number of iterations.
        steps: Gradient steps of each.
        describe: Returns a line about the rows of an iteration.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _report_lines(total, describe), lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=12), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        bar, before = shown.add_task("", total=total), 0

        def report(rows: Sequence[Any]) -> None:
            nonlocal before
            before = rows[0].iteration
            shown.update(bar, completed=before, description=describe(rows))

        yield report, lambda done: shown.update(bar, completed=round(before + done / steps, 2))


def _report_lines(total: int, describe: Callable[[Sequence[Any]], str]) -> Callable[[Sequence[Any]], None]:
    begin = last = perf_counter()

    def report(rows: Sequence[Any]) -> None:
        nonlocal last
        now, iteration, text = perf_counter(), rows[0].iteration, describe(rows)
        if rows[0].snd is not None or iteration in (1, total) or now - last > PATIENCE:
            last = now
            typer.echo(f"{now - begin:7.1f} s  {iteration:>{len(str(total))}}/{total}  {text}", err=True)

    return report
