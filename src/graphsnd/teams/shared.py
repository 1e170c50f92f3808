"""One network that all agents share, and that reads for which agent it acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, check_integer, check_tensor, shape_of
from graphsnd.teams.answers import SHARED, ask, ask_quietly, check_rows, map_tensors, tensors_of, unwrap, with_tensors
from graphsnd.teams.engine import activations_on
from graphsnd.teams.policies import PoliciesTeam

Columns = slice | Sequence[int] | int


class SharedTeam(PoliciesTeam):
    """``n`` agents that share one network: see :meth:`graphsnd.Team.shared`, which takes the same arguments.

    All requested (observation, agent) pairs are one batch, or several if memory demands it.

    Attributes:
        identity: Identity that the network reads for each agent, ``[agents, k]`` or ``[agents]``.

    Example:
        >>> team = SharedTeam(lambda seen: seen[:, :2] * seen[:, 2:], ("scout", "guard"), columns=slice(2, 4))
        >>> team.evaluate(torch.ones(1, 4)).actions
        tensor([[[1., 0.],
                 [0., 1.]]])
    """

    def __init__(
        self, policy: Any, agents: int | Sequence[str], *, columns: Columns | None = None,
        argument: str | None = None, identity: Tensor | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if (columns is None) == (argument is None):
            fix = "The policy reads its identity in columns of the observation, or in a parameter: argument='id'."
            raise InputError("columns", "or `argument`, one of the two", "both" if argument else "neither", fix)
        if not callable(policy):
            fix = "Models of a framework: sb3.ModelTeam.shared and the like."
            raise InputError("policy", "to be a module or a function", f"a {type(policy).__name__}", fix)
        super().__init__([policy], **options)
        names = agents if isinstance(agents, list | tuple) else None
        count = agents if names is None else len(names)
        self.agents = check_integer("agents", count, "to be their number, or a list of their names", low=1)
        self._names = None if names is None else self.with_names(names).names
        identity = torch.eye(self.agents) if identity is None else check_tensor("identity", identity, 1, "(agents, k)")
        if len(identity) != self.agents or identity.dim() > 2:
            raise InputError("identity", f"with shape ({self.agents}, k)", shape_of(identity))
        self.identity, self.columns, self.argument = identity, columns, argument

    def alike(self) -> str:
        """Return a message if all identities are equal, else an empty text."""
        different = bool((self.identity != self.identity[0]).any())
        return "" if different else "are told the same, so they act alike on the same observation."

    def _evaluate(self, observations: Tensor) -> Behavior:
        rows, first = observations.reshape(-1, observations.shape[-1]), dict[bytes, int]()
        told = (self.identity.detach().reshape(self.agents, -1).cpu().double() + 0).numpy()  # + 0: -0 is 0
        twins = [first.setdefault(own.tobytes(), agent) for agent, own in enumerate(told)]

        def read(fields: list[Tensor], _: int) -> Tensor:
            own = fields[0]
            if len(first) < self.agents:
                # A product rounds rows by their place in the batch: agents told the same would differ in a last digit.
                own = own + (own[:, twins] - own).detach()
            return own.reshape(*observations.shape[:-1], *own.shape[1:])

        everyone = torch.arange(self.agents, device=rows.device).unsqueeze(0)
        return map_tensors(read, [self._answer(rows, everyone)], validate=True)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        answers = self._answer(observations, agents.to(observations.device))
        return with_tensors(answers, tensors_of(answers), validate=True)

    def _answer(self, observations: Tensor, agents: Tensor) -> Behavior:
        """Return the behaviour of ``agents [rows, k]``, or ``[1, k]`` for all, on observations ``[rows, features]``."""
        rows, each = len(observations), agents.shape[1]
        if self._unchecked and rows * each > 1 and not torch.compiler.is_compiling():
            every = agents.expand(rows, -1).flatten()

            def ask_some(pairs: Tensor) -> list[Tensor]:
                some = self._ask(observations[pairs // each], every[pairs, None], ask_quietly)
                return [field.unsqueeze(0) for field in tensors_of(some)]

            check_rows(ask_some, torch.arange(len(every), device=every.device), [None])
            self._unchecked.clear()
        size = max(1, activations_on(observations.device) // (each * max(self._width, observations.shape[1])))
        answers = []
        for start in range(0, rows, size):
            own = agents[start : start + size] if len(agents) > 1 else agents
            answers.append(self._ask(observations[start : start + size], own))
        return map_tensors(lambda fields, _: torch.cat(fields).unflatten(0, (rows, each)), answers, skip=1)

    def _ask(self, observations: Tensor, agents: Tensor, asking: Callable[..., Any] = ask) -> Behavior:
        """Return the answers to all pairs of an observation and an agent, along the agents axis."""
        answer = asking(_Told(self, agents), observations, SHARED)
        return self._read(answer, (len(observations) * agents.shape[1],), validate=False)


class _Told(nn.Module):
    """The network as a policy of observations alone, which returns a row for each observation and agent."""

    def __init__(self, team: SharedTeam, agents: Tensor) -> None:
        super().__init__()
        self.policy, self.team, self.agents = team.policies[0], team, agents

    def forward(self, observations: Tensor) -> Any:
        policy, told, (rows, features) = unwrap(self.policy), self.team.identity, observations.shape
        told = told.to(observations.device, observations.dtype if told.is_floating_point() else told.dtype)
        if self.team.argument is not None:
            shown = observations.unsqueeze(1).expand(-1, self.agents.shape[1], -1).flatten(0, 1)
            return policy(shown, **{self.team.argument: told[self.agents.expand(rows, -1)].flatten(0, 1)})
        told, chosen = told.reshape(len(told), -1).to(observations.dtype), self.team.columns
        places = chosen if isinstance(chosen, slice) else torch.as_tensor(chosen).reshape(-1)
        columns = torch.arange(features)[places].to(observations.device)
        if len(columns) != told.shape[1]:
            fix = "Agents are told one-hot vectors; others are identity=, such as torch.arange(agents) for one column."
            raise InputError("columns", f"to be {told.shape[1]}, the length of an identity", len(columns), fix)
        whole = told.new_zeros(len(told), features).index_copy(1, columns, told)
        kept = observations.index_fill(1, columns, 0).unsqueeze(1)  # a sum is faster than writing into copies
        return policy((kept + whole[self.agents]).flatten(0, 1))
