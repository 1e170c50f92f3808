"""Teams of arbitrary callables: asked one after another, or all through one stacked module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.answers import along_agents, along_requests, behavior_of, take_agents
from graphsnd.teams.requests import runs
from graphsnd.teams.team import Team

Policy = Callable[[Tensor], Any]


class CallablesTeam(Team):
    """A list of policies, called in a loop.

    :meth:`~graphsnd.teams.team.Team.partial` calls each agent that was asked once, on the observations that asked
    for it, and no other agent.

    Args:
        policies: Each maps ``[..., 1, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        observation_features: Length of one observation, where known.

    Example:
        >>> CallablesTeam([torch.sin, torch.cos]).evaluate(torch.zeros(16, 2))
        Deterministic(agents=2, observations=16)
    """

    def __init__(
        self, policies: Sequence[Policy], *, squashed: bool = True, observation_features: int | None = None
    ) -> None:
        self.policies = list(policies)
        self.squashed = squashed
        self.agents = len(self.policies)
        self.observation_features = observation_features
        self.device = device_of(self.policies[0])

    def _evaluate(self, observations: Tensor) -> Behavior:
        # One agent's answer lacks the agents axis: it is asked for with an axis of one, and joined along it.
        single = observations.unsqueeze(-2)
        return along_agents([behavior_of(policy(single), squashed=self.squashed) for policy in self.policies])

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        sorted_ = runs(agents.to(observations.device))
        rows = sorted_.order // agents.shape[1]
        counts = sorted_.counts.tolist()
        answers = []
        for agent, asked in zip(sorted_.agents.tolist(), rows.split(counts), strict=True):
            answer = self.policies[agent](observations[asked].unsqueeze(-2))
            answers.append(behavior_of(answer, squashed=self.squashed))
        slots = torch.empty_like(sorted_.order)
        slots[sorted_.order] = torch.arange(slots.numel(), device=slots.device)
        return along_requests(answers, counts, slots, agents.shape)


class JointTeam(Team):
    """One module that answers for all agents at once, such as TorchRL's ``MultiAgentMLP``.

    It can't be asked about some agents only: ``partial`` evaluates all of them and picks, so it saves nothing, which
    ``proportional = False`` says.

    Args:
        policy: Answers with an agents axis in second to last place.
        agents: For modules that take one observation per agent, their number; each observation is then shown to all.
            None for modules that add the agents axis themselves.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        observation_features: Length of one observation, where known.
    """

    proportional = False

    def __init__(
        self, policy: Policy, *, agents: int | None, squashed: bool = True, observation_features: int | None = None
    ) -> None:
        self.policy = policy
        self._promised_agents = agents
        self.squashed = squashed
        self.observation_features = observation_features
        self.device = device_of(policy)
        self._agents = agents

    @property
    def agents(self) -> int:  # type: ignore[override]
        """Known when given, after the first evaluation, and from a trial when the observation's length is known."""
        if self._agents is None:
            if self.observation_features is None:
                fix = "Pass agents= or observation_features=, or evaluate the team once."
                raise InputError("agents", "to be known for a stacked module", "None", fix)
            with torch.no_grad():
                self._evaluate(_example_of(self.policy).new_zeros(1, self.observation_features))
        assert self._agents is not None
        return self._agents

    def partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        """As for every team, at the cost of all agents."""
        if self._agents is None and isinstance(observations, Tensor) and observations.dim() == 2 and len(observations):
            self.evaluate(observations[:1])
        return super().partial(observations, agents)

    def __repr__(self) -> str:
        return f"JointTeam(agents={self._agents}, observation_features={self.observation_features})"

    def _evaluate(self, observations: Tensor) -> Behavior:
        shown = observations
        if self._promised_agents is not None:
            shown = observations.unsqueeze(-2).expand(*observations.shape[:-1], self._promised_agents, -1)
        behavior = behavior_of(self.policy(shown), squashed=self.squashed)
        if behavior.batch_shape == observations.shape[:-1]:
            self._agents = self._agents or behavior.agents
        return behavior

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        return take_agents(self.evaluate(observations), agents)


def device_of(policy: object) -> torch.device:
    """Where a module's first floating parameter or buffer is; the CPU for anything that has none."""
    return _example_of(policy).device


def _example_of(policy: object) -> Tensor:
    """A tensor with the device and floating dtype that a policy works in, as far as one can tell."""
    if isinstance(policy, nn.Module):
        for tensor in (*policy.parameters(), *policy.buffers()):
            if tensor.is_floating_point():
                return tensor
    return torch.empty(0)
