"""``graphsnd control``: train teams whose diversity is held at a target, and audit it."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphsnd.cli import options as shared
from graphsnd.cli.hydra_engine import run_hydra
from graphsnd.cli.training import Engine, parse_place, read_task, resume_task, run_engine, run_task
from graphsnd.errors import InputError, check_choice


def control(
    context: typer.Context,
    world: Annotated[str | None, typer.Argument(help="dispersion, navigation or simple_spread.")] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="stacked|hydra|benchmarl", help="hydra, benchmarl: all further arguments go to Hydra."),
    ] = "stacked",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where log and checkpoints go.")] = Path("runs"),
    agents: Annotated[int | None, typer.Option(show_default="10", help="Team size.")] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="0.1,...", show_default="0.1", help="Diversities to hold, and: unconstrained, homogeneous."
        ),
    ] = None,
    designs: Annotated[
        str | None,
        typer.Option(
            metavar="complete,...",
            show_default="complete",
            help="Also bernoulli:0.1, regular:4, knn:3, matching, agents:4.",
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", show_default="0", help="Runs of each arm.")] = None,
    iterations: shared.Iterations = None,
    envs: shared.Environments = None,
    preset: Annotated[str | None, typer.Option(show_default="paper", help="paper, or small for a CPU.")] = None,
    change: shared.Changes = None,
    config: shared.Config = None,
    show: shared.ShowConfig = False,
    threads: shared.Threads = None,
    device: shared.Device = "auto",
    resume: shared.Resume = False,
    force: shared.Force = False,
    checkpoint_every: Annotated[int, typer.Option(help="Iterations between two checkpoints.")] = 10,
    logger: shared.Loggers = None,
    stack: shared.StackSize = None,
    ray: shared.RayAddress = None,
) -> None:
    """Train teams whose diversity is held at a target (DiCo), and audit the result.

    Every target is run with every design and every seed, all stacked. FOLDER receives metrics.csv, control.png,
    about.json, a checkpoint, and a team for each run. Ctrl-C, SIGTERM and SIGHUP stop after the iteration that is
    running and save; --resume goes on from there.

    [cyan]graphsnd control --engine benchmarl task=vmas/dispersion model.target=0.1 model.design=bernoulli:0.1[/cyan]
    runs the same controller inside BenchMARL, with its algorithms, tasks and options.
    """
    engines: dict[str, Engine] = {"hydra": partial(run_hydra, "control"), "benchmarl": _run_benchmarl}
    if run_engine("control", engine, [world, *context.args], engines):
        return
    from graphsnd.rl import CONTROL_PRESETS, ControlTask
    from graphsnd.rl.task import DISPERSION

    loggers = shared.parse_loggers(logger)
    on = parse_place(device, out, ray, stack)
    if resume:
        task = resume_task(ControlTask, context.params)
    else:
        if world is None and config is None:
            fix = "For example: graphsnd control dispersion --targets 0.1"
            raise InputError("WORLD", "or --config, or --resume", "none of them", fix)
        check_choice("--preset", preset or "paper", CONTROL_PRESETS)
        base = ControlTask(10, (0.1,), settings=CONTROL_PRESETS[preset or "paper"])
        base = base if config is None else read_task(config, preset, base)
        named = {"environments": envs, "iterations": iterations, "threads": threads}
        settings, of_world = shared.parse_changes(change, named)
        # The options of a task are those of its own world.
        own = base.options if world in (None, base.world) else dict(DISPERSION) if world == "dispersion" else {}
        task = dataclasses.replace(
            base,
            agents=base.agents if agents is None else agents,
            targets=base.targets if targets is None else tuple(_parse_target(t.strip()) for t in targets.split(",")),
            designs=base.designs if designs is None else tuple(part.strip() for part in designs.split(",")),
            seeds=base.seeds if seeds is None else shared.parse_seeds(seeds),
            world=world or base.world,
            options=own | of_world,
            settings=base.settings.replace(**settings),
        )
        task.make_world("cpu")  # so that an unknown world or option is refused before anything begins
    if show:
        shared.show_config(task)
        return
    run_task(
        task, out, device=on, force=force, ray=ray, stack=stack,
        resume=resume, checkpoint_every=checkpoint_every, loggers=loggers,
    )  # fmt: skip


def _run_benchmarl(words: list[str]) -> None:
    from graphsnd.integrations.benchmarl.run import main

    main(words)


def _parse_target(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
