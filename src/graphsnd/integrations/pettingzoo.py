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
from torch.distributions import ComposeTransform, Distribution, Independent, TransformedDistribution

from graphsnd.behavior import Categorical, Deterministic, Gaussian
from graphsnd.errors import InputError, as_tensor, check_integer, describe, shape_of
from graphsnd.integrations.spaces import map_parts
from graphsnd.teams.answers import ask
from graphsnd.teams.policies import Policy

__all__ = ["collect"]

EVERY = object()  # stands for agents that have no policy of their own


@dataclass(frozen=True, eq=False, repr=False)
class Collected:
    """What the agents of an environment observed.

    Example:
        >>> seen = Collected({"a": torch.zeros(3, 4), "b": torch.ones(2, 4)}, {"a": torch.zeros(3), "b": torch.ones(2)})
        >>> seen.pooled.shape, seen.clusters.shape, list(seen.of(["b"]).by_agent)
        (torch.Size([5, 4]), torch.Size([5]), ['b'])
        >>> seen
        Collected(agents=2, observations=5, episodes=2: a (3, 4), b (2, 4))
    """

    # [observations, *features] of each agent, in the order of time; of Dict observations a dict of such, by part
    by_agent: dict[str, Any]
    episodes: dict[str, Tensor]  # int64 [observations], the episode of each of them

    def __repr__(self) -> str:
        agents, count = len(self.by_agent), sum(map(len, self.episodes.values()))
        episodes = len({episode for own in self.episodes.values() for episode in own.tolist()})
        shapes = [f"{agent} {map_parts(lambda part: tuple(part.shape), rows)}" for agent, rows in self.by_agent.items()]
        shown = ", ".join(shapes[:8]) + f" and {agents - 8} more" * (agents > 8)
        return f"Collected(agents={agents}, observations={count}, episodes={episodes}: {shown})"

    @property
    def pooled(self) -> Any:
        """Observations of all agents, ``[observations, *features]``: those of the first agent first.

        Dict observations are a dict of such, by part.

        Raises:
            InputError: When agents observe different things.
        """
        shapes = {agent: map_parts(lambda part: tuple(part.shape[1:]), rows) for agent, rows in self.by_agent.items()}
        alike = [agent for agent, shape in shapes.items() if shape == next(iter(shapes.values()))]
        if len(alike) < len(shapes):
            fix = f"Take those that are alike, as in collected.of({alike}).pooled."
            got = ", ".join(f"{agent} {shape}" for agent, shape in shapes.items())
            raise InputError("by_agent", "with observations of one shape", got, fix)
        return map_parts(lambda *parts: torch.cat(parts), *self.by_agent.values())

    @property
    def clusters(self) -> Tensor:
        """The episode of each pooled observation, for :func:`graphsnd.measure`."""
        return torch.cat(list(self.episodes.values()))

    def of(self, agents: Sequence[str]) -> Collected:
        """Return the part of some agents.

        Raises:
            InputError: For an agent that is not there.
        """
        for agent in agents:
            if agent not in self.by_agent:
                raise InputError("agents", f"among {', '.join(self.by_agent)}", repr(agent))
        return Collected({a: self.by_agent[a] for a in agents}, {a: self.episodes[a] for a in agents})


def collect(
    env: Any,
    policies: Mapping[str, Policy | None] | Sequence[Policy | None] | Policy | None,
    steps: int,
    seed: int = 0,
    *,
    deterministic: bool = False,
) -> Collected:
    """Step an environment with the policies of a team, and return what its agents observed.

    An episode that is over is followed by another one. An agent is asked while it is there: it may leave before the
    others, or join them later.

    Args:
        env: A PettingZoo environment, parallel or AEC, or a Gymnasium environment, in which each policy acts for
            ``steps`` by itself; or a function that makes one. It is reset, and is not closed.
        policies: By the agents' names, or a list in the order of ``possible_agents``, or one for all agents. A policy
            is what :func:`graphsnd.evaluate` takes, or has a ``predict`` as the models of Stable-Baselines3 do, which
            is given what their ``VecNormalize`` makes. None draws random actions, within the action mask where there
            is one.
        steps: Steps of the environment: of all agents in a parallel one, of one agent in an AEC environment.
        seed: Seed of the environment's first reset and of all draws. Global random state is left as it was.
        deterministic: Whether distributions act by their mean, that before a tanh, or most probable action: no draws.

    Returns:
        Observations as float32, by agent and pooled, with their episodes. Where they are a dict of ``observation`` and
        ``action_mask``, the first; other dicts are kept by part. Agents that were never there are left out.

    Raises:
        InputError: For something that is no environment, agents without a policy, and answers that are no actions.

    Example:
        >>> import gymnasium
        >>> seen = collect(lambda: gymnasium.make("CartPole-v1"), {"a": None, "b": None}, steps=50)
        >>> seen.pooled.shape, seen.by_agent["b"].shape
        (torch.Size([100, 4]), torch.Size([50, 4]))
    """
    steps = check_integer("steps", steps, "to be an integer, at least 1", low=1)
    seed = check_integer("seed", seed, "to be an integer in 0 .. 2**63 - 1", low=0)
    env = env() if callable(env) and (isinstance(env, type) or not hasattr(env, "reset")) else env
    if hasattr(env, "num_envs") or not all(hasattr(env, name) for name in ("reset", "step", "action_space")):
        fix = "For example: mpe2.simple_spread_v3.parallel_env(), or lambda: gymnasium.make('CartPole-v1')."
        raise InputError("env", "to be one PettingZoo or Gymnasium environment, or a function that makes it", env, fix)
    single = not callable(env.action_space)
    held = _by_name(policies, None if single else list(getattr(env, "possible_agents", ())))
    if not held:
        raise InputError("policies", "with one for each agent", "none", "For random actions: None.")
    run = _run_single if single else _run_aec if hasattr(env, "agent_iter") else _run_parallel
    recorder = _Recorder(env, held, seed, deterministic)
    # Policies draw from torch's generator, and models of Stable-Baselines3 from NumPy's too.
    state = np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            run(recorder, steps)
    finally:
        np.random.set_state(state)
    order = sorted(recorder.rows, key=lambda name: list(held).index(name) if name in held else len(held))
    made = {name: map_parts(lambda *parts: torch.stack(parts), *recorder.rows[name]) for name in order}
    return Collected(made, {name: torch.tensor(recorder.episodes[name]) for name in order})


def _by_name(policies: Any, agents: list[str] | None) -> dict[Any, Any]:
    """Return policies by the names of agents, under ``EVERY`` the one of all others where there is one.

    Args:
        policies: As in :func:`collect`.
        agents: The names that are known before the first step; None in an environment for one agent.
    """
    if isinstance(policies, Mapping | nn.ModuleDict):
        return dict(policies.items())
    if not isinstance(policies, Sequence | nn.ModuleList):
        return {**dict.fromkeys(["0"] if agents is None else agents, policies), EVERY: policies}
    listed = list(policies)
    names = list(map(str, range(len(listed)))) if agents is None else agents
    if len(listed) != len(names):
        raise InputError("policies", f"with one for each of {', '.join(names)}", f"a list of {len(listed)}")
    return dict(zip(names, listed, strict=True))


class _Recorder:
    """Lets policies act, and keeps what they were shown."""

    def __init__(self, env: Any, policies: dict[Any, Any], seed: int, deterministic: bool) -> None:
        self.env, self.policies, self.seed, self.deterministic = env, policies, seed, deterministic
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
        seen = map_parts(np.asarray, given.get("observation", given) if masked else given)
        if any(part.dtype.kind not in "biuf" for part in (seen.values() if isinstance(seen, dict) else [seen])):
            raise InputError("env", "with observations that are arrays of numbers, or a dict of them", describe(given))
        self.rows.setdefault(agent, []).append(_to_tensors(seen))
        self.episodes.setdefault(agent, []).append(self.episode)
        if agent not in self.policies and EVERY not in self.policies:
            fix = f'For random actions: {{..., "{agent}": None}}.'
            raise InputError("policies", f"with an entry for {agent!r}", ", ".join(map(repr, self.policies)), fix)
        policy = self.policies.get(agent, self.policies.get(EVERY))
        return _choose(policy, seen, space, mask, agent, self.deterministic, self.states)


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
        if name is EVERY:
            continue
        observation, info = recorder.reset(seed=recorder.seed)
        for _ in range(steps):
            action = recorder.act(name, observation, info, env.action_space)
            observation, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                observation, info = recorder.reset()


def _to_tensors(seen: Any) -> Any:
    """Return a copy of what was observed, as float32; one number as an array of one, but not as part of a dict."""
    dims = 0 if isinstance(seen, Mapping) else 1
    return map_parts(lambda part: torch.from_numpy(np.array(part, np.float32, ndmin=dims)), seen)


def _choose(
    policy: Any, seen: Any, space: Any, mask: Any, agent: str, deterministic: bool, states: dict[str, Any]
) -> Any:
    """Return an action of the space; a recurrent model finds its state of the step before in ``states``."""
    if policy is None:
        return space.sample() if mask is None else space.sample(mask)
    if hasattr(policy, "predict"):
        recurrent = hasattr(getattr(policy, "policy", None), "lstm_actor")  # of sb3-contrib
        memory = {"state": states.get(agent)} if recurrent else {}
        normalizer = getattr(policy, "get_vec_normalize_env", lambda: None)()  # what its training saw
        shown = seen if normalizer is None else normalizer.normalize_obs(seen)
        answer = policy.predict(shown, deterministic=deterministic, **memory)
        action = np.asarray(answer[0])
        if recurrent:
            states[agent] = answer[1]
    else:
        answer = as_tensor(ask(policy, map_parts(lambda part: part.unsqueeze(0), _to_tensors(seen)), agent))
        action = _draw(answer, mask, agent, deterministic)[0].cpu().numpy()
        each = answer.base_dist if isinstance(answer, Independent) else answer
        if isinstance(each, Categorical | torch.distributions.Categorical):
            action = action + getattr(space, "start", 0)  # they count from the first action
    box, shape = hasattr(space, "low"), space.shape  # None of a space of several parts
    if shape is not None and action.size == np.prod(shape, dtype=int) and (box or action.dtype.kind in "biu"):
        made: Any = action.reshape(shape)
        if box:
            made = np.asarray(np.clip(made, space.low, space.high)).astype(space.dtype)
        made = made if box or shape else int(made)
        if space.contains(made):
            return made
    fix = "" if box else "Return a distribution over the actions: graphsnd.Categorical(logits=...)."
    raise InputError("policies", f"to answer with actions of {space} for {agent!r}", describe(action), fix)


def _draw(answer: Any, mask: Any, agent: str, deterministic: bool) -> Tensor:
    """Return the action of an answer to one observation, ``[1, actions]`` or, discrete, ``[1]``."""
    if isinstance(answer, Deterministic):
        answer = answer.actions
    if isinstance(answer, Gaussian):
        answer = (answer.loc, answer.scale)
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = torch.distributions.Normal(*answer)
    if isinstance(answer, Categorical | torch.distributions.Categorical) and answer.probs.dim() == 2:
        probs = answer.probs
        if mask is not None:
            legal = torch.as_tensor(mask).to(probs).expand_as(probs)
            probs = probs * legal
            probs = torch.where(probs.sum(-1, keepdim=True) > 0, probs, legal)  # where it has no legal action in mind
        return probs.argmax(-1) if deterministic else torch.multinomial(probs, 1).squeeze(-1)
    if isinstance(answer, Categorical):
        answer = torch.distributions.Categorical(answer.probs)
    each = answer.base_dist if isinstance(answer, Independent) else answer
    if isinstance(each, TransformedDistribution) and deterministic:  # after a tanh: torch has no mean of it
        return ComposeTransform(each.transforms)(each.base_dist.mean)
    if getattr(each, "has_enumerate_support", False):  # discrete, several actions; not all distributions have a support
        return (answer.mode.nan_to_num() if deterministic else answer.sample()).long()
    if isinstance(answer, Distribution):
        return answer.mean if deterministic else answer.sample()
    if not isinstance(answer, Tensor) or len(answer) != 1:
        got = shape_of(answer) if isinstance(answer, Tensor) else type(answer).__name__
        raise InputError("policies", f"to answer one observation of {agent!r} with an action or a distribution", got)
    return answer
