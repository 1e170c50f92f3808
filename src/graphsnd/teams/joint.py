"""Stacked modules, which answer for all agents at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.answers import Outputs, ask, ask_quietly, check_rows, read_answer, take_agents, tensors_of
from graphsnd.teams.team import Team, device_of


class JointTeam(Team):
    """One module that answers for all agents at once, such as TorchRL's ``MultiAgentMLP``.

    It cannot evaluate some agents only: ``partial`` evaluates all of them and picks, so it saves nothing, which
    ``proportional = False`` says.

    Args:
        policy: Answers with an agents axis in second to last place.
        agents: Number of agents, for modules that take one observation per agent; each is then shown to all.
            None for modules that add the agents axis themselves.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        feature_dims: Trailing dimensions of one observation, 3 for images; with ``agents``.
        outputs: Names of several outputs, see :func:`~graphsnd.evaluate`.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = JointTeam(lambda seen: torch.stack([seen, 3 * seen], dim=-2), agents=None)  # adds the agents axis
        >>> gs.measure(team, torch.tensor([[1.0, 0.0]])).value, team.agents
        (2.0, 2)
    """

    proportional = False

    def __init__(
        self, policy: Callable[..., Any], *, agents: int | None, squashed: bool = True, feature_dims: int = 1,
        outputs: Outputs = None,
    ) -> None:  # fmt: skip
        self.policy, self.device = policy, device_of(policy)
        self.squashed, self.feature_dims, self.outputs = squashed, feature_dims, outputs
        self._agents = self._promised_agents = agents
        self._unmixed = self._repeatable = False

    @property
    def agents(self) -> int:  # type: ignore[override]
        """Number of policies, known when it was given and after the first evaluation."""
        if self._agents is None:
            fix = "Pass agents=, or evaluate the team once."
            raise InputError("agents", "to be known for a stacked module", "None", fix)
        return self._agents

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agents={self._agents}, observation_features=None)"

    def _evaluate(self, observations: Tensor) -> Behavior:
        shown = observations
        if self._promised_agents is not None:
            lead, one = observations.shape[: -self.feature_dims], observations.shape[-self.feature_dims :]
            shown = observations.unsqueeze(len(lead)).expand(*lead, self._promised_agents, *one)
            self._check_seats(observations.reshape(-1, *one))
        elif not self._repeatable:
            check_rows(self._ask_quietly, observations, [None], mixing=False)
            self._repeatable = True
        behavior = self._read(ask(self.policy, shown), shown)
        if self._agents is None and behavior.batch_shape[:1] == (behavior.agents,) != (1,):
            # As many observations hide that agents come first. Two rows show it, unless there are two agents.
            rows = torch.cat([observations] * 2)[: 3 if behavior.agents == 2 else 2]
            self._read(ask_quietly(self.policy, rows), rows)
        self._agents = self._agents or behavior.agents
        return behavior

    def _read(self, answer: object, shown: Tensor, *, validate: bool = True) -> Behavior:
        promised = self._promised_agents
        lead = tuple(shown.shape[: shown.dim() - self.feature_dims - (promised is not None)])
        behavior = read_answer(answer, squashed=self.squashed, outputs=self.outputs, validate=validate, lead=len(lead))
        # Without this, a module that forgets the agents axis would have its last batch axis taken for the team.
        if tuple(behavior.batch_shape) != lead or behavior.agents != (promised or behavior.agents):
            expected = f"to answer with shape {(*lead, promised or 'agents', '...')}"
            got = f"{(*behavior.batch_shape, behavior.agents, '...')}"
            fix = "One network for all: Team.shared. Single policies: a list. A joint module: an agents axis."
            raise InputError("team", expected, got, fix)
        return behavior

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        if self._promised_agents is None and not self._unmixed and len(observations) > 1:
            self._unmixed = check_rows(self._ask_quietly, observations, [None])
        return take_agents(self.evaluate(observations), agents)

    def _check_seats(self, rows: Tensor) -> None:
        # A network that mixes agents, such as a GNN, would see a team in which all agents observe the same.
        if not self._unmixed and len(rows) > 1 and self.agents > 1:
            seats = rows[torch.arange(self.agents, device=rows.device) * (len(rows) - 1) // (self.agents - 1)]
            self._unmixed = check_rows(self._ask_seats, seats, [None], most=self.agents)

    def _ask_seats(self, seats: Tensor) -> list[Tensor]:
        return [field.movedim(2, 1) for field in self._ask_quietly(seats.unsqueeze(0))]

    def _ask_quietly(self, shown: Tensor) -> list[Tensor]:
        answer = ask_quietly(self.policy, shown)
        return [field.unsqueeze(0) for field in tensors_of(self._read(answer, shown, validate=False))]
