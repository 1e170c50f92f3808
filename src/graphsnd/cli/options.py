"""Options that training and control read alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

from graphsnd.errors import InputError


def parse_changes(pairs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings, and options of the world."""
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError("--set", "as KEY=VALUE", repr(pair), "For example: --set learning_rate=1e-3")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if name.startswith("world."):
            options[name.removeprefix("world.")] = value
        else:
            settings[name] = value
    return settings, options


def merged(named: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that were given as options of their own, beside those of --set; saying one twice is refused.

    Example:
        >>> merged({"iterations": 5, "environments": None}, {"learning_rate": 0.1})
        {'iterations': 5, 'learning_rate': 0.1}
    """
    said = {name: value for name, value in named.items() if value is not None}
    for name in said:
        if name in settings:
            raise InputError("--set", f"without {name}, which another option says already", f"{name}={settings[name]}")
    return said | settings


def say_finished(iterations: int, done: int) -> None:
    """Where there is nothing left to resume, that there is not, and how to go on."""
    if iterations == done:
        typer.echo(f"already finished: {done} of {iterations} iterations; --iterations {2 * done} goes on", err=True)


def parse_seeds(text: str | None) -> tuple[int, ...]:
    """Integers with commas between; seed 0 for None.

    Example:
        >>> parse_seeds("0,1,2")
        (0, 1, 2)
    """
    try:
        return (0,) if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError("--seeds", "to be integers with commas between", repr(text)) from None


def parse_device(name: str) -> str:
    """The device that ``auto``, ``cpu`` or ``cuda`` stands for on this machine."""
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise InputError("--device", "auto, cpu or cuda", repr(name))
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "that this machine has", "cuda", "Use cpu.")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def check_resumed(found: Any, said: dict[str, Any], world: str | None, agents: int | None) -> None:
    """Nothing may be said beside --resume that the checkpoint says otherwise.

    Args:
        found: The checkpoint's task.
        said: Options that only a new training takes, by name; None where they were not given.
        world: What was given for the world.
        agents: And for the number of agents.
    """
    for name, value in said.items():
        if value is not None:
            raise InputError(name, "without --resume, which goes on with the settings of the checkpoint", value)
    for name, value, old in (("WORLD", world, found.world), ("--agents", agents, found.agents)):
        if value not in (None, old):
            raise InputError(name, f"to be {old!r}, which the checkpoint holds", repr(value))
