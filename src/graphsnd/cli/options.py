"""Options that several commands read alike."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsnd.errors import InputError, check_choice, check_integer, printable, require
from graphsnd.files import parse_json, read_json

Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, or world.KEY=VALUE for an option of the world."),
]
OF_TASK = "see --show-config"  # where the default of an option is
Iterations = Annotated[int | None, typer.Option(show_default=OF_TASK, help="Rollouts, each followed by an update.")]
Environments = Annotated[int | None, typer.Option(show_default=OF_TASK, help="Environments of each run.")]
Threads = Annotated[
    int | None,
    typer.Option(show_default="1 for small teams and networks, all for others", help="Threads of torch on a CPU."),
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in FOLDER.")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="[ADDRESS]", help="Train stacks of runs on a Ray cluster: the one that is there, or a new one."
    ),
]
StackSize = Annotated[
    int | None, typer.Option("--stack", min=1, help="Runs per stack; all by default, chosen automatically with --ray.")
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="A task as YAML or JSON; also about.json of a run. Other options change it."
    ),
]
ShowConfig = Annotated[bool, typer.Option("--show-config", help="Print the task as YAML for --config, and exit.")]
Loggers = Annotated[
    list[str] | None,
    typer.Option(
        "--logger", metavar="tensorboard|wandb|mlflow|csv", help="Also log there, each run by itself; may be repeated."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Html = Annotated[Path | None, typer.Option(metavar="PATH", help="Write one self-contained page.")]
Png = Annotated[Path | None, typer.Option(metavar="PATH", help="Write the figure.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files of another kind.")]
# What only a new training takes, by the names of the arguments.
NEW = ("targets", "designs", "preset", "envs", "seeds", "change", "threads", "diversity_every", "config", "stack")
# What does not change the numbers, and the files, which come first.
NOT_REPEATED = ("files", "paths", "as_json", "html", "png", "table", "force")
ANY = "any"  # what --ray means without an address
# How files of each kind begin.
KINDS = {
    "page": rb"\s*<(!doctype )?html",
    "PNG": rb"\x89PNG",
    "GIF": rb"GIF8",
    "MP4": rb"....ftyp",
    "NPZ": rb"PK\x03\x04",
    "JSON": rb"\s*[{[]",
}


def check_output(
    option: str, path: Path | None, kind: str | None, *, inputs: Iterable[Path] = (), force: bool = False
) -> None:
    """Refuse a path that cannot be written, that is an input, or that holds something else, before any work is done.

    Args:
        option: For the message.
        path: Where to write; nothing is checked when None.
        kind: One of ``KINDS``, which an existing file has to be; None for any.
        inputs: Files that are read. Links to them count; ``force`` does not help here.
        force: Whether a file of another kind may be replaced.

    Raises:
        InputError: With what is in the way.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise InputError(option, "in a folder that exists", repr(str(path)))
    if path.is_dir():
        raise InputError(option, "to be a file", f"the folder {str(path)!r}")
    if not path.exists():
        return
    for one in inputs:
        if one.exists() and path.samefile(one):
            raise InputError(option, "to be another file than the input", repr(str(path)))
    if force or kind is None or not path.is_file():
        return
    with path.open("rb") as file:
        begin = file.read(64)
    if begin and not re.match(KINDS[kind], begin, re.IGNORECASE | re.DOTALL):
        fix = "Choose another name, or add --force."
        raise InputError(option, f"to be new, or a {kind} to replace", f"{str(path)!r}, which is something else", fix)


def check_pictures(html: Path | None, png: Path | None, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse paths of a page and a figure as :func:`check_output` does, and one path for both."""
    check_output("--html", html, "page", inputs=inputs, force=force)
    check_output("--png", png, "PNG", inputs=inputs, force=force)
    if html is not None and png is not None and os.path.realpath(html) == os.path.realpath(png):
        raise InputError("--png", "to be another file than --html", repr(str(png)))


def check_folder(out: Path, kinds: dict[str, str], *, force: bool = False) -> None:
    """Refuse a folder in which files of these names are of another kind than is written there."""
    for name, kind in kinds.items() if out.is_dir() else ():
        check_output("--out", out / name, kind, force=force)


def show_path(path: Path) -> str:
    """Return a path for rich's console: without control characters, and with its brackets as they are."""
    from rich.markup import escape

    return escape(printable(str(path)))


def list_written(paths: Iterable[Path]) -> None:
    """Print the files that were written."""
    from rich.console import Console

    for path in paths:
        Console(highlight=False).print(f"wrote {show_path(path)}", soft_wrap=True)


def repeat_command(command: str, files: Iterable[str], options: dict[str, Any]) -> str:
    """Return a command line without folders: enough to repeat what was done, nothing about the machine.

    Args:
        command: Such as ``measure``.
        files: Names of its files.
        options: By the names of the arguments, None or False where they were not given.

    Example:
        >>> repeat_command("measure", ["team.npz"], {"seed": 0, "json": True, "html": None})
        'graphsnd measure team.npz --json --seed 0'
    """
    words = ["graphsnd", command, *files]
    for name, value in sorted(options.items()):
        if value is None or value is False or name in NOT_REPEATED:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            text = value.name if isinstance(value, Path) else f"{value:g}" if isinstance(value, float) else str(value)
            words.append(text)
    return shlex.join(words)


def parse_changes(pairs: Sequence[str] | None, named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that a command line changes, and the options of the world.

    Args:
        pairs: What ``--set`` was given.
        named: Settings that have options of their own; None where they were not given.

    Raises:
        InputError: For a pair without ``=``, and for a setting that is given in both ways.

    Example:
        >>> parse_changes(["learning_rate=0.1", "world.horizon=9"], {"iterations": 5, "environments": None})
        ({'iterations': 5, 'learning_rate': 0.1}, {'horizon': 9})
    """
    given = {name: value for name, value in named.items() if value is not None}
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError("--set", "as KEY=VALUE", repr(pair), "For example: --set learning_rate=1e-3")
        if name in given:
            raise InputError("--set", f"without {name}, which another option sets", pair)
        try:
            value = parse_json(text)
        except ValueError:
            value = text
        if isinstance(value, int) and not isinstance(value, bool):
            check_integer("--set", value, f"to be below 2^63 for {name}", low=-(2**63), high=2**63 - 1)
        if name.startswith("world."):
            options[name.removeprefix("world.")] = value
        else:
            settings[name] = value
    return given | settings, options


def read_config(path: Path) -> Any:
    """Return what a configuration says: JSON, or YAML where that is installed.

    Raises:
        InputError: For a file that is missing or damaged.
        MissingExtraError: For YAML without PyYAML.
    """
    if path.suffix.lower() == ".json":
        return read_json(path, "--config")
    yaml = require("yaml", "pyyaml")
    try:
        loader: Any = type("Loader", (yaml.SafeLoader,), {})
        # YAML 1.1 takes 1e-3 for a text, for want of a dot.
        loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+e[-+]?\d+$"), [*"-+0123456789"])
        return yaml.load(path.read_text(encoding="utf-8"), loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # ValueError: no UTF-8, no such date
        why = " ".join(str(error).split())
        raise InputError("--config", "to be a whole YAML or JSON file", f"{str(path)!r} ({why})") from None


def show_config(task: Any) -> None:
    """Print a task as YAML."""
    task.make_world("cpu")  # so that an unknown world or option is refused
    typer.echo(require("yaml", "pyyaml").safe_dump(plain(task.to_dict()), sort_keys=False), nl=False)


def plain(value: Any) -> Any:
    """Return a value as JSON has it, with lists in place of tuples.

    Example:
        >>> plain({"hidden": (64, 64)})
        {'hidden': [64, 64]}
    """
    return json.loads(json.dumps(value))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return integers that are separated by commas.

    Example:
        >>> parse_seeds("0,1,2")
        (0, 1, 2)
    """
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError("--seeds", "to be integers separated by commas", repr(text)) from None
    expected = "to be integers from 0 to 2^63 - 1"
    return tuple(check_integer("--seeds", seed, expected, low=0, high=2**63 - 1) for seed in seeds)


def parse_loggers(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return what ``--logger`` was given, each once.

    Example:
        >>> parse_loggers(["csv", "wandb", "csv"])
        ('csv', 'wandb')
    """
    from graphsnd.rl.loggers import LOGGERS

    for name in names or ():
        check_choice("--logger", name, LOGGERS)
    return tuple(dict.fromkeys(names or ()))


def parse_device(name: str) -> str:
    """Return the device that ``auto``, ``cpu`` or ``cuda`` stands for on this machine."""
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise InputError("--device", "auto, cpu or cuda", repr(name))
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "that this machine has", "cuda", "Use cpu.")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def check_resumed(task: Any, given: dict[str, Any]) -> None:
    """Refuse options beside --resume that contradict the checkpoint.

    Args:
        task: The checkpoint's task.
        given: Options by the names of their arguments; None or empty where they were not given.

    Raises:
        InputError: For the first that does.
    """
    for name in NEW:
        if (value := given.get(name)) not in (None, [], ()):
            option = "--set" if name == "change" else f"--{name.replace('_', '-')}"
            raise InputError(option, "without --resume, which goes on with the settings of the checkpoint", value)
    for name, option in (("world", "WORLD"), ("agents", "--agents")):
        value, old = given.get(name), getattr(task, name)
        if value not in (None, old):
            raise InputError(option, f"to be {old!r}, which the checkpoint holds", repr(value))
