"""Any PettingZoo parallel environment whose agents are alike, behind the protocol."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import InputError, require
from graphsnd.worlds.checks import check_counts
from graphsnd.worlds.simulator import Handle, Simulator, seeds
from graphsnd.worlds.world import Continuous, Discrete, Step, World


class PettingZooWorld(World):
    """A list of parallel environments that are stepped one after the other; needs the extra ``pettingzoo``.

    An environment terminates when all of its agents have, and is truncated when it is over in another way. An agent
    that leaves earlier sees zeros and is rewarded 0 until the others are done. An environment that is over must be
    reset before it is stepped again.

    Args:
        factory: Makes one parallel environment; or a module such as ``mpe2:simple_spread_v3`` or
            ``pettingzoo:butterfly.pistonball_v6``, whose ``parallel_env`` does.
        environments: How many.
        horizon: What to say about the length of episodes; it does not cut them. Pass the environment's own option
            (``max_cycles``) for that.
        device: Where tensors are kept; the environments compute on the CPU.
        **options: Keyword arguments of the factory.

    Raises:
        InputError: For an unknown module, or agents that differ in what they see or can do.
        MissingExtraError: Without the package that the text names.
    """

    spawns_on_host = True

    def __init__(
        self,
        factory: Callable[..., Any] | str,
        environments: int,
        *,
        horizon: int | None = None,
        device: torch.device | str = "cpu",
        **options: Any,
    ) -> None:
        check_counts(1, environments, horizon)
        self._name = factory if isinstance(factory, str) else getattr(factory, "__name__", "pettingzoo")
        self.environments, self.horizon, self.device = environments, horizon, torch.device(device)
        self._factory = _module(factory).parallel_env if isinstance(factory, str) else factory
        self._options = options
        probe = self._make()
        self._names = list(probe.possible_agents)
        self.agents = len(self._names)
        self._features = _alike("observations", [probe.observation_space(name).shape for name in self._names])[0]
        self._actions = _alike("actions", [_actions(probe.action_space(name)) for name in self._names])

    @property
    def name(self) -> str:
        """What it was made from."""
        return self._name

    @property
    def observation_features(self) -> int:
        """Length of what one agent sees."""
        return int(self._features)

    @property
    def actions(self) -> Continuous | Discrete:
        """What an agent may do."""
        return self._actions

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> Handle:
        """New environments, each reset with a seed of its own."""
        count = self.environments if environments is None else environments
        made = [self._make() for _ in range(count)]
        seen = [self._row(env.reset(seed=seed)[0]) for env, seed in zip(made, seeds(generator, count), strict=True)]
        return Handle(Simulator(made), 0, self._tensor(seen))

    def observe(self, state: Handle) -> Tensor:
        """What every agent sees, ``[E, N, f]``."""
        return state.observations

    def step(self, state: Handle, actions: Tensor) -> tuple[Handle, Step]:
        """Advance every environment; ``state`` is used up.

        Raises:
            InputError: For an environment that is over.
        """
        rows = [self._step(env, moves) for env, moves in zip(state.open(), self._moves(actions), strict=True)]
        seen, rewards, terminated, truncated = zip(*rows, strict=True)
        flags = (torch.tensor(flag, device=self.device) for flag in (terminated, truncated))
        observations = self._tensor(list(seen))
        return state.advance(observations), Step(observations, self._tensor(list(rewards)), *flags)

    def reset_done(self, state: Handle, done: Tensor, generator: torch.Generator | int) -> Handle:
        """Reset the finished environments with new seeds."""
        envs, rows = state.open(), done.nonzero()[:, 0].tolist()
        if not rows:
            return state
        observations = state.observations.clone()
        for row, seed in zip(rows, seeds(generator, len(rows)), strict=True):
            observations[row] = self._tensor([self._row(envs[row].reset(seed=seed)[0])])[0]
        return state.advance(observations)

    def positions(self, state: Handle) -> Tensor | None:
        """Where the agents are in a particle environment, ``[E, N, 2]``; None elsewhere."""
        return self._places(state, "agents")

    def goals(self, state: Handle) -> Tensor | None:
        """Where the landmarks are in a particle environment, ``[E, L, 2]``; None elsewhere."""
        return self._places(state, "landmarks")

    def _places(self, state: Handle, kind: str) -> Tensor | None:
        worlds = [getattr(env.unwrapped, "world", None) for env in state.open()]
        if not all(hasattr(world, "dim_p") and getattr(world, kind, None) for world in worlds):
            return None
        return self._tensor([np.stack([one.state.p_pos for one in getattr(world, kind)]) for world in worlds])

    def _make(self) -> Any:
        try:
            return self._factory(**self._options)
        except TypeError as error:
            raise InputError("options", f"that {self.name} accepts", repr(self._options), str(error) + ".") from error

    def _moves(self, actions: Tensor) -> list[Any]:
        if isinstance(self._actions, Discrete):
            rows: list[Any] = actions.tolist()
            return rows
        return list(actions.clamp(self._actions.low, self._actions.high).cpu().numpy())

    def _step(self, env: Any, moves: Any) -> tuple[Any, Any, bool, bool]:
        if not env.agents:
            fix = "Call world.reset_done(state, terminated | truncated, generator) after each step."
            raise InputError("state", "without finished environments", "one that is over", fix)
        acting = dict(zip(self._names, moves, strict=True))
        present = list(env.agents)
        seen, rewards, terminations, _, _ = env.step({name: acting[name] for name in present})
        over = not env.agents
        ended = over and all(terminations[name] for name in present)
        scores = np.array([rewards.get(name, 0.0) for name in self._names])
        return self._row(seen), scores, ended, over and not ended

    def _row(self, seen: dict[str, Any]) -> Any:
        nothing = np.zeros(self._features, dtype=np.float32)
        return np.stack([np.asarray(seen.get(name, nothing)).reshape(-1) for name in self._names])

    def _tensor(self, rows: list[Any]) -> Tensor:
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


def _actions(space: Any) -> Any:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if space.low.ndim == 1 and len({*space.low.tolist()}) == len({*space.high.tolist()}) == 1:
        return Continuous(space.shape[0], float(space.low[0]), float(space.high[0]))
    return repr(space)


def _alike(what: str, found: list[Any]) -> Any:
    if len(set(found)) > 1 or isinstance(found[0], str) or (isinstance(found[0], tuple) and len(found[0]) != 1):
        listed = ", ".join(sorted({str(one) for one in found}))
        raise InputError("factory", f"to make agents with the same flat {what}", listed)
    return found[0]
