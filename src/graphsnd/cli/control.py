"""``graphsnd control``: train teams whose diversity is held at a target, and audit it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsnd.cli.options import check_resumed, merged, parse_changes, parse_device, parse_seeds, say_finished
from graphsnd.cli.repeat import write_origin
from graphsnd.errors import InputError

if TYPE_CHECKING:
    from graphsnd.training.dico import Controlled, ControlRow, ControlTask, ControlTrainer

PATIENCE = 10.0  # seconds between two lines where there is no terminal
LONG = 10**9  # observations to learn from, counted as often as they are; hours on a CPU


def control(
    context: typer.Context,
    world: Annotated[str | None, typer.Argument(help="dispersion, navigation or simple_spread.")] = None,
    engine: Annotated[
        str, typer.Option(metavar="stacked|benchmarl", help="benchmarl: all further words go to BenchMARL's Hydra.")
    ] = "stacked",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where log and checkpoints go.")] = Path("runs"),
    agents: Annotated[int | None, typer.Option(help="Team size; 10 unless told.")] = None,
    targets: Annotated[
        str | None, typer.Option(metavar="0.1,...", help="Diversities to hold, and: unconstrained, homogeneous.")
    ] = None,
    estimators: Annotated[
        str | None,
        typer.Option(metavar="complete,...", help="Also bernoulli:0.1, regular:4, knn:3, matching, agents:4."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", help="Runs of each arm.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Rollouts, each followed by an update.")] = None,
    envs: Annotated[int | None, typer.Option(help="Environments of each run.")] = None,
    preset: Annotated[str | None, typer.Option(help="paper, or small for a CPU.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, or world.KEY=VALUE for an option of the world."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in FOLDER.")] = False,
    checkpoint_every: Annotated[int, typer.Option(help="Iterations between two checkpoints.")] = 10,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard event files.")] = False,
) -> None:
    """Train teams whose diversity is held at a target (DiCo), and audit what came of it.

    Every target is run with every estimator and every seed, all stacked. FOLDER receives metrics.csv, control.png,
    about.json and a checkpoint. Ctrl-C stops after the iteration that is running and saves; --resume goes on from
    there.

    [cyan]graphsnd control --engine benchmarl task=vmas/dispersion model.target=0.1 model.design=bernoulli:0.1[/cyan]
    runs the same controller inside BenchMARL, with its algorithms, tasks and options.
    """
    if engine == "benchmarl":
        from graphsnd.integrations.benchmarl.run import main

        main([*([] if world is None else [world]), *context.args])
        return
    if engine != "stacked":
        raise InputError("--engine", "stacked or benchmarl", repr(engine))
    if context.args:
        raise InputError("OPTIONS", "that graphsnd control knows", " ".join(context.args), "See --help.")
    from graphsnd.training.dico import control as run

    on = parse_device(device)
    said = {"--targets": targets, "--estimators": estimators, "--seeds": seeds, "--envs": envs, "--preset": preset}
    if resume:
        task = _resumed(out, said | {"--set": change or None}, world, agents, iterations)
    else:
        task = _task(world, agents, targets, estimators, seeds, iterations, envs, preset, change or ())
    _begin(task, on)
    with _watch(task) as (report, progress):
        result = run(
            task, out, device=on, resume=resume, checkpoint_every=checkpoint_every, tensorboard=tensorboard,
            report=report, progress=progress,
        )  # fmt: skip
    _show(result, out)
    if not result.finished:
        done = f"stopped after iteration {result.trainer.iteration} of {task.settings.iterations}"
        typer.echo(f"{done}; go on with: graphsnd control --resume --out {shlex.quote(str(out))}", err=True)
        raise typer.Exit(130)
    write_origin(task, out, device=on, seconds=result.seconds)


def _task(
    world: str | None,
    agents: int | None,
    targets: str | None,
    estimators: str | None,
    seeds: str | None,
    iterations: int | None,
    envs: int | None,
    preset: str | None,
    change: Sequence[str],
) -> ControlTask:
    from graphsnd.errors import check_choice
    from graphsnd.training.dico import PRESETS, ControlTask
    from graphsnd.training.dico.task import DISPERSION

    if world is None:
        fix = "For example: graphsnd control dispersion --targets 0.1"
        raise InputError("WORLD", "or --resume", "neither", fix)
    check_choice("--preset", preset or "paper", PRESETS)
    settings, options = parse_changes(change)
    named = {"environments": envs, "iterations": iterations}
    settings = merged(named, settings)
    task = ControlTask(
        agents=10 if agents is None else agents,
        targets=_targets(targets or "0.1"),
        estimators=tuple(part.strip() for part in (estimators or "complete").split(",")),
        seeds=parse_seeds(seeds),
        world=world,
        options=(dict(DISPERSION) if world == "dispersion" else {}) | options,
        settings=PRESETS[preset or "paper"].replace(**settings),
    )
    task.make_world("cpu")  # so that an unknown world or option is said before anything begins
    return task


def _targets(text: str) -> tuple[float | str, ...]:
    found: list[float | str] = []
    for part in (each.strip() for each in text.split(",")):
        try:
            found.append(float(part))
        except ValueError:
            found.append(part)
    return tuple(found)


def _resumed(
    out: Path, said: dict[str, Any], world: str | None, agents: int | None, iterations: int | None
) -> ControlTask:
    """The task of the checkpoint, perhaps with more iterations."""
    from graphsnd.training.dico import load_control

    kept = load_control(out)
    check_resumed(kept.task, said, world, agents)
    more = kept.task.settings.iterations if iterations is None else iterations
    say_finished(more, kept.iteration)
    return dataclasses.replace(kept.task, settings=kept.task.settings.replace(iterations=more))


def _begin(task: ControlTask, device: str) -> None:
    settings, runs = task.settings, len(task.runs())
    seen = min(settings.observations, task.agents * min(settings.minibatch, settings.frames))
    frames = f"{settings.environments} environments x {settings.steps} steps"
    work = f"{settings.optimiser_steps} optimiser steps, each with an estimate on {seen} observations"
    several = "1 run" if runs == 1 else f"{runs} runs"
    typer.echo(f"{several} of {task.agents} agents on {device}: {frames}, {work}", err=True)
    rows = runs * task.agents * settings.frames * settings.passes * settings.iterations
    if device == "cpu" and rows > LONG:
        typer.echo("these settings are made for a GPU; --preset small suits a CPU", err=True)


Report = Callable[[Sequence["ControlRow"], "ControlTrainer"], None]


@contextmanager
def _watch(task: ControlTask) -> Iterator[tuple[Report, Callable[[int], None]]]:
    """A bar on a terminal, which moves with every optimiser step; a line now and then elsewhere; both on stderr."""
    from rich.console import Console

    settings = task.settings
    if not Console(stderr=True).is_terminal:
        yield _lines(settings.iterations), lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=12), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task("", total=settings.iterations)
        before = 0

        def report(rows: Sequence[ControlRow], trainer: ControlTrainer) -> None:
            nonlocal before
            before = trainer.iteration
            shown.update(bar, completed=before, description=says(rows))

        def progress(done: int) -> None:
            shown.update(bar, completed=round(before + done / settings.optimiser_steps, 2))

        yield report, progress


def _lines(total: int) -> Report:
    begin = last = perf_counter()

    def report(rows: Sequence[ControlRow], trainer: ControlTrainer) -> None:
        nonlocal last
        now, iteration = perf_counter(), rows[0].iteration
        if iteration in (1, total) or now - last > PATIENCE:
            last = now
            typer.echo(f"{now - begin:7.1f} s  {iteration:>{len(str(total))}}/{total}  {says(rows)}", err=True)

    return report


def says(rows: Sequence[ControlRow]) -> str:
    """Mean reward, and how far audits and the paper's applied signal are off, over the controlled runs."""
    reward = sum(row.reward for row in rows) / len(rows)
    held = [row for row in rows if row.audit_error is not None and row.tracking_error is not None]
    parts = [f"reward {reward:.4f}"]
    if held:
        audit = sum(row.audit_error or 0.0 for row in held) / len(held)
        tracking = sum(row.tracking_error or 0.0 for row in held) / len(held)
        parts.append(f"audit error {audit:.1%}  tracking error {tracking:.1%}")
    for name in ("saturated", "zero", "empty", "invalid"):
        count = sum(getattr(row, name) for row in rows)
        if count:
            parts.append(f"{name} {count}")
    return "  ".join(parts)


def _show(result: Controlled, out: Path) -> None:
    from rich.console import Console
    from rich.markup import escape

    from graphsnd.plots import save_png
    from graphsnd.plots.training import control_figure, control_table
    from graphsnd.training.dico import read_control_rows

    rows = read_control_rows(out)
    if not rows:
        return
    written = [save_png(control_figure(rows), out / "control.png"), out / "metrics.csv"]
    console = Console(highlight=False)
    console.print(control_table(rows))
    device, eager = result.trainer.device.type, result.trainer.rollout.eager
    console.print(f"took {result.seconds:,.0f} s on {device}", style="dim")
    if device == "cuda" and eager is not None:
        console.print(f"rollout without a CUDA graph: {escape(eager)}", style="dim", soft_wrap=True)
    for path in written:
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)
