"""Worlds by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphsnd.errors import check_choice, check_type
from graphsnd.rl.worlds.dispersion import Dispersion
from graphsnd.rl.worlds.navigation import Navigation
from graphsnd.rl.worlds.simple_spread import SimpleSpread
from graphsnd.rl.worlds.world import World

BATCHED: dict[str, type[Navigation | Dispersion | SimpleSpread]] = {
    world.name: world for world in (Navigation, Dispersion, SimpleSpread)
}
HIDDEN = ("agents", "environments", "dense")  # fields that are not options


def parse_world(text: str, agents: int | None = None, environments: int = 32, **options: Any) -> World:
    """Return the world that ``text`` names.

    Args:
        text: ``navigation``, ``dispersion`` or ``simple_spread``.
        agents: Number of agents; the original's when None.
        environments: Number of environments.
        **options: Options of the world.

    Raises:
        InputError: For an unknown name or option; the message lists all names.

    Example:
        >>> parse_world("dispersion", 10, 60, share_reward=True).observation_features
        34
    """
    check_type("world", text, str, f"to be one of {', '.join(BATCHED)}")
    name = text.strip()
    check_choice("world", name, BATCHED)
    kind = BATCHED[name]
    known = [f.name for f in dataclasses.fields(kind) if f.init and f.name not in HIDDEN]
    for option in options:
        check_choice(f"option of {name}", option, known)
    if agents is not None:  # else the number that the original has
        options["agents"] = agents
    return kind(environments=environments, **options)
