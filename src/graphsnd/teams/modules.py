"""Teams of ``nn.Module``s: run as one where that is safe, in a loop where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from graphsnd.behavior import Behavior
from graphsnd.teams import requests
from graphsnd.teams.answers import FIELDS, along_agents, along_requests, behavior_of
from graphsnd.teams.callables import CallablesTeam
from graphsnd.teams.stacked import MAX_ACTIVATIONS

_OWN = ("_parameters", "_buffers", "_modules")  # what a module's parameters, buffers and children live in
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


class ModulesTeam(CallablesTeam):
    """A list of modules, run as one batched module through ``torch.func.vmap``.

    Batching shows every agent's parameters to the code of the first module. So it is used only when all modules are
    the same code: equal classes, equal plain attributes, equal names, shapes and dtypes of parameters and buffers, all
    the way down. Otherwise, and when ``vmap`` refuses (control flow that looks at data, behaviours made with their
    checks on, random numbers), the modules are called in a loop. ``batched`` says which it is; the numbers are the
    same. A forward must be a function of parameters, buffers and observation: state that it
    keeps between calls is not agent by agent.

    Parameters are read at every call, so that gradients reach the modules and training shows.

    Args:
        policies: Each maps ``[..., 1, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        observation_features: Length of one observation, where known.

    Example:
        >>> team = ModulesTeam([torch.nn.Linear(4, 2) for _ in range(3)])
        >>> team.batched, team.evaluate(torch.zeros(16, 4))
        (True, Deterministic(agents=3, observations=16))
    """

    def __init__(
        self, policies: Sequence[nn.Module], *, squashed: bool = True, observation_features: int | None = None
    ) -> None:
        super().__init__(policies, squashed=squashed, observation_features=observation_features)
        self.modules = list(policies)
        same = all(_same_code(self.modules[0], module) for module in self.modules[1:])
        self.batched = same and bool(_tensors(self.modules[0]))
        self.cost = sum(parameter.numel() for parameter in self.modules[0].parameters())
        self._width = max([1, *(size for tensor in _tensors(self.modules[0]).values() for size in tensor.shape)])

    def _evaluate(self, observations: Tensor) -> Behavior:
        return self._try(
            lambda: self._evaluate_batched(observations),
            lambda: super(ModulesTeam, self)._evaluate(observations),
        )

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        return self._try(
            lambda: self._partial_batched(observations, agents),
            lambda: super(ModulesTeam, self)._partial(observations, agents),
        )

    def _try(self, batched: Callable[[], Behavior], loop: Callable[[], Behavior]) -> Behavior:
        if self.batched:
            try:
                return batched()
            except RuntimeError:
                # vmap's refusals have no class of their own. A fault of the policies comes up again in the loop, and
                # only a loop that succeeds proves that it was vmap's.
                behavior = loop()
                self.batched = False
                return behavior
        return loop()

    def _evaluate_batched(self, observations: Tensor) -> Behavior:
        single = observations.unsqueeze(-2)
        size = max(1, MAX_ACTIVATIONS // (max(1, observations.shape[:-1].numel()) * self._width))
        answers = []
        for start in range(0, self.agents, size):
            answers += self._run(range(self.agents)[start : start + size], single, None)
        return along_agents(answers, validate=True)

    def _partial_batched(self, observations: Tensor, agents: Tensor) -> Behavior:
        plan = requests.batches(agents.to(observations.device))
        answers: list[Behavior] = []
        lengths: list[int] = []
        for bucket in plan.buckets:
            lengths += [bucket.requests.shape[1]] * len(bucket.agents)
            size = max(1, MAX_ACTIVATIONS // (bucket.requests.shape[1] * max(self._width, self.cost or 1)))
            for piece in requests.chunks(bucket, size):
                rows = observations[piece.requests // agents.shape[1]].unsqueeze(-2)
                answers += self._run(piece.agents.tolist(), rows, 0)
        return along_requests(answers, lengths, plan.slots, agents.shape, validate=True)

    def _run(self, agents: Sequence[int], shown: Tensor, in_dim: int | None) -> list[Behavior]:
        """One behaviour for each of ``agents``, all on ``shown`` (None) or each on its own slice of it (0)."""
        of_agent = [_tensors(self.modules[agent]) for agent in agents]
        stacked = {name: torch.stack([tensors[name] for tensors in of_agent]) for name in of_agent[0]}
        family: list[Callable[..., Behavior]] = []

        def call(tensors: dict[str, Tensor], observations: Tensor) -> tuple[Tensor, ...]:
            answer = functional_call(self.modules[0], tensors, (observations,))
            behavior = behavior_of(answer, squashed=self.squashed, validate=False)
            family.append(type(behavior))
            return tuple(getattr(behavior, name) for name, _ in FIELDS[type(behavior)])

        fields = vmap(call, in_dims=(0, in_dim))(stacked, shown)
        return [family[0](*parts, validate=False) for parts in zip(*(field.unbind(0) for field in fields), strict=True)]


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _same_code(first: nn.Module, other: nn.Module) -> bool:
    mine, yours = _tensors(first), _tensors(other)
    if [(k, t.shape, t.dtype, t.device) for k, t in mine.items()] != [
        (k, t.shape, t.dtype, t.device) for k, t in yours.items()
    ]:
        return False
    ours = list(first.named_modules()), list(other.named_modules())
    return len(ours[0]) == len(ours[1]) and all(
        a_name == b_name and type(a) is type(b) and _same(_plain(a), _plain(b))
        for (a_name, a), (b_name, b) in zip(*ours, strict=True)
    )


def _plain(module: nn.Module) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name not in _OWN}


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
