"""RLlib's modules as a team, and a callback that logs their diversity while an algorithm trains.

Needs ``ray[rllib]`` and its new API stack (RLModules), with PyTorch. See ``docs/rllib.md``.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, Deterministic, from_distribution
from graphsnd.errors import InputError, require
from graphsnd.integrations.probe import Probe
from graphsnd.integrations.spaces import SpacesTeam, read_actions, split_arrays, squash
from graphsnd.teams.team import Team

__all__ = ["DiversityCallback", "ModuleTeam", "load_team"]

RLlibCallback = require("ray.rllib.callbacks.callbacks", "'ray[rllib]'").RLlibCallback
tree = require("tree", "'ray[rllib]'")
MultiRLModule = require("ray.rllib.core.rl_module", "'ray[rllib]'").MultiRLModule


class ModuleTeam(SpacesTeam):
    """The modules of a ``MultiRLModule``, each of which answers for one agent of a team.

    Modules are compared by the distribution of the action, as they put it out: RLlib's actions are normalised to
    [-1, 1] before the environment gets them. Those that put out an action instead (DQN) are compared by it; for
    discrete actions total variation is then the share of observations on which two modules choose differently.

    Observations are ``[..., *shape]`` of the observation space; those of a Dict or Tuple space are a dict or tuple of
    such, with its keys. Recurrent modules take sequences ``[batch, time, *shape]``, along which each rolls a state of
    its own: ``graphsnd.measure(team, sequences)``.

    Args:
        modules: A ``MultiRLModule``, such as ``algorithm.env_runner.module``, or modules by name.
        squashed: Whether SAC is compared after its tanh, or before it.

    Raises:
        InputError: For modules with different spaces, and recurrent modules beside others.

    Example:
        >>> team = ModuleTeam(algorithm.env_runner.module)  # doctest: +SKIP
        >>> print(graphsnd.measure(team, observations))  # [..., features]  # doctest: +SKIP
    """

    def __init__(self, modules: Any, *, squashed: bool = True) -> None:
        named = modules if isinstance(modules, Mapping) else dict(sorted(getattr(modules, "items", dict)()))
        spaces = {name: (module.observation_space, module.action_space) for name, module in named.items()}
        policies = [_Policy(module, squashed) for module in named.values()]
        recurrent = {name: module.is_stateful() for name, module in named.items()}
        super().__init__("modules", spaces, policies, squashed=squashed, recurrent=recurrent)


class _Policy(nn.Module):
    """Computes the behaviour of one module."""

    def __init__(self, module: Any, squashed: bool) -> None:
        super().__init__()
        self.module, self.squashed = module, squashed

    def forward(self, observations: Tensor) -> Behavior:
        given = {"obs": split_arrays(self.module.observation_space, observations)}
        if self.module.is_stateful():  # from its first state, the same for every sequence
            repeat = lambda one: torch.as_tensor(one).to(observations.device).expand(len(observations), *one.shape)  # noqa: E731
            given["state_in"] = tree.map_structure(repeat, self.module.get_initial_state())
        answer = self.module.forward_inference(given)
        if "action_dist_inputs" in answer:
            return self._read(self.module.get_inference_action_dist_cls().from_logits(answer["action_dist_inputs"]))
        return read_actions(answer["actions"], self.module.action_space)

    def _read(self, distribution: Any) -> Behavior:
        if hasattr(distribution, "low"):  # a squashed Gaussian, of which it keeps the Gaussian
            after = squash(distribution._dist, distribution.low, distribution.high)
            return from_distribution(after, squashed=self.squashed)
        if hasattr(distribution, "_cats"):
            return from_distribution([part._dist for part in distribution._cats])
        if isinstance(getattr(distribution, "_dist", None), D.Distribution):
            return from_distribution(distribution._dist)
        return Deterministic(distribution.loc)


def load_team(checkpoint: str | os.PathLike[str], *, squashed: bool = True) -> ModuleTeam:
    """Return the modules of an algorithm's checkpoint as a team.

    RLlib unpickles its checkpoints: load what you trust.

    Args:
        checkpoint: Folder from ``algorithm.save_to_path()``, or the ``path`` of a checkpoint of Ray Tune; or the folder
            ``rl_module`` in it.
        squashed: Whether SAC is compared after its tanh, or before it.

    Example:
        >>> print(graphsnd.measure(load_team(algorithm.save_to_path()), observations))  # doctest: +SKIP
    """
    folder = Path(checkpoint).resolve()
    inner = folder / "learner_group" / "learner" / "rl_module"
    modules = MultiRLModule.from_checkpoint(inner if inner.is_dir() else folder)
    return ModuleTeam(modules if hasattr(modules, "items") else {folder.name: modules}, squashed=squashed)


class DiversityCallback(RLlibCallback):  # type: ignore[misc, valid-type]
    """Log the SND of the modules while an algorithm trains, as ``env_runners/diversity/snd`` of its results.

    SND is over agents, each with the module it is mapped to: those that share a module are 0 apart, unless ``columns``
    says where their observations tell them apart. Every environment runner measures the modules with which it acts, on
    the latest observations of all of its agents, once there are two of them. A result holds the mean over the
    measurements since the previous result.

    Args:
        modules: Names of modules whose agents are compared; all of them when None.
        every: Steps of the environment from one measurement to the next.
        observations: Largest number of observations to measure on, the latest ones.
        columns: Features in which a module that all compared agents share reads for which agent it acts, as in
            :meth:`ModuleTeam.shared`. What an agent's own observations hold there is its identity.
        **options: Options of :func:`graphsnd.measure`: ``design``, ``distance``, ``rel_tol`` and so on.

    Example:
        >>> config = config.callbacks(functools.partial(DiversityCallback, every=1000))  # doctest: +SKIP
        >>> config.build_algo().train()["env_runners"]["diversity"]["snd"]  # doctest: +SKIP
    """

    def __init__(
        self, modules: Any = None, *, every: int = 200, observations: int = 2048, columns: Any = None, **options: Any
    ) -> None:
        super().__init__()
        self.columns, self._own = columns, dict[str, Any]()  # the latest observation of each agent
        self.modules, self.probe = modules, Probe(every, observations, **options)
        self._seen: deque[tuple[Any, str]] = deque(maxlen=observations)
        self._module_of: dict[str, str] = {}  # by agent
        self._steps = 0

    def on_sample_end(self, *, env_runner: Any, metrics_logger: Any, samples: Any, **_: Any) -> None:
        """Keep what agents observed, and measure when it is time."""
        for name in self.modules or ():
            if name not in env_runner.module:
                raise InputError("modules", f"among {', '.join(env_runner.module.keys())}", repr(name))
        for episode in samples:
            self._steps += len(episode)
            for agent, part in episode.agent_episodes.items():
                name = episode.module_for(agent)
                if self.modules is None or name in self.modules:
                    self._module_of[str(agent)] = name
                    self._own[str(agent)] = part.get_observations(-1)
                    self._seen.extend((part.get_observations(step), episode.id_) for step in range(len(part) + 1))
        if len(self._module_of) < 2 or not self.probe.due(self._steps):
            return
        rows, episodes = zip(*self._seen, strict=True)
        team: Any = ModuleTeam({agent: env_runner.module[name] for agent, name in sorted(self._module_of.items())})
        team.refuse_memory("modules")
        team = team if self.columns is None else self._share(env_runner.module)
        shown = tree.map_structure(lambda *each: torch.as_tensor(np.stack(each)), *rows)
        clusters = torch.as_tensor(np.unique(episodes, return_inverse=True)[1])
        for name, number in self.probe.measure(self._steps, team, shown, clusters=clusters).items():
            metrics_logger.log_value(("diversity", name), number, reduce="mean")

    def _share(self, modules: Any) -> Team:
        """Return the team of agents that share one module."""
        one = ModuleTeam({name: modules[name] for name in sorted(set(self._module_of.values()))})
        agents, columns, rows = sorted(self._module_of), self.columns, [row for _, row in sorted(self._own.items())]
        if isinstance(columns, Mapping):
            ((key, columns),) = columns.items()
            rows = [row[key] for row in rows]
        identity = torch.as_tensor(np.stack([np.asarray(row)[columns].reshape(-1) for row in rows]))
        return ModuleTeam.shared(one, agents, columns=self.columns, identity=identity)
