"""Teams of policies that are called one by one, or, where it is safe, as one batched module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from graphsnd.behavior import Behavior
from graphsnd.teams import requests
from graphsnd.teams.answers import FIELDS, join_agents, join_requests, read_answer
from graphsnd.teams.stacked import MAX_ACTIVATIONS
from graphsnd.teams.team import Team

Policy = Callable[[Tensor], Any]
_OWN = ("_parameters", "_buffers", "_modules")  # what a module's parameters, buffers and children live in
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


class CallablesTeam(Team):
    """A list of policies, called in a loop.

    :meth:`~graphsnd.teams.team.Team.partial` calls each requested agent once, on the observations that request it, and
    no other agent.

    Args:
        policies: Each maps ``[..., 1, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Example:
        >>> CallablesTeam([torch.sin, torch.cos]).evaluate(torch.zeros(16, 2))
        Deterministic(agents=2, observations=16)
    """

    def __init__(self, policies: Sequence[Policy], *, squashed: bool = True) -> None:
        self.policies = list(policies)
        self.squashed = squashed
        self.agents = len(self.policies)
        self.device = device_of(self.policies[0])

    def _evaluate(self, observations: Tensor) -> Behavior:
        # One agent's answer lacks the agents axis: observations get an axis of one, along which answers are joined.
        single = observations.unsqueeze(-2)
        return join_agents([read_answer(policy(single), squashed=self.squashed) for policy in self.policies])

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        sorted_ = requests.sort_by_agent(agents.to(observations.device))
        rows = sorted_.order // agents.shape[1]
        counts = sorted_.counts.tolist()
        answers = []
        for agent, part in zip(sorted_.agents.tolist(), rows.split(counts), strict=True):
            answer = self.policies[agent](observations[part].unsqueeze(-2))
            answers.append(read_answer(answer, squashed=self.squashed))
        slots = torch.empty_like(sorted_.order)
        slots[sorted_.order] = torch.arange(slots.numel(), device=slots.device)
        return join_requests(answers, counts, slots, agents.shape)


class ModulesTeam(CallablesTeam):
    """A list of modules, run as one batched module through ``torch.func.vmap``.

    Batching shows every agent's parameters to the code of the first module. So it is used only when all modules are
    the same code: equal classes, equal plain attributes, equal names, shapes and dtypes of parameters and buffers, all
    the way down. Otherwise, and when ``vmap`` refuses (control flow that depends on data, behaviours made with their
    checks on, random numbers), the modules are called in a loop. ``batched`` says which it is; the numbers are the
    same. A forward must be a function of parameters, buffers and observation: state that it keeps
    between calls is not kept per agent.

    Parameters are read at every call, so that gradients reach the modules and training shows.

    Args:
        policies: Each maps ``[..., 1, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Example:
        >>> team = ModulesTeam([torch.nn.Linear(4, 2) for _ in range(3)])
        >>> team.batched, team.evaluate(torch.zeros(16, 4))
        (True, Deterministic(agents=3, observations=16))
    """

    def __init__(self, policies: Sequence[nn.Module], *, squashed: bool = True) -> None:
        super().__init__(policies, squashed=squashed)
        self.modules = list(policies)
        same = all(_same_code(self.modules[0], module) for module in self.modules[1:])
        self.batched = same and bool(_tensors(self.modules[0]))
        self.cost = sum(parameter.numel() for parameter in self.modules[0].parameters())
        self._width = max([1, *(size for tensor in _tensors(self.modules[0]).values() for size in tensor.shape)])

    def _evaluate(self, observations: Tensor) -> Behavior:
        return self._try(self._evaluate_batched, super()._evaluate, observations)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        return self._try(self._partial_batched, super()._partial, observations, agents)

    def _try(self, batched: Callable[..., Behavior], loop: Callable[..., Behavior], *args: Tensor) -> Behavior:
        if not self.batched:
            return loop(*args)
        try:
            return batched(*args)
        except RuntimeError:
            # vmap's refusals have no class of their own. A fault of the policies comes up again in the loop, and only
            # a loop that succeeds proves that it was vmap's.
            behavior = loop(*args)
            self.batched = False
            return behavior

    def _evaluate_batched(self, observations: Tensor) -> Behavior:
        single = observations.unsqueeze(-2)
        size = max(1, MAX_ACTIVATIONS // (max(1, observations.shape[:-1].numel()) * self._width))
        answers = []
        for start in range(0, self.agents, size):
            answers += self._run(range(self.agents)[start : start + size], single, None)
        return join_agents(answers, validate=True)

    def _partial_batched(self, observations: Tensor, agents: Tensor) -> Behavior:
        plan = requests.batches(agents.to(observations.device))
        answers: list[Behavior] = []
        lengths: list[int] = []
        for bucket in plan.buckets:
            lengths += [bucket.requests.shape[1]] * len(bucket.agents)
            size = max(1, MAX_ACTIVATIONS // (bucket.requests.shape[1] * max(self._width, self.cost or 1)))
            for piece in requests.split_bucket(bucket, size):
                rows = observations[piece.requests // agents.shape[1]].unsqueeze(-2)
                answers += self._run(piece.agents.tolist(), rows, 0)
        return join_requests(answers, lengths, plan.slots, agents.shape, validate=True)

    def _run(self, agents: Sequence[int], shown: Tensor, in_dim: int | None) -> list[Behavior]:
        """One behaviour for each of ``agents``, all on ``shown`` (None) or each on its own slice of it (0)."""
        of_agent = [_tensors(self.modules[agent]) for agent in agents]
        stacked = {name: torch.stack([tensors[name] for tensors in of_agent]) for name in of_agent[0]}
        family: list[Callable[..., Behavior]] = []

        def call(tensors: dict[str, Tensor], observations: Tensor) -> tuple[Tensor, ...]:
            answer = functional_call(self.modules[0], tensors, (observations,))
            behavior = read_answer(answer, squashed=self.squashed, validate=False)
            family.append(type(behavior))
            return tuple(getattr(behavior, name) for name, _ in FIELDS[type(behavior)])

        fields = vmap(call, in_dims=(0, in_dim))(stacked, shown)
        return [family[0](*parts, validate=False) for parts in zip(*(field.unbind(0) for field in fields), strict=True)]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _same_code(first: nn.Module, other: nn.Module) -> bool:
    """Whether two modules differ in the values of their parameters and buffers only."""
    one, two = _parts_of(first), _parts_of(other)
    return len(one) == len(two) and all(map(_same, one, two))


def _parts_of(module: nn.Module) -> list[tuple[object, ...]]:
    """Return all that decides what a module does, apart from the values of its parameters and buffers."""
    tensors = [(name, tuple(t.shape), t.dtype, t.device) for name, t in _tensors(module).items()]
    attributes = [
        (name, type(child), {key: value for key, value in vars(child).items() if key not in _OWN})
        for name, child in module.named_modules()
    ]
    return [*tensors, *attributes]


def _same(a: object, b: object) -> bool:
    """Whether two attributes are surely equal; anything but plain values must be one and the same object."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(map(_same, a.values(), b.values()))
    return isinstance(a, set) and not a and not b


def device_of(policy: object) -> torch.device:
    """Return the device of a module's first floating parameter or buffer; the CPU for anything that has none."""
    if isinstance(policy, nn.Module):
        for tensor in (*policy.parameters(), *policy.buffers()):
            if tensor.is_floating_point():
                return tensor.device
    return torch.device("cpu")
