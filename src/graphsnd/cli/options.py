"""Options that several commands read alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from graphsnd.errors import InputError

Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, or world.KEY=VALUE for an option of the world."),
]
Threads = Annotated[
    int | None, typer.Option(help="Of torch on a CPU; by default one for small teams and networks, all for others.")
]
BreakLock = Annotated[
    bool, typer.Option("--break-lock", help="Take over the lock of a process that is known to be gone.")
]


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
            value = json.loads(text)
        except ValueError:
            value = text
        if name.startswith("world."):
            options[name.removeprefix("world.")] = value
        else:
            settings[name] = value
    return given | settings, options


def parse_seeds(text: str | None) -> tuple[int, ...]:
    """Return integers that are separated by commas; seed 0 for None.

    Example:
        >>> parse_seeds("0,1,2")
        (0, 1, 2)
    """
    try:
        return (0,) if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError("--seeds", "to be integers separated by commas", repr(text)) from None


def parse_device(name: str) -> str:
    """Return the device that ``auto``, ``cpu`` or ``cuda`` stands for on this machine."""
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise InputError("--device", "auto, cpu or cuda", repr(name))
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "that this machine has", "cuda", "Use cpu.")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def check_resumed(task: Any, given: dict[str, Any], world: str | None, agents: int | None) -> None:
    """Refuse options beside --resume that contradict the checkpoint.

    Args:
        task: The checkpoint's task.
        given: Options that only a new training takes, by name; None where they were not given.
        world: The world that was given.
        agents: The number of agents that was given.

    Raises:
        InputError: For the first that does.
    """
    for name, value in given.items():
        if value is not None:
            raise InputError(name, "without --resume, which goes on with the settings of the checkpoint", value)
    for name, value, old in (("WORLD", world, task.world), ("--agents", agents, task.agents)):
        if value not in (None, old):
            raise InputError(name, f"to be {old!r}, which the checkpoint holds", repr(value))
