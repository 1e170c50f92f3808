"""Observations from PettingZoo and Gymnasium environments, to show to all policies of a team.

Environments are recognised by their methods, so nothing has to be installed for this module itself. See
``docs/pettingzoo.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Categorical, Deterministic, Gaussian
from graphsnd.errors import InputError, as_tensor, describe, shape_of
from graphsnd.integrations.spaces import map_arrays
from graphsnd.teams.answers import ask, choose_outputs
from graphsnd.teams.policies import Policy

__all__ = ["collect"]


@dataclass(frozen=True, eq=False, repr=False)
class Collected:
    """Observations of the agents of an environment.

    Example:
        >>> seen = Collected({"a": torch.zeros(3, 4), "b": torch.ones(2, 4)}, {"a": torch.zeros(3), "b": torch.ones(2)})
        >>> seen.pooled.shape, seen.clusters.shape, list(seen.of(["b"]).by_agent)
        (torch.Size([5, 4]), torch.Size([5]), ['b'])
        >>> seen
        Collected(agents=2, observations=5, episodes=2)
    """

    # [observations, *features] of each agent, in the order of time; of Dict observations a dict of such, by key
    by_agent: dict[str, Any]
    episodes: dict[str, Tensor]  # int64 [observations], the episode of each of them

    def __repr__(self) -> str:
        shown = self.clusters
        return f"Collected(agents={len(self.by_agent)}, observations={len(shown)}, episodes={len(shown.unique())})"

    @property
    def pooled(self) -> Any:
        """Observations of all agents, ``[observations, *features]``: those of the first agent first.

        Dict observations are a dict of such, by key.

        Raises:
            InputError: When agents observe different things.
        """
        shapes = {agent: map_arrays(lambda part: tuple(part.shape[1:]), rows) for agent, rows in self.by_agent.items()}
        alike = [agent for agent, shape in shapes.items() if shape == next(iter(shapes.values()))]
        if len(alike) < len(shapes):
            fix = f"Take those that are alike, as in collected.of({alike}).pooled."
            got = ", ".join(f"{agent} {shape}" for agent, shape in shapes.items())
            raise InputError("by_agent", "with observations of one shape", got, fix)
        return map_arrays(lambda *rows: torch.cat(rows), *self.by_agent.values())

    @property
    def clusters(self) -> Tensor:
        """The episode of each pooled observation, for :func:`graphsnd.measure`."""
        return torch.cat(list(self.episodes.values()))

    def of(self, agents: Sequence[str]) -> Collected:
        """Return the part of some agents."""
        return Collected({name: self.by_agent[name] for name in agents}, {name: self.episodes[name] for name in agents})


def collect(
    env: Any,
    policies: Mapping[str, Policy | None] | Sequence[Policy | None] | Policy | None,
    steps: int,
    seed: int = 0,
) -> Collected:
    """Step an environment with the policies of a team, and return what its agents observed.

    A new episode follows one that is over. Agents may leave before the others or join later; an agent acts only while
    it is present.

    Args:
        env: A PettingZoo environment, parallel or AEC, or a Gymnasium environment, in which each policy acts for
            ``steps`` alone; or a function that makes one. It is reset, and is not closed.
        policies: Policies by the agents' names, or a list in the order of ``possible_agents``, or one for all agents.
            A policy is one of :func:`graphsnd.evaluate`, or a model of Stable-Baselines3, whose ``predict`` gets the
            output of its ``VecNormalize``. None draws random actions, within the action mask if there is one.
        steps: Steps of the environment: of all agents in a parallel one, of one agent in an AEC environment.
        seed: Seed of the environment's first reset and of all draws. Global random state does not change.

    Returns:
        Observations as float32, by agent and pooled, with their episodes. Of a dict of ``observation`` and
        ``action_mask`` the first is kept; other dicts are kept by key. Agents that never appeared are left out.

    Raises:
        InputError: For ``env`` that is no environment, agents without a policy, and answers that are no actions.

    Example:
        >>> import gymnasium
        >>> seen = collect(lambda: gymnasium.make("CartPole-v1"), {"a": None, "b": None}, steps=50)
        >>> seen.pooled.shape, seen.by_agent["b"].shape
        (torch.Size([100, 4]), torch.Size([50, 4]))
    """
    env = env() if callable(env) and (isinstance(env, type) or not hasattr(env, "reset")) else env
    if hasattr(env, "num_envs") or not all(hasattr(env, name) for name in ("reset", "step", "action_space")):
        fix = "For example: mpe2.simple_spread_v3.parallel_env(), or lambda: gymnasium.make('CartPole-v1')."
        raise InputError("env", "to be one PettingZoo or Gymnasium environment, or a function that makes it", env, fix)
    single = not callable(env.action_space)
    held = _by_name(policies, None if single else list(env.possible_agents))
    run = _run_single if single else _run_aec if hasattr(env, "agent_iter") else _run_parallel
    recorder = _Recorder(env, held, seed)
    # Policies draw from torch's generator, and models of Stable-Baselines3 from NumPy's too.
    state = np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            run(recorder, steps)
    finally:
        np.random.set_state(state)
    there = [name for name in held if name in recorder.rows]
    made = {name: map_arrays(lambda *rows: torch.stack(rows), *recorder.rows[name]) for name in there}
    return Collected(made, {name: torch.tensor(recorder.episodes[name]) for name in there})


def _by_name(policies: Any, agents: list[str] | None) -> dict[str, Any]:
    """Return policies by the names of agents, which are None in an environment for one agent."""
    if isinstance(policies, Mapping | nn.ModuleDict):
        return dict(policies.items())
    if not isinstance(policies, Sequence | nn.ModuleList):
        return dict.fromkeys(["0"] if agents is None else agents, policies)
    return dict(zip(agents or map(str, range(len(policies))), policies, strict=True))


class _Recorder:
    """Lets policies act, and keeps their observations."""

    def __init__(self, env: Any, policies: dict[str, Any], seed: int) -> None:
        self.env, self.policies, self.seed = env, policies, seed
        self.rows: dict[str, list[Any]] = {}
        self.episodes: dict[str, list[int]] = {}
        self.episode = -1
        self.states: dict[str, Any] = {}  # of recurrent models, by agent
        self.seeded: dict[int, Any] = {}  # holds the spaces, whose ids would be used again

    def reset(self, **options: Any) -> Any:
        self.episode += 1
        self.states = {}
        return self.env.reset(**options)

    def act(self, agent: str, given: Any, info: Any, space: Any) -> Any:
        """Record what an agent observes, and return its action."""
        if id(space) not in self.seeded:  # agents may share one
            space.seed(self.seed + len(self.seeded))
            self.seeded[id(space)] = space
        masked = isinstance(given, Mapping) and "action_mask" in given
        mask = given["action_mask"] if masked else (info or {}).get("action_mask")
        seen = map_arrays(np.asarray, given.get("observation", given) if masked else given)
        self.rows.setdefault(agent, []).append(_to_tensors(seen))
        self.episodes.setdefault(agent, []).append(self.episode)
        policy = self.policies[agent]
        if policy is None:
            return space.sample() if mask is None else space.sample(mask)
        if hasattr(policy, "predict"):
            return _fit(self._predict(agent, policy, seen), space, agent)
        shown = map_arrays(lambda part: part.unsqueeze(0), _to_tensors(seen))
        answer = as_tensor(ask(policy, shown, f"policy {agent}"))
        answer = answer.base_dist if isinstance(answer, D.Independent) else answer
        action = _draw(answer, mask, agent)[0].cpu().numpy()
        if isinstance(answer, Categorical | D.Categorical):
            action = action + getattr(space, "start", 0)  # they count from the first action
        return _fit(action, space, agent)

    def _predict(self, agent: str, model: Any, seen: Any) -> Any:
        """Return the action of a model of Stable-Baselines3, on observations that its ``VecNormalize`` makes."""
        normalizer = getattr(model, "get_vec_normalize_env", lambda: None)()
        shown = seen if normalizer is None else normalizer.normalize_obs(seen)
        if not hasattr(getattr(model, "policy", None), "lstm_actor"):
            return np.asarray(model.predict(shown)[0])
        # The state is of sb3-contrib: recurrent.
        action, self.states[agent] = model.predict(shown, state=self.states.get(agent))
        return np.asarray(action)


def _run_parallel(recorder: _Recorder, steps: int) -> None:
    env = recorder.env
    observations, infos = recorder.reset(seed=recorder.seed)
    for _ in range(steps):
        acting = ((name, observations[name], infos.get(name), env.action_space(name)) for name in env.agents)
        observations, _, _, _, infos = env.step({each[0]: recorder.act(*each) for each in acting})
        if not env.agents:
            observations, infos = recorder.reset()


def _run_aec(recorder: _Recorder, steps: int) -> None:
    env = recorder.env
    recorder.reset(seed=recorder.seed)
    while steps:
        if not env.agents:
            recorder.reset()
        name = env.agent_selection
        observation, _, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else recorder.act(name, observation, info, env.action_space(name)))
        steps -= not over


def _run_single(recorder: _Recorder, steps: int) -> None:
    env = recorder.env
    for name in recorder.policies:
        observation, info = recorder.reset(seed=recorder.seed)
        for _ in range(steps):
            action = recorder.act(name, observation, info, env.action_space)
            observation, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                observation, info = recorder.reset()


def _to_tensors(seen: Any) -> Any:
    """Return a copy of an observation as float32; a single number as an array of one, except in a dict."""
    dims = 0 if isinstance(seen, Mapping) else 1
    return map_arrays(lambda part: torch.from_numpy(np.array(part, np.float32, ndmin=dims)), seen)


def _fit(action: Any, space: Any, agent: str) -> Any:
    """Return an action in the shape, range and type of its space."""
    box, shape = hasattr(space, "low"), space.shape  # None of a space of several arrays
    if shape is not None and action.size == np.prod(shape, dtype=int) and (box or action.dtype.kind in "biu"):
        made = action.reshape(shape)
        if box:
            made = np.asarray(np.clip(made, space.low, space.high)).astype(space.dtype)
        made = made if box or shape else int(made)
        if space.contains(made):
            return made
    fix = "" if box else "Return a distribution over the actions: graphsnd.Categorical(logits=...)."
    raise InputError("policies", f"to answer with actions of {space} for {agent!r}", describe(action), fix)


def _draw(answer: Any, mask: Any, agent: str) -> Tensor:
    """Return the action of an answer to one observation, ``[1, actions]`` or, discrete, ``[1]``."""
    answer = choose_outputs(answer)
    if isinstance(answer, Deterministic):
        answer = answer.actions
    elif isinstance(answer, Gaussian):
        answer = D.Normal(answer.loc, answer.scale)
    elif isinstance(answer, Categorical):
        answer = D.Categorical(answer.probs)
    if isinstance(answer, D.Categorical) and mask is not None:
        legal = torch.as_tensor(mask).to(answer.probs).expand_as(answer.probs)
        probs = answer.probs * legal
        answer = D.Categorical(torch.where(probs.sum(-1, keepdim=True) > 0, probs, legal))  # no legal action in mind
    if isinstance(answer, D.Distribution):
        # Not all distributions have a support; those of discrete actions draw floats too.
        drawn = answer.sample()
        return drawn.long() if answer.has_enumerate_support else drawn
    if not isinstance(answer, Tensor) or len(answer) != 1:
        got = shape_of(answer) if isinstance(answer, Tensor) else type(answer).__name__
        raise InputError("policies", f"to answer one observation of {agent!r} with an action or a distribution", got)
    return answer
