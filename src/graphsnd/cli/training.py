"""What ``graphsnd train`` and ``graphsnd control`` share: resuming, progress, results, and how to repeat a run."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from graphsnd.cli.options import check_folder, check_resumed, list_written, parse_device, read_config
from graphsnd.errors import InputError, check_choice, plural, printable
from graphsnd.files import write_whole

if TYPE_CHECKING:
    from graphsnd.rl import ControlTask, Task
    from graphsnd.rl.grid import Stack

WRITTEN = {"curves.png": "PNG", "control.png": "PNG", "about.json": "JSON"}  # training itself checks its log
PATIENCE = 10.0  # seconds between two lines where there is no terminal
LONG = 10**9  # observations to learn from, over all epochs; hours on a CPU
Engine = Callable[[list[str]], None]  # runs the words of a command line
Describe = Callable[[Sequence[Any]], str]  # from the rows of an iteration to a line about it


def run_engine(command: str, engine: str, words: Sequence[str | None], others: dict[str, Engine]) -> bool:
    """Run another engine than ours with all words of the command line, where it is asked for.

    Args:
        command: For the message.
        engine: What ``--engine`` was given.
        words: WORLD, and all that no option took.
        others: Engines by name.

    Returns:
        Whether it did.

    Raises:
        InputError: For an engine that there is not, and for unknown options of ours.
    """
    given = [word for word in words if word is not None]
    if engine in others:
        others[engine](given)
        return True
    check_choice("--engine", engine, ["stacked", *others])
    if unknown := given[words[0] is not None :]:
        raise InputError("OPTIONS", f"that graphsnd {command} knows", " ".join(unknown), "See --help.")
    return False


def read_task(config: Path, preset: str | None, base: Any) -> Any:
    """Return a task with what ``--config`` says."""
    if preset is not None:
        raise InputError("--preset", "without --config, which says everything", repr(preset))
    return base.with_config(read_config(config), str(config))


def resume_task(kind: type[Task] | type[ControlTask], given: dict[str, Any]) -> Any:
    """Return the task of a folder's checkpoint, perhaps with more iterations.

    Args:
        kind: What the command trains.
        given: The command's options by the names of its arguments, None or empty where they were not given.

    Raises:
        InputError: When it is of the other command, or the command line contradicts it.
    """
    from graphsnd.rl.checkpoint import load_checkpoint, read_grid

    out, iterations = Path(given["out"]), given["iterations"]
    if uses_stacks(out):
        task, done = read_grid(out)[0], 0
    elif given["ray"] is not None:
        raise InputError("--ray", "for a training that was cut into stacks", repr(str(out)), "Resume it without --ray.")
    else:
        saved = load_checkpoint(out, logged=True)
        task, done = saved.task, saved.iteration
    if not isinstance(task, kind):
        fix = f"Use graphsnd {task.command} --resume."
        raise InputError("checkpoint", f"of graphsnd {kind.command}", f"another in {out}", fix)
    check_resumed(task, given)
    more = task.settings.iterations if iterations is None else iterations
    if more == done:
        typer.echo(
            f"already finished: {done} of {more} {plural('iteration', more)}; --iterations {2 * done} goes on", err=True
        )
    return task.with_iterations(more)


def uses_stacks(out: Path, ray: str | None = None, stack: int | None = None) -> bool:
    """Return whether the runs of a task are to be trained stack by stack, or were before in its folder."""
    from graphsnd.rl.checkpoint import STACKS

    return ray is not None or stack is not None or (out / STACKS).is_dir()


def parse_place(device: str, out: Path, ray: str | None, stack: int | None) -> str | None:
    """Return what ``--device`` stands for; None where a cluster, or the settings of earlier stacks, are to say."""
    if device == "auto" and uses_stacks(out, ray, stack):
        return None
    check_choice("--device", device, ("auto", "cpu", "cuda"))
    return device if ray is not None else parse_device(device)  # of the workers, which this machine may lack


def run_task(
    task: Task | ControlTask,
    out: Path,
    *,
    device: str | None,
    force: bool,
    ray: str | None = None,
    stack: int | None = None,
    **options: Any,
) -> None:
    """Train a task with progress on stderr, and show the results.

    Args:
        task: What to train.
        out: Folder of its files.
        device: Where to train; None only for stacks.
        force: Whether files of another kind may be replaced in the folder.
        ray: Address of a cluster on which stacks of the runs are trained.
        stack: Runs of a stack.
        options: Others of :func:`graphsnd.rl.train`.

    Raises:
        Exit: With 130 when it was interrupted, 143 after SIGTERM, 129 after SIGHUP.
    """
    from graphsnd.plots.training import describe_control, iteration_describer
    from graphsnd.rl import ControlTask, train
    from graphsnd.rl.log import read_rows

    if isinstance(task, ControlTask):
        _announce(task, device)
    check_folder(out, WRITTEN, force=force)
    if uses_stacks(out, ray, stack):
        _run_grid(task, out, device=device, ray=ray, stack=stack or 0, **options)
        return
    assert device is not None
    total, steps = task.settings.iterations, task.settings.optimiser_steps
    frames = task.settings.samples * len(task.seeds)
    describe = describe_control if isinstance(task, ControlTask) else iteration_describer(frames)
    with warnings.catch_warnings(), watch(total, steps, describe) as (report, progress):
        warnings.showwarning = _show_warning
        record = partial(write_origin, task, out, device=device)
        result = train(
            task, out, device=device, report=report, progress=progress, on_start=lambda n: record(threads=n), **options
        )
        _leave_closed_terminal()
    rows: list[Any] = read_rows(out, task.row)
    threads = result.threads
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
        typer.echo(f"{done}; go on with: {_resume_command(task, out)}", err=True)
        raise typer.Exit(128 + result.stopped)
    record(threads=threads, seconds=result.seconds)


def _run_grid(task: Task | ControlTask, out: Path, **options: Any) -> None:
    """Train a grid of stacks with one table of them on stderr, and show the results.

    Raises:
        InputError: For stacks that failed, when the others are finished.
        Exit: As for :func:`run_task`.
    """
    from rich.live import Live

    from graphsnd.plots.training import describe_grid, grid_table
    from graphsnd.rl import train_grid
    from graphsnd.rl.checkpoint import STACKS, read_grid
    from graphsnd.rl.log import read_rows

    console, begin, last = Console(stderr=True), perf_counter(), 0.0
    first = -1  # iterations that were done before

    def record(stacks: Sequence[Stack], seconds: float | None = None) -> None:
        size, threads = max(len(each.task.run_names()) for each in stacks), stacks[0].task.settings.threads
        more = f" --stack {size}"
        write_origin(task, out, device=read_grid(out)[1], threads=threads, seconds=seconds, more=more)

    with Live(console=console, transient=True, auto_refresh=False) as live:

        def report(stacks: Sequence[Stack]) -> None:
            nonlocal first, last
            seconds = perf_counter() - begin
            news, first = first < 0, sum(stack.done for stack in stacks) if first < 0 else first
            if news:
                record(stacks)
            if console.is_terminal:
                live.update(grid_table(stacks, seconds, first), refresh=True)
            elif news or seconds - last > PATIENCE:
                last = seconds
                typer.echo(f"{seconds:7.1f} s  {describe_grid(stacks, seconds, first)}", err=True)

        result = train_grid(task, out, report=report, **options)
    rows: list[Any] = read_rows(out, task.row)
    if rows:
        list_written([out / STACKS, _show_rows(task, out, rows), out / "metrics.csv"])
    if result.finished:
        typer.echo(f"took {result.seconds:,.0f} s: {describe_grid(result.stacks, result.seconds)}", err=True)
    else:
        console.print(grid_table(result.stacks, result.seconds, first))
    if result.stopped:
        typer.echo(f"stopped; go on with: {_resume_command(task, out)}", err=True)
        raise typer.Exit(128 + result.stopped)
    failed = [stack for stack in result.stacks if stack.state == "failed"]
    if failed:
        fix = f"Try again with: {_resume_command(task, out)}"
        raise InputError("stacks", "to finish", f"{len(failed)} that failed", fix)
    record(result.stacks, result.seconds)


def _show_rows(task: Task | ControlTask, out: Path, rows: list[Any]) -> Path:
    """Print the table of a log, and return the file of its figure."""
    from graphsnd.plots.style import save_png
    from graphsnd.plots.training import control_figure, control_table, curves_figure, training_table
    from graphsnd.rl import ControlTask

    controlled = isinstance(task, ControlTask)
    Console(highlight=False).print((control_table if controlled else training_table)(rows))
    if controlled:
        return save_png(control_figure(rows), out / "control.png")
    return save_png(curves_figure(rows), out / "curves.png")


def _announce(task: ControlTask, device: str | None) -> None:
    settings, runs = task.settings, len(task.runs())
    seen = min(settings.observations, task.agents * min(settings.minibatch, settings.samples))
    sizes = {"environment": settings.environments, "step": settings.steps, "optimiser step": settings.optimiser_steps}
    environments, steps, updates = (f"{count} {plural(name, count)}" for name, count in sizes.items())
    work = f"{environments} x {steps}, {updates}, each with an estimate on {seen} {plural('observation', seen)}"
    where = device or "what there is"
    typer.echo(f"{runs} {plural('run', runs)} of {task.agents} agents on {where}: {work}", err=True)
    rows = runs * task.agents * settings.samples * settings.epochs * settings.iterations
    if device == "cpu" and rows > LONG:
        typer.echo("these settings are made for a GPU; --preset small suits a CPU", err=True)


def _resume_command(task: Task | ControlTask, out: Path) -> str:
    return f"graphsnd {task.command} --resume --out {printable(shlex.quote(str(out)))}"


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
        measured = getattr(rows[0], "snd", None) is not None
        if measured or iteration in (1, total) or now - last > PATIENCE:
            last = now
            typer.echo(f"{now - begin:7.1f} s  {iteration:>{len(str(total))}}/{total}  {text}", err=True)

    return report


def write_origin(
    task: Task | ControlTask, out: Path, *, device: str, threads: int, seconds: float | None = None, more: str = ""
) -> None:
    """Write machine, versions, commit, command, all settings and, at the end, the seconds to ``about.json``."""
    from graphsnd.plots.provenance import collect_provenance

    about = {"seeds": list(task.seeds), "device": device, "threads": threads}
    about |= {} if seconds is None else {"took_s": round(seconds, 2)}
    text = json.dumps(collect_provenance(command(task) + more) | about | {"task": task.to_dict()}, indent=1)
    write_whole(out / "about.json", text + "\n")


def command(task: Task | ControlTask) -> str:
    """Return a command that repeats a task, with every setting that is not the default, and its world's options.

    Example:
        >>> from graphsnd.rl import ControlTask, Settings, Task
        >>> command(Task("navigation", 4, {"collisions": False}, (0, 1), Settings(iterations=9)))
        'graphsnd train navigation --preset none --agents 4 --seeds 0,1 --set iterations=9 --set world.collisions=false'
        >>> command(ControlTask(4, (0.1, "unconstrained"), ("complete", "matching"), options={"food_radius": 0.1}))
        'graphsnd control dispersion --agents 4 --targets 0.1,unconstrained --designs complete,matching --seeds 0 \
--set world.food_radius=0.1'
    """
    from graphsnd.rl import PRESETS, ControlTask
    from graphsnd.rl.task import NO_PRESET

    words = ["graphsnd", task.command, task.world]
    # A preset of the world's name would put in what this task leaves at the default.
    if not isinstance(task, ControlTask) and task.world in PRESETS:
        words += ["--preset", NO_PRESET]
    words += [] if task.agents is None else ["--agents", str(task.agents)]
    if isinstance(task, ControlTask):
        words += ["--targets", _join(task.targets), "--designs", _join(task.designs)]
    words += ["--seeds", _join(task.seeds)]
    defaults = dataclasses.asdict(type(task.settings)())
    changed = {name: value for name, value in dataclasses.asdict(task.settings).items() if value != defaults[name]}
    for name, value in {**changed, **{f"world.{key}": option for key, option in task.options.items()}}.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _join(values: tuple[Any, ...]) -> str:
    return ",".join(str(value) for value in values)
