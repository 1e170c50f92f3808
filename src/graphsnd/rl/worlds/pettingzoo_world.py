"""Any PettingZoo parallel environment whose agents are alike, as a world."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import InputError, describe, require
from graphsnd.rl.worlds.simulator import SimulatorWorld, draw_seeds
from graphsnd.rl.worlds.world import Discrete, Step


class PettingZooWorld(SimulatorWorld):
    """A list of parallel environments that are stepped one after the other; needs the extra ``pettingzoo``.

    An environment terminates when all of its agents have, and is truncated when it is over in another way. An agent
    that leaves earlier observes zeros and is rewarded 0 until the others are done. An environment that is over must be
    reset before it is stepped again.

    Args:
        factory: Makes one parallel environment; or a module such as ``mpe2:simple_spread_v3`` or
            ``pettingzoo:butterfly.pistonball_v6``, whose ``parallel_env`` does; or an environment, of which copies are
            made.
        environments: Number of environments.
        agents: Number of agents. ``mpe2:simple_spread_v3`` is made with it, others must have it; None for any.
        horizon: The length of episodes to report; it does not end them. Pass the environment's own option
            (``max_cycles``) for that.
        device: Where tensors are kept; the environments compute on the CPU.
        **options: Keyword arguments of the factory.

    Raises:
        InputError: For an unknown module, or agents that differ in what they see or can do.
        MissingExtraError: Without the package that the text names.

    Example:
        >>> world = PettingZooWorld("mpe2:simple_spread_v3", 2, agents=3)
        >>> world.agents, world.actions, world.observe(world.spawn(0)).shape
        (3, Discrete(count=5), torch.Size([2, 3, 18]))
    """

    def __init__(
        self,
        factory: Any,
        environments: int,
        *,
        agents: int | None = None,
        horizon: int | None = None,
        device: torch.device | str = "cpu",
        **options: Any,
    ) -> None:
        instance = hasattr(factory, "reset") and not isinstance(factory, type)
        if not instance and not callable(factory) and not isinstance(factory, str):
            raise InputError("factory", "to make an environment, to be one, or to name a module", describe(factory))
        if instance and options:
            raise InputError("factory", f"to be a function that takes {', '.join(options)}", "an environment")
        name = factory if isinstance(factory, str) else getattr(factory, "__name__", str(factory))
        super().__init__(name, agents, environments, horizon, device)
        named = isinstance(factory, str)
        self._factory = partial(deepcopy, factory) if instance else _module(factory).parallel_env if named else factory
        # Each environment has its own word for the number of agents; this is the one that is often resized.
        sized = agents is not None and factory == "mpe2:simple_spread_v3"
        self._options = {"N": agents, **options} if sized else options
        probe = self._make()
        self._names = list(probe.possible_agents)
        observations, actions = map(probe.observation_space, self._names), map(probe.action_space, self._names)
        self._describe("factory", agents, list(observations), list(actions))

    def _start(self, environments: int, generator: torch.Generator | int) -> tuple[Any, Tensor]:
        envs = [self._make() for _ in range(environments)]
        seeds = draw_seeds(generator, environments)
        return envs, self._tensor([self._row(env.reset(seed=seed)[0]) for env, seed in zip(envs, seeds, strict=True)])

    def _advance(self, simulator: Any, actions: Tensor) -> Step:
        rows = [self._step(env, moves) for env, moves in zip(simulator, self._moves(actions), strict=True)]
        observations, rewards, terminated, truncated = zip(*rows, strict=True)
        flags = (torch.tensor(flag, device=self.device) for flag in (terminated, truncated))
        return Step(self._tensor(observations), self._tensor(rewards), *flags)

    def _reset(self, simulator: Any, rows: list[int], before: Tensor, generator: torch.Generator | int) -> Tensor:
        observations = before.clone()
        for row, seed in zip(rows, draw_seeds(generator, len(rows)), strict=True):
            observations[row] = self._tensor([self._row(simulator[row].reset(seed=seed)[0])])[0]
        return observations

    def _places(self, simulator: Any, kind: str) -> Tensor | None:
        """Return the positions in particle environments; None in others, which have no plane."""
        worlds = [getattr(env.unwrapped, "world", None) for env in simulator]
        if not all(hasattr(world, "dim_p") and getattr(world, kind, None) for world in worlds):
            return None
        return self._tensor([np.stack([one.state.p_pos for one in getattr(world, kind)]) for world in worlds])

    def _make(self) -> Any:
        try:
            return self._factory(**self._options)
        except TypeError as error:
            raise InputError("options", f"that {self.name} accepts", repr(self._options), str(error) + ".") from error

    def _moves(self, actions: Tensor) -> list[Any]:
        if isinstance(self.actions, Discrete):
            return actions.tolist()
        return list(actions.clamp(self.actions.low, self.actions.high).cpu().numpy())

    def _step(self, env: Any, moves: Any) -> tuple[Any, Any, bool, bool]:
        if not env.agents:
            fix = "Call world.reset_done(state, terminated | truncated, generator) after each step."
            raise InputError("state", "without finished environments", "one that is over", fix)
        acting = dict(zip(self._names, moves, strict=True))
        present = list(env.agents)
        observations, rewards, terminations, _, _ = env.step({name: acting[name] for name in present})
        over = not env.agents
        ended = over and all(terminations[name] for name in present)
        scores = np.array([rewards.get(name, 0.0) for name in self._names])
        return self._row(observations), scores, ended, over and not ended

    def _row(self, observations: dict[str, Any]) -> Any:
        absent = np.zeros(self._features, dtype=np.float32)
        return np.stack([np.asarray(observations.get(name, absent)).reshape(-1) for name in self._names])

    def _tensor(self, rows: Sequence[Any]) -> Tensor:
        return torch.from_numpy(np.stack(rows)).to(self.device, self.dtype)


def _module(text: str) -> Any:
    package, _, rest = text.partition(":")
    if package not in ("mpe2", "pettingzoo") or not rest:
        raise InputError("factory", "to be a callable, mpe2:<module> or pettingzoo:<module>", repr(text))
    require(package, package)
    try:
        module = import_module(f"{package}.{rest}")
    except ImportError as error:
        raise InputError("factory", f"to name a module of {package}", repr(text), f"{error}.") from error
    if not hasattr(module, "parallel_env"):
        raise InputError("factory", "to name a module with a parallel_env", repr(text))
    return module
