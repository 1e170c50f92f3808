"""Where strings become worlds; the only such place."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphsnd.errors import InputError
from graphsnd.worlds.dispersion import Dispersion
from graphsnd.worlds.navigation import Navigation
from graphsnd.worlds.pettingzoo_world import PettingZooWorld
from graphsnd.worlds.simple_spread import SimpleSpread
from graphsnd.worlds.vmas_world import VmasWorld
from graphsnd.worlds.world import World

# With the number of agents that the original has unless told otherwise.
BATCHED: dict[str, tuple[type[Navigation | Dispersion | SimpleSpread], int]] = {
    "navigation": (Navigation, 4),
    "dispersion": (Dispersion, 4),
    "simple_spread": (SimpleSpread, 3),
}
EXAMPLES = (*BATCHED, "vmas:balance", "mpe2:simple_spread_v3", "pettingzoo:<module>")


def parse_world(text: str, agents: int | None = None, environments: int = 32, **options: Any) -> World:
    """Make the world that ``text`` names.

    Args:
        text: ``navigation``, ``dispersion``, ``simple_spread``: batched worlds; ``vmas:<scenario>``,
            ``mpe2:<module>``, ``pettingzoo:<module>``: the real simulators.
        agents: Number of agents; that of the original when None.
        environments: Number of environments.
        **options: Of the world.

    Raises:
        InputError: With all forms, for another text; with all names, for an option that the world does not have.

    Example:
        >>> parse_world("dispersion", 10, 60, share_reward=True).observation_features
        34
    """
    name, colon, rest = text.strip().partition(":")
    if not colon and name in BATCHED:
        return _batched(name, agents, environments, options)
    if rest and name == "vmas":
        return VmasWorld(rest, environments, agents=agents, **options)
    if rest and name in ("mpe2", "pettingzoo"):
        return _pettingzoo(f"{name}:{rest}", agents, environments, options)
    raise InputError("world", f"to be one of {', '.join(EXAMPLES)}", repr(text))


def _batched(name: str, agents: int | None, environments: int, options: dict[str, Any]) -> World:
    kind, usual = BATCHED[name]
    known = [f.name for f in dataclasses.fields(kind) if f.init and f.name not in ("agents", "environments", "dense")]
    for option in options:
        if option not in known:
            raise InputError(f"option of {name}", f"to be one of {', '.join(known)}", repr(option))
    return kind(usual if agents is None else agents, environments, **options)


def _pettingzoo(text: str, agents: int | None, environments: int, options: dict[str, Any]) -> World:
    # Each environment calls its number of agents something else; this is the one that everybody resizes.
    if agents is not None and text == "mpe2:simple_spread_v3":
        options = {"N": agents, **options}
    world = PettingZooWorld(text, environments, **options)
    if agents not in (None, world.agents):
        fix = "Set it with the option that this environment has for it."
        raise InputError("agents", f"to be {world.agents}, which {text} has", agents, fix)
    return world
