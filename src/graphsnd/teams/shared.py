"""One network that all agents share, and that is told which agent it acts for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior
from graphsnd.behavior.behavior import check_names
from graphsnd.errors import InputError, check_integer, check_tensor, describe, shape_of
from graphsnd.teams.answers import (
    Outputs,
    ask,
    ask_quietly,
    check_rows,
    map_tensors,
    read_single,
    tensors_of,
    unwrap,
    with_tensors,
)
from graphsnd.teams.engine import activations_on
from graphsnd.teams.team import Team, device_of, tensors_in

Columns = slice | Sequence[int] | int


class SharedTeam(Team):
    """``n`` agents that are one network: see :meth:`graphsnd.Team.shared`, whose arguments it takes.

    All (observation, agent) pairs that are asked for are one batch.

    Attributes:
        policy: The network.
        identity: What it is told of each agent, ``[agents, k]`` or ``[agents]``; None for one-hot vectors.

    Example:
        >>> team = SharedTeam(lambda seen: seen[:, :2] * seen[:, 2:], ("scout", "guard"), columns=slice(2, 4))
        >>> team.evaluate(torch.ones(1, 4)).actions
        tensor([[[1., 0.],
                 [0., 1.]]])
    """

    def __init__(
        self,
        policy: Callable[..., Any],
        agents: int | Sequence[str],
        *,
        columns: Columns | None = None,
        argument: str | None = None,
        identity: Tensor | None = None,
        squashed: bool = True,
        outputs: Outputs = None,
    ) -> None:
        if not callable(policy):
            raise InputError("policy", "to be one module or function, which all agents share", describe(policy))
        if (columns is None) == (argument is None):
            fix = "The policy reads its identity in columns of the observation, or in a parameter: argument='id'."
            raise InputError("columns", "or `argument`, one of the two", "both" if argument else "neither", fix)
        if isinstance(agents, str) or not isinstance(agents, Sequence):
            self.agents = check_integer("agents", agents, "to be their number or a list of their names", low=1)
        else:
            self.agents = len(agents)
            check_names(agents, self.agents)
            self._names = tuple(agents)
        if identity is not None:
            identity = check_tensor("identity", identity, 1, "(agents, features)")
            if len(identity) != self.agents or identity.dim() > 2:
                raise InputError("identity", f"with shape ({self.agents}, features)", shape_of(identity))
        self.policy, self.identity = policy, identity
        self._read = partial(read_single, squashed=squashed, outputs=outputs, validate=False)
        self.columns, self.argument, self.device = columns, argument, device_of(policy)
        self._width, self._unmixed = 1, False
        if isinstance(policy, nn.Module):
            self.cost = sum(map(torch.numel, policy.parameters()))
            self._width = max([1, *chain.from_iterable(map(torch.Tensor.size, tensors_in(policy).values()))])

    def alike(self) -> str:
        """Return that agents are told the same; nothing where they are told different things."""
        told = self.identity
        return "" if told is None or bool((told != told[0]).any()) else "are told the same, so they act alike."

    def _evaluate(self, observations: Tensor) -> Behavior:
        rows = observations.reshape(-1, observations.shape[-1])
        everyone = torch.arange(self.agents, device=rows.device)
        first: dict[bytes, int] = {}  # who is told what first
        told: Iterable[Tensor] = (
            () if self.identity is None else self.identity.detach().reshape(self.agents, -1).cpu() + 0
        )  # not -0
        twins = [first.setdefault(each.numpy().tobytes(), agent) for agent, each in enumerate(told)]

        def read(fields: list[Tensor], _: int) -> Tensor:
            own = fields[0]
            if len(first) < len(twins):
                # A product rounds rows by their place in the batch: agents told the same would differ in a last digit.
                own = own + (own[:, twins] - own).detach()
            return own.reshape(*observations.shape[:-1], *own.shape[1:])

        return map_tensors(read, [self._answer(rows, everyone.unsqueeze(0))], validate=True)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        answers = self._answer(observations, agents.to(observations.device))
        return with_tensors(answers, tensors_of(answers), validate=True)

    def _answer(self, observations: Tensor, agents: Tensor) -> Behavior:
        """Return the behaviour of ``agents [rows, k]``, or ``[1, k]`` for all, on observations ``[rows, features]``."""
        rows, each = len(observations), agents.shape[1]
        if not self._unmixed and rows * each > 1 and not torch.compiler.is_compiling():
            every = agents.expand(rows, -1).flatten()

            def ask_some(pairs: Tensor) -> list[Tensor]:
                some = self._call(observations[pairs // each], every[pairs, None], ask_quietly)
                return [field.unsqueeze(0) for field in tensors_of(some)]

            self._unmixed = check_rows(ask_some, torch.arange(len(every), device=every.device), [None])
        size = max(1, activations_on(observations.device) // (each * max(self._width, observations.shape[1])))
        answers = [
            self._call(observations[start : start + size], agents[start : start + size] if len(agents) > 1 else agents)
            for start in range(0, rows, size)
        ]
        return map_tensors(lambda fields, _: torch.cat(fields).unflatten(0, (rows, each)), answers, skip=1)

    def _call(self, observations: Tensor, agents: Tensor, asking: Callable[..., Any] = ask) -> Behavior:
        """Return the answers for all pairs of an observation and an agent, in the place of the agents."""
        answer = asking(_Told(self, agents), observations, "the shared network")
        return self._read(answer, (len(observations) * agents.shape[1],))


class _Told(nn.Module):
    """The network, as a policy of observations alone: of each it answers a row for each agent."""

    def __init__(self, team: SharedTeam, agents: Tensor) -> None:
        super().__init__()
        self.policy, self.agents = team.policy, agents
        self.columns, self.argument = team.columns, team.argument
        self.told = torch.eye(team.agents) if team.identity is None else team.identity

    def forward(self, observations: Tensor) -> Any:
        policy, told = unwrap(self.policy), self.told.to(observations.device)
        if self.argument is not None:
            shown = observations.unsqueeze(1).expand(-1, self.agents.shape[1], -1).flatten(0, 1)
            told = told.to(shown.dtype) if told.is_floating_point() else told
            own = told[self.agents.expand(len(observations), -1)].flatten(0, 1)
            return policy(shown, **{self.argument: own})
        columns, told = self.find_columns(observations), told.reshape(len(told), -1).to(observations.dtype)
        if len(columns) != told.shape[1]:
            expected = f"to be {told.shape[1]}, the length of an identity"
            raise InputError("columns", expected, f"{len(columns)}: {self.columns}", "Other identities: identity=.")
        whole = told.new_zeros(len(told), observations.shape[1]).index_copy(1, columns, told)
        written = torch.zeros_like(observations[0], dtype=torch.bool).index_fill(0, columns, True)
        return policy(torch.where(written, whole[self.agents], observations.unsqueeze(1)).flatten(0, 1))

    def find_columns(self, observations: Tensor) -> Tensor:
        """Return the columns as indices."""
        features, columns = observations.shape[1], self.columns
        try:
            chosen = columns if isinstance(columns, slice) else torch.as_tensor(columns).reshape(-1)
            return torch.arange(features)[chosen].to(observations.device)
        except (IndexError, TypeError, ValueError, RuntimeError) as error:
            expected = f"to name columns of observations with {features} features"
            raise InputError("columns", expected, describe(columns)) from error
