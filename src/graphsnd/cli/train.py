"""``graphsnd train``: train a team, and log or control its diversity."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphsnd.cli.options import parse_device
from graphsnd.cli.training import resume_task, run_grid, run_task, uses_stacks
from graphsnd.errors import InputError, check_choice, check_integer
from graphsnd.files import parse_json, read_json

if TYPE_CHECKING:
    from graphsnd.rl import Task

PRESET = "that of the preset"
NEW = ("agents", "seeds", "change", "design", "stack")  # options that only a new training takes


def train(
    context: typer.Context,
    world: Annotated[
        str | None,
        typer.Argument(
            help="navigation, dispersion or simple_spread; the paper's navigation-100, dispersion-10 or dispersion-50; "
            "or settings.json of a run."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="0.3,...",
            help="Hold SND at this value. Several train together; also unconstrained, homogeneous.",
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            metavar="complete,...",
            show_default="complete",
            help="Pairs that the controller measures: bernoulli:0.1, regular:4, knn:3, matching, agents:4.",
        ),
    ] = None,
    agents: Annotated[int | None, typer.Option(min=2, show_default=PRESET, help="Team size.")] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", show_default="0", help="One run for each.")] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, show_default=PRESET, help="Rollouts, each followed by an update.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, or world.KEY=VALUE for an option of the world."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default="runs/WORLD[-TARGET]", help="Folder of log, checkpoint and teams."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in FOLDER.")] = False,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.")] = "auto",
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Iterations between two checkpoints.")] = 25,
    keep_teams: Annotated[
        bool, typer.Option("--keep-teams", help="Keep the teams of each checkpoint, to measure over training.")
    ] = False,
    logger: Annotated[
        list[str] | None,
        typer.Option(metavar="tensorboard|wandb", help="Also log there, each run by itself; may be repeated."),
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(min=1, help="Runs per stack; all by default, chosen automatically with --ray."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="[ADDRESS]", help="Train stacks on a Ray cluster: the one that is there, or a new one."),
    ] = None,
) -> None:
    """Train a team with independent PPO (or MAPPO: --set critic=central) and log its diversity.

    With --target diversity is controlled (DiCo) and audited: every target with every design and every seed. FOLDER
    receives metrics.csv, a figure, a checkpoint, and a team for each run. Ctrl-C, SIGTERM and SIGHUP stop after the
    iteration that is running and save; --resume goes on from there.
    """
    from graphsnd.rl.log import LOGGERS

    for name in logger or ():
        check_choice("--logger", name, LOGGERS)
    folder = _default_folder(world, target) if out is None else out
    if resume:
        for name in NEW:
            if value := context.params[name]:
                option = "--set" if name == "change" else f"--{name}"
                raise InputError(option, "without --resume, which goes on with the settings of the checkpoint", value)
        task = resume_task(folder, iterations, on_ray=ray is not None)
        _check_same(task, world, target)
    else:
        task = make_task(world, target, design, agents, seeds, iterations, change or ())
    on = parse_device(device, here=ray is None)
    options: dict[str, Any] = {
        "resume": resume, "checkpoint_every": checkpoint_every, "keep_teams": keep_teams,
        "loggers": tuple(dict.fromkeys(logger or ())),
    }  # fmt: skip
    if ray is not None or stack is not None or uses_stacks(folder):
        where = None if device == "auto" and (ray is not None or resume) else on
        run_grid(task, folder, device=where, ray=ray, stack=stack or 0, **options)
    else:
        run_task(task, folder, device=on, **options)


def make_task(
    world: str | None,
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
    base = _find_preset(world)
    settings, options = parse_changes(changes)
    if iterations is not None:
        settings["iterations"] = iterations
    task = dataclasses.replace(
        base,
        agents=base.agents if agents is None else agents,
        options=base.options | options,
        seeds=base.seeds if seeds is None else _parse_seeds(seeds),
        target=base.target if target is None else _parse_targets(target),
        design=base.design if design is None else _parse_designs(design),
        settings=base.settings.replace(**settings),
    )
    from graphsnd.rl.settings import CONTROLLED, INDEPENDENT

    if design is not None and task.target is None:
        raise InputError("--design", "with --target", repr(design), "Independent policies are not controlled.")
    for name in settings.keys() & set(CONTROLLED if task.target is None else INDEPENDENT):
        raise InputError("--set", f"{'with' if task.target is None else 'without'} a target for {name}", repr(name))
    task.make_world("cpu")  # so that an unknown option is refused before there is a folder
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
            raise InputError("--set", "as KEY=VALUE", repr(pair), "For example: --set learning_rate=1e-3")
        try:
            value = parse_json(text)
        except ValueError:
            value = text
        if isinstance(value, int) and not isinstance(value, bool):
            check_integer("--set", value, f"to be below 2^63 for {name}", low=-(2**63), high=2**63 - 1)
        (options if name.startswith("world.") else settings)[name.removeprefix("world.")] = value
    return settings, options


def _find_preset(world: str | None) -> Task:
    from graphsnd.rl import PRESETS, Task

    if world is None:
        raise InputError(
            "WORLD", f"to be one of {', '.join(PRESETS)}", "none", "For example: graphsnd train navigation"
        )
    if world.endswith(".json"):
        return Task.from_dict(read_json(Path(world), "WORLD"), Path(world))
    check_choice("WORLD", world, PRESETS)
    return PRESETS[world]


def _check_same(task: Task, world: str | None, target: str | None) -> None:
    """Refuse a world or target beside --resume that is not the checkpoint's."""
    if world is not None and (base := _find_preset(world)).world != task.world:
        raise InputError("WORLD", f"to be {task.world!r}, which the checkpoint holds", repr(base.world))
    if target is not None and _parse_targets(target) != task.target:
        raise InputError("--target", f"to be {task.target}, which the checkpoint holds", repr(target))


def _default_folder(world: str | None, target: str | None) -> Path:
    if world is None:
        raise InputError("WORLD", "or --out with --resume", "neither", "For example: graphsnd train navigation")
    held = "" if target is None else "-" + "-".join(part.strip() for part in target.split(","))
    return Path("runs") / (Path(world).stem + held)


def _parse_seeds(text: str) -> tuple[int, ...]:
    try:
        seeds = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError("--seeds", "to be integers separated by commas", repr(text)) from None
    if len(set(seeds)) < len(seeds):
        raise InputError("--seeds", "to be different", repr(text))
    return tuple(check_integer("--seeds", seed, "to be integers from 0 to 2^63 - 1", low=0) for seed in seeds)


def _parse_targets(text: str) -> tuple[float | str, ...]:
    from graphsnd.rl.task import check_target

    def parse(word: str) -> float | str:
        try:
            return float(word)
        except ValueError:
            return word

    return tuple(check_target(parse(word.strip()), "--target") for word in text.split(","))


def _parse_designs(text: str) -> tuple[str, ...]:
    from graphsnd import designs

    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        designs.parse(word, "--design")
    return words
