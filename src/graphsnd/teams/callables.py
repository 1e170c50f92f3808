"""Teams of policies that are called one by one, or, where it is safe, as one batched module; and recurrent policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior
from graphsnd.behavior.distributions import may_be_heavy, steep_scales, warn_steep
from graphsnd.errors import InputError, check_integer, check_shape, shape_of
from graphsnd.teams import requests
from graphsnd.teams.answers import combine, join_agents, join_requests, read_single, tensors_of
from graphsnd.teams.engine import MAX_ACTIVATIONS
from graphsnd.teams.mixing import FAULTS, LOCK, ask, ask_quietly, check_unmixed, evaluation_mode
from graphsnd.teams.stacked import activations_on
from graphsnd.teams.team import Team

Policy = Callable[[Tensor], Any]
LOOPED = 16  # agents: where a CPU's caches hold fewer at once, calls one by one are as fast as a batched one
# What a module's parameters, buffers and children live in, and its mode: policies are asked in evaluation mode.
_OWN = ("_parameters", "_buffers", "_modules", "training")
_CHECKED: WeakSet[nn.Module] = WeakSet()  # answer each row by itself; other policies may have no hash
_CONTAINERS = (dict, list, tuple, set)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


@checked
class CallablesTeam(Team):
    """A list of policies, called in a loop.

    A policy is given what it was given in training: a batch ``[observations, features]``, one row per observation, and
    it answers for one agent, ``[observations, actions]``. :meth:`~graphsnd.teams.team.Team.partial` calls each
    requested agent once, on the observations that request it, and no other agent. Before its first answer a policy is
    called on a few rows three times, to see that its answer to one row depends neither on the others nor on chance.
    Modules are called in evaluation mode, and their modes restored.

    Args:
        policies: Each maps ``[observations, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        whole: Give each policy the observations as they are, see :func:`~graphsnd.evaluate`.
        feature_dims: Trailing dimensions of one observation: 3 for images ``[channels, height, width]``.

    Example:
        >>> CallablesTeam([torch.sin, torch.cos]).evaluate(torch.zeros(16, 2))
        Deterministic(agents=2, observations=16)
    """

    def __init__(
        self, policies: Sequence[Policy], *, squashed: bool = True, whole: bool = False, feature_dims: int = 1
    ) -> None:
        self.policies = list(policies)
        if not self.policies:
            raise InputError("policies", "to hold at least one", "none")
        check_integer("feature_dims", feature_dims, "to be an integer, at least 1", low=1)
        self.squashed, self.whole, self.feature_dims = squashed, whole, feature_dims
        self.agents, self.device = len(self.policies), device_of(self.policies[0])
        self._unchecked = set() if whole else set(range(self.agents))  # who may not answer each row by itself

    def _evaluate(self, observations: Tensor) -> Behavior:
        lead = observations.shape[: -self.feature_dims]
        shown = observations if self.whole and lead else observations.reshape(-1, *observations.shape[len(lead) :])
        self._check_unmixed(range(self.agents), shown)
        return self._answer_all(shown, lead)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        if self.whole:
            got = "one with whole=True: recurrent or communicating policies"
            raise InputError("team", "of policies that answer each observation by itself", got, "Use team.evaluate.")
        if self._unchecked:
            self._check_unmixed(agents.unique().tolist(), observations)
        return self._answer_requests(observations, agents)

    def _answer_all(self, shown: Tensor, lead: Sequence[int]) -> Behavior:
        return join_agents([self._call(agent, shown) for agent in range(self.agents)], lead)

    def _answer_requests(self, observations: Tensor, agents: Tensor) -> Behavior:
        sorted_ = requests.sort_by_agent(agents.to(observations.device))
        rows = (sorted_.order // agents.shape[1]).split(sorted_.counts.tolist())
        answers = [
            self._call(agent, observations[part]) for agent, part in zip(sorted_.agents.tolist(), rows, strict=True)
        ]
        return join_requests(answers, sorted_.order.argsort(), agents.shape)

    def _call(self, agent: int, shown: Tensor) -> Behavior:
        return self._read(ask(self.policies[agent], shown, self._name(agent)), shown)

    def _name(self, agent: int) -> str:
        return self._names[agent] if self._names else str(agent)

    def _read(self, answer: object, shown: Tensor, *, validate: bool = True) -> Behavior:
        lead = shown.shape[: shown.dim() - self.feature_dims]
        return read_single(answer, lead, squashed=self.squashed, validate=validate)

    def _check_unmixed(self, agents: Iterable[int], rows: Tensor) -> None:
        if torch.compiler.is_compiling():  # random state and weak references are not to be traced
            return
        modules = {agent for agent in self._unchecked if isinstance(self.policies[agent], nn.Module)}
        self._unchecked -= {agent for agent in modules if self.policies[agent] in _CHECKED}
        asked = [agent for agent in agents if agent in self._unchecked]
        if not asked or len(rows) < 2:
            return
        if check_unmixed(partial(self._ask_quietly, asked), rows, list(map(self._name, asked))):
            self._unchecked.difference_update(asked)
            _CHECKED.update(self.policies[agent] for agent in modules.intersection(asked))  # type: ignore[misc]

    def _ask_quietly(self, agents: Sequence[int], batches: Sequence[Tensor]) -> list[list[Tensor]]:
        joined = []
        for shown in batches:
            answers = (ask_quietly(self.policies[agent], shown, self._name(agent)) for agent in agents)
            behaviors = [self._read(answer, shown, validate=False) for answer in answers]
            joined.append(combine(behaviors, lambda parts, _: torch.stack(parts), skip=1))
        return [[tensor for tensor, _ in tensors_of(behavior)] for behavior in joined]


@checked
class ModulesTeam(CallablesTeam):
    """A list of modules, run as one batched module through ``torch.func.vmap``.

    Batching shows every agent's parameters to the code of the first module. So it is used only when all modules are
    the same code: equal classes, equal plain attributes, equal names, shapes and dtypes of parameters and buffers, all
    the way down. Otherwise, and when ``vmap`` refuses (control flow that depends on data, behaviours made with their
    checks on, random numbers), and under autocast, the modules are called in a loop. ``batched`` says which it is; the
    numbers are the same. A forward must be a function of parameters, buffers and observation: state that it keeps
    between calls is not kept per agent.

    Parameters are read at every call, so that gradients reach the modules and training shows.

    Args:
        policies: As in :class:`CallablesTeam`, and the other arguments too.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        whole: Give each policy the observations as they are.
        feature_dims: Trailing dimensions of one observation.

    Example:
        >>> team = ModulesTeam([torch.nn.Linear(4, 2) for _ in range(3)])
        >>> team.batched, team.evaluate(torch.zeros(16, 4))
        (True, Deterministic(agents=3, observations=16))
    """

    def __init__(
        self, policies: Sequence[nn.Module], *, squashed: bool = True, whole: bool = False, feature_dims: int = 1
    ) -> None:
        super().__init__(policies, squashed=squashed, whole=whole, feature_dims=feature_dims)
        self.modules = list(policies)
        self.cost = sum(parameter.numel() for parameter in self.modules[0].parameters())
        self._width = max([1, *(size for tensor in _tensors(self.modules[0]).values() for size in tensor.shape)])

    @cached_property
    def batched(self) -> bool:
        """Whether one call may run the code of all modules; comparing them takes longer than many a call."""
        first = _parts_of(self.modules[0])
        return bool(_tensors(self.modules[0])) and all(_same(first, _parts_of(other)) for other in self.modules[1:])

    def _answer_all(self, shown: Tensor, lead: Sequence[int]) -> Behavior:
        size = activations_on(shown.device) // (max(1, math.prod(lead)) * self._width)
        if shown.device.type == "cpu" and size < LOOPED:
            return super()._answer_all(shown, lead)
        return self._try(partial(self._all_batched, max(1, size)), super()._answer_all, shown, lead)

    def _answer_requests(self, observations: Tensor, agents: Tensor) -> Behavior:
        return self._try(self._requests_batched, super()._answer_requests, observations, agents)

    def _ask_quietly(self, agents: Sequence[int], batches: Sequence[Tensor]) -> list[list[Tensor]]:
        return self._try(self._ask_batched, super()._ask_quietly, agents, batches)

    def _ask_batched(self, agents: Sequence[int], batches: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        # Reading the parameters of thousands of modules takes longer than to run them, so it is done once. Not so the
        # buffers: what an answer writes there must not reach the next one. vmap refuses random numbers.
        stacked = self._stack(agents)
        written = {name for name, _ in self.modules[0].named_buffers()}
        copies = ({name: t.clone() if name in written else t for name, t in stacked.items()} for _ in batches)
        return [self._run_stacked(own, shown, None)[1] for own, shown in zip(copies, batches, strict=True)]

    def _try(self, batched: Callable[..., Any], loop: Callable[..., Any], *args: Any) -> Any:
        if not self.batched or torch.is_autocast_enabled(self.device.type):  # which rounds batched layers elsewhere
            return loop(*args)
        try:
            return batched(*args)
        except FAULTS:
            # vmap's refusals have no class of their own. A fault of the policies comes up again in the loop, and only
            # a loop that succeeds proves that it was vmap's.
            answers = loop(*args)
            self.batched = False
            return answers

    def _all_batched(self, size: int, shown: Tensor, lead: Sequence[int]) -> Behavior:
        answers = []
        for start in range(0, self.agents, size):
            answers += self._run(range(self.agents)[start : start + size], shown, None)
        return join_agents(answers, lead, validate=True)

    def _requests_batched(self, observations: Tensor, agents: Tensor) -> Behavior:
        plan = requests.batches(agents.to(observations.device))
        answers: list[Behavior] = []
        for bucket in plan.buckets:
            size = max(1, MAX_ACTIVATIONS // (bucket.requests.shape[1] * max(self._width, self.cost or 1)))
            for piece in requests.split_bucket(bucket, size):
                answers += self._run(piece.agents.tolist(), observations[piece.requests // agents.shape[1]], 0)
        return join_requests(answers, plan.slots, agents.shape, validate=True)

    def _run(self, agents: Sequence[int], shown: Tensor, in_dim: int | None) -> list[Behavior]:
        """One behaviour for each of ``agents``, all on ``shown`` (None) or each on its own slice of it (0)."""
        behavior, fields, scales = self._run_stacked(self._stack(agents), shown, in_dim)
        if self.squashed and not torch.compiler.is_compiling():
            warn_steep(scales)
        rows = (iter(row) for row in zip(*(field.unbind(0) for field in fields), strict=True))
        return [combine([behavior], lambda *_, row=row: next(row)) for row in rows]

    def _stack(self, agents: Sequence[int]) -> dict[str, Tensor]:
        with LOCK:  # another thread's call may have put its parameters into the first module
            of_agent = [_tensors(self.modules[agent]) for agent in agents]
        return {name: torch.stack([tensors[name] for tensors in of_agent]) for name in of_agent[0]}

    def _run_stacked(
        self, stacked: dict[str, Tensor], shown: Tensor, in_dim: int | None
    ) -> tuple[Behavior, tuple[Tensor, ...], list[Tensor]]:
        """Return a behaviour of their kind, its tensors for all, agents first, and the scales that may be too steep."""
        answered: list[Behavior] = []

        def call(tensors: dict[str, Tensor], observations: Tensor) -> tuple[tuple[Tensor, ...], list[Tensor]]:
            answer = functional_call(self.modules[0], tensors, (observations,))
            if may_be_heavy(answer):
                raise ValueError("vmap cannot read whether a variance is finite; the loop can")
            behavior = self._read(answer, observations, validate=False)
            answered.append(behavior)
            return tuple(tensor for tensor, _ in tensors_of(behavior)), steep_scales(answer)  # vmap reads no values

        with evaluation_mode(self.modules[0]):  # whose code runs for all
            fields, scales = vmap(call, in_dims=(0, in_dim))(stacked, shown.clone())
        return answered[0], fields, scales


@checked
class Unroll:
    """A policy for sequences, made of one that takes a step: use with ``graphsnd.evaluate(..., whole=True)``.

    Args:
        step: Maps observations ``[..., features]`` and a state to ``(answer, state)``, an answer being as in
            :func:`~graphsnd.evaluate`.
        state: Before the first step.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Example:
        >>> import torch, graphsnd as gs
        >>> policies = [Unroll(lambda o, h, a=a: (o + a * h, o + a * h), 0.0) for a in (0.1, 0.9)]
        >>> gs.evaluate(policies, torch.ones(50, 8, 2), whole=True)
        Deterministic(agents=2, observations=400)
    """

    def __init__(
        self, step: Callable[[Tensor, Any], tuple[Any, Any]], state: Any = None, *, squashed: bool = True
    ) -> None:
        self.step, self.state, self.squashed = step, state, squashed

    def __call__(self, sequences: Tensor) -> Behavior:
        """Return the answers to ``[time, batch, features]``, one step after another."""
        check_shape("sequences", sequences, ("time", "batch", "features"))
        if not len(sequences):
            raise InputError("sequences", "to hold at least one step", shape_of(sequences))
        state, answers = self.state, []
        for observations in sequences:
            answer, state = self.step(observations, state)
            answers.append(read_single(answer, observations.shape[:-1], squashed=self.squashed))
        return combine(answers, lambda steps, _: torch.stack(steps), validate=True)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


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
    if isinstance(a, _CONTAINERS) and not a:  # most attributes of most modules: no hooks
        return not b
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(map(_same, a.values(), b.values()))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, _PLAIN) and bool(a == b)


def device_of(policy: object) -> torch.device:
    """Return the device of a module's first floating parameter or buffer; the CPU for anything that has none."""
    tensors = (*policy.parameters(), *policy.buffers()) if isinstance(policy, nn.Module) else ()
    return next((tensor.device for tensor in tensors if tensor.is_floating_point()), torch.device("cpu"))
