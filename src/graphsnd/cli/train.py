"""``graphsnd train``: train a team and log its diversity."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphsnd.cli import options as shared
from graphsnd.cli.hydra_engine import run_hydra
from graphsnd.cli.training import parse_place, read_task, resume_task, run_engine, run_task
from graphsnd.errors import InputError, check_choice

if TYPE_CHECKING:
    from graphsnd.rl import Task


def train(
    context: typer.Context,
    world: Annotated[str | None, typer.Argument(help="navigation, dispersion, simple_spread, or a preset.")] = None,
    engine: Annotated[
        str, typer.Option(metavar="stacked|hydra", help="hydra: all further arguments go to Hydra.")
    ] = "stacked",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where log, checkpoints and teams go.")] = Path("runs"),
    preset: Annotated[
        str | None,
        typer.Option(
            show_default="that of WORLD's name",
            help="navigation, navigation-100, navigation-small, simple_spread, or none.",
        ),
    ] = None,
    agents: Annotated[int | None, typer.Option(show_default=shared.OF_TASK, help="Team size.")] = None,
    iterations: shared.Iterations = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="0,1,2", show_default=shared.OF_TASK, help="Runs, stacked and trained together."),
    ] = None,
    envs: shared.Environments = None,
    diversity_every: Annotated[
        int | None, typer.Option(show_default=shared.OF_TASK, help="Iterations between two measurements of SND.")
    ] = None,
    change: shared.Changes = None,
    config: shared.Config = None,
    show: shared.ShowConfig = False,
    threads: shared.Threads = None,
    device: shared.Device = "auto",
    resume: shared.Resume = False,
    force: shared.Force = False,
    checkpoint_every: Annotated[int, typer.Option(help="Iterations between two checkpoints.")] = 25,
    keep_teams: Annotated[
        bool, typer.Option("--keep-teams", help="Keep the teams of each checkpoint, to measure over training.")
    ] = False,
    logger: shared.Loggers = None,
    stack: shared.StackSize = None,
    ray: shared.RayAddress = None,
) -> None:
    """Train a team with independent PPO (or MAPPO: --set critic=central) and log its diversity.

    Every agent has a policy and a critic of its own. FOLDER receives metrics.csv, curves.png, a checkpoint, and a
    team for each seed. Ctrl-C, SIGTERM and SIGHUP stop after the iteration that is running and save; --resume goes on
    from there.
    """
    if run_engine("train", engine, [world, *context.args], {"hydra": partial(run_hydra, "train")}):
        return
    loggers = shared.parse_loggers(logger)
    on = parse_place(device, out, ray, stack)
    from graphsnd.rl import Task

    if resume:
        task = resume_task(Task, context.params)
    else:
        named = {"environments": envs, "iterations": iterations, "diversity_every": diversity_every, "threads": threads}
        settings, of_world = shared.parse_changes(change, named)
        base = _base_task(world, preset, config)
        # Without a preset or a file, WORLD itself may be the name of a preset.
        own = base.world if world in (None, preset) or (preset is None and config is None) else str(world)
        task = dataclasses.replace(
            base,
            world=own,
            agents=base.agents if agents is None else agents,
            options=(base.options if own == base.world else {}) | of_world,  # which are of a world
            seeds=base.seeds if seeds is None else shared.parse_seeds(seeds),
            settings=base.settings.replace(**settings),
        )
    if show:
        shared.show_config(task)
        return
    run_task(
        task, out, device=on, force=force, ray=ray, stack=stack, keep_teams=keep_teams,
        resume=resume, checkpoint_every=checkpoint_every, loggers=loggers,
    )  # fmt: skip


def _base_task(world: str | None, preset: str | None, config: Path | None) -> Task:
    """Return what a file says, a preset where one is named, the world with the paper's settings elsewhere."""
    from graphsnd.rl import PRESETS, Task
    from graphsnd.rl.task import NO_PRESET

    if config is not None:
        if world in PRESETS and PRESETS[world].world != world:
            raise InputError("WORLD", "to be no preset beside --config, which says everything", repr(world))
        return read_task(config, preset, Task("navigation", None))
    if preset is not None and preset != NO_PRESET:
        check_choice("--preset", preset, PRESETS)
        return PRESETS[preset]
    if world is None:
        fix = "For example: graphsnd train navigation"
        raise InputError("WORLD", "or --preset, --config or --resume", "none of them", fix)
    return (PRESETS.get(world) if preset is None else None) or Task(world, None)
