"""Settings and worlds that belong together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphsnd.errors import InputError
from graphsnd.training.settings import Settings


@dataclass(frozen=True)
class Preset:
    """A task with settings that suit it."""

    world: str  # what parse_world reads
    agents: int | None  # that of the world when None
    options: dict[str, Any] = field(default_factory=dict)  # of the world
    settings: Settings = field(default_factory=Settings)


NO_PRESET = "none"  # the world by itself with the default settings, where a preset has the world's name
PRESETS: dict[str, Preset] = {
    # The paper's run with 100 agents.
    "navigation": Preset(
        "navigation",
        100,
        {"world_spawning_x": 4.0, "world_spawning_y": 4.0, "agent_radius": 0.03, "horizon": 200},
    ),
    # Four agents that get to their goals within 100 iterations. The paper's table on the same world, with the reward
    # shared, leaves a third to a half of them short of it: each agent is then rewarded for what the other three do.
    "navigation-small": Preset(
        "navigation",
        4,
        {"shared_rew": False, "horizon": 200},
        Settings(
            environments=64, learning_rate=1e-3, entropy_coefficient=0.0, iterations=100, diversity_probability=0.5
        ),
    ),
    # The paper's second task. Its code made 20 rollouts of 25 steps for every agent and used them for that agent
    # alone; here all agents learn from the same 20.
    "simple_spread": Preset(
        "simple_spread",
        10,
        {"horizon": 25},
        Settings(
            steps=25, environments=20, minibatch=256, activation="relu", init="linear", actor_gain=1.0, iterations=500
        ),
    ),
}


def preset(name: str) -> Preset:
    """The preset of this name.

    Raises:
        InputError: For an unknown one, with those there are.

    Example:
        >>> preset("navigation").settings == Settings()
        True
    """
    if name not in PRESETS:
        raise InputError("preset", f"to be one of {', '.join(PRESETS)}", repr(name))
    return PRESETS[name]
