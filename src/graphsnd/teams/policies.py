"""Teams of policies that are called one by one or, where it is safe, as one batched module; and recurrent policies."""

from __future__ import annotations

import marshal
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypedDict, TypeVar
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.utils.rnn import pad_sequence

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.answers import (
    FAULTS,
    LOCK,
    ROWS,
    Outputs,
    ask,
    ask_quietly,
    check_rows,
    evaluation_mode,
    map_tensors,
    read_single,
    tensors_of,
    with_tensors,
)
from graphsnd.teams.arrays import Array, Arrays, OnArrays
from graphsnd.teams.engine import CACHED_ACTIVATIONS, MAX_ACTIVATIONS
from graphsnd.teams.joint import JointTeam
from graphsnd.teams.team import Team, device_of, tensors_in

Policy = Callable[[Tensor], Any]
T = TypeVar("T")
LOOPED = 16  # agents: where a CPU's caches hold fewer at once, calls one by one are as fast as a batched one
PADDED = 4  # answers per request, with those that pad the batch, above which calls one by one are faster
# What a module's parameters, buffers and children live in, and its mode: policies are asked in evaluation mode.
_OWN = ("_parameters", "_buffers", "_modules", "training")
_CHECKED: WeakSet[nn.Module] = WeakSet()  # answer each row by itself; other policies may have no hash


class PoliciesTeam(Team):
    """A list of policies.

    A policy is given what it was given in training: a batch ``[observations, features]``, one row per observation, and
    it answers for one agent, ``[observations, actions]``. :meth:`~graphsnd.Team.partial` calls each requested
    agent once, on the observations that request it, and no other agent. Before its first answer a policy is tried on a
    few rows, see :func:`~graphsnd.teams.answers.check_rows`. Modules are called in evaluation mode, and their modes
    restored.

    Modules of the same code are run as one through ``torch.func.vmap``; all others are called one by one, and so is
    what ``vmap`` refuses (control flow that depends on data, behaviours made with their checks on, random numbers) or
    autocast would round elsewhere. The numbers are the same. A forward must be a function of parameters, buffers and
    observation: state that it keeps between calls is not kept per agent. Parameters are read at every call, so that
    gradients reach the modules and training shows.

    Args:
        policies: Policies; each maps ``[observations, features]`` to one agent's answer.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        whole: Give each policy the observations unchanged, see :func:`~graphsnd.evaluate`.
        feature_dims: Trailing dimensions of one observation: 3 for images ``[channels, height, width]``.
        outputs: Names of several outputs, see :func:`~graphsnd.evaluate`.

    Example:
        >>> PoliciesTeam([torch.sin, torch.cos]).evaluate(torch.zeros(16, 2))
        Deterministic(agents=2, observations=16)
        >>> PoliciesTeam([torch.nn.Linear(4, 2) for _ in range(3)]).batched
        True
    """

    def __init__(
        self, policies: Sequence[Policy], *, squashed: bool = True, whole: bool = False, feature_dims: int = 1,
        outputs: Outputs = None,
    ) -> None:  # fmt: skip
        self.policies: list[Any] = list(policies)
        if not self.policies:
            raise InputError("policies", "to hold at least one", "none")
        self._read: Callable[..., Behavior] = partial(read_single, squashed=squashed, outputs=outputs)
        self.whole, self.feature_dims = whole, feature_dims
        first = self.policies[0]
        self.agents, self.device, self._width = len(self.policies), device_of(first), 1
        if isinstance(first, nn.Module):
            self.cost = sum(map(torch.numel, first.parameters()))
            self._width = max([1, *chain.from_iterable(map(torch.Tensor.size, tensors_in(first).values()))])
        self._unchecked: set[int] = set()  # who may not answer each row by itself; none is tried where torch compiles
        for agent, policy in enumerate(() if whole or torch.compiler.is_compiling() else self.policies):
            if not isinstance(policy, nn.Module) or policy not in _CHECKED:
                self._unchecked.add(agent)

    @cached_property
    def batched(self) -> bool:
        """Whether one call may run the code of all policies: that of modules which differ in numbers only."""
        first: list[object] = []
        for policy in self.policies:
            code = _describe_code(policy) if isinstance(policy, nn.Module) else []
            first = first or code
            if not code or code != first:
                return False
        return True

    def alike(self) -> str:
        """Return a message if agents are one network, or copies of one, else an empty text."""
        each = [list(tensors_in(policy).values()) if isinstance(policy, nn.Module) else [] for policy in self.policies]

        def agree(same: Callable[[Tensor, Tensor], bool]) -> bool:
            return all(len(own) == len(each[0]) > 0 and all(map(same, own, each[0])) for own in each)

        alike = f"so they act alike on the same observation. {hint_shared(self)}"
        if agree(operator.is_) or all(policy == self.policies[0] for policy in self.policies):
            return f"share one network, {alike}"
        return f"have equal parameters, {alike}" if agree(torch.equal) else ""

    def _evaluate(self, observations: Tensor) -> Behavior:
        lead = observations.shape[: -self.feature_dims]
        shown = observations if self.whole and lead else observations.reshape(-1, *observations.shape[len(lead) :])
        everyone = range(self.agents)
        if self._unchecked:
            self._check_rows(everyone, shown)
        answers = self._try(
            partial(self._call_as_one, everyone, shown, None),
            partial(self._call_each, everyone, [shown] * self.agents, torch.stack),
            rows=math.prod(lead),
        )
        fields, axis = [], shown.dim() - self.feature_dims  # the agents come after the observations
        for field in tensors_of(answers):
            moved = field.movedim(0, axis).contiguous()
            fields.append(moved.reshape(*lead, *moved.shape[axis:]))
        return with_tensors(answers, fields)

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        if self.whole:
            got = "one with whole=True: recurrent or communicating policies"
            raise InputError("team", "of policies that answer each observation by itself", got, "Use team.evaluate.")
        requested, order = agents.to(observations.device).flatten().sort(stable=True)
        distinct, counts = requested.unique_consecutive(return_counts=True)
        asked, longest = distinct.tolist(), int(counts.max())
        if self._unchecked:
            self._check_rows(asked, observations)
        rows = (order // agents.shape[1]).split(counts.tolist())
        each = partial(self._call_each, asked, (observations[part] for part in rows), torch.cat)
        if longest * len(asked) > PADDED * len(order):
            answers = each()
        else:
            padded = observations[pad_sequence(rows, batch_first=True)]
            own = torch.arange(longest, device=order.device) < counts.unsqueeze(1)
            answers = self._try(partial(self._call_as_one, asked, padded, own), each, rows=longest)
        back = order.argsort()
        return map_tensors(lambda fields, _: fields[0][back].unflatten(0, agents.shape), [answers])

    def _check_rows(self, agents: Iterable[int], rows: Tensor) -> None:
        """Try the policies that have not been tried yet."""
        asked = [agent for agent in agents if agent in self._unchecked]
        if not asked or len(rows) < 2 or torch.compiler.is_compiling():  # random state is not to be traced
            return

        def ask_all(shown: Tensor) -> list[Tensor]:
            looped = partial(self._call_each, asked, [shown] * len(asked), torch.stack, quiet=True)
            return tensors_of(self._try(partial(self._call_as_one, asked, shown, None), looped, rows=ROWS))

        if check_rows(ask_all, rows, list(map(self._name, asked))):
            self._unchecked.difference_update(asked)
            _CHECKED.update(policy for policy in map(self.policies.__getitem__, asked) if isinstance(policy, nn.Module))

    def _try(self, batched: Callable[[], T], looped: Callable[[], T], *, rows: int) -> T:
        """Return what policies answer as one, or one by one where that is faster or the only way."""
        if not self.batched or torch.is_autocast_enabled(self.device.type):  # which rounds batches elsewhere
            return looped()
        if self.device.type == "cpu" and rows * self._width * LOOPED > CACHED_ACTIVATIONS:
            return looped()
        try:
            return batched()
        except FAULTS:
            # vmap's refusals have no class of their own. A fault of the policies comes up again in the loop, and only
            # a loop that succeeds proves that it was vmap's.
            answers = looped()
            self.batched = False
            return answers

    def _call_each(
        self, agents: Sequence[int], shown: Iterable[Tensor], join: Callable[..., Tensor], *, quiet: bool = False
    ) -> Behavior:
        """Call policies one by one, each on its own rows; tensors of the answers are joined along a first axis."""
        asking, answers = ask_quietly if quiet else ask, []
        for agent, rows in zip(agents, shown, strict=True):
            whose, lead = f"policy {self._name(agent)}", rows.shape[: rows.dim() - self.feature_dims]
            try:
                answers.append(self._read(asking(self.policies[agent], rows, whose), lead, validate=not quiet))
            except InputError as error:
                if whose not in str(error):
                    error.index, error.fix = (), f"{error.fix} This is the answer of {whose}.".lstrip()
                raise
        return map_tensors(lambda fields, _: join(fields), answers, skip=1)

    def _call_as_one(self, agents: Sequence[int], shown: Tensor, own: Tensor | None) -> Behavior:
        """Call policies as one; the tensors of the answers begin with the agents' axis.

        Args:
            agents: The policies.
            shown: Rows for all of them; with ``own`` each policy's, ``[agents, longest, ...]``.
            own: bool ``[agents, longest]``, which rows are no padding; their answers are then joined along one axis.
        """
        rows = shown.shape[: shown.dim() - self.feature_dims].numel() // (1 if own is None else len(agents))
        most = CACHED_ACTIVATIONS if shown.device.type == "cpu" else MAX_ACTIVATIONS
        size = max(1, min(most // max(1, rows * self._width), MAX_ACTIVATIONS // max(1, self.cost or 1)))
        fields = []
        for start in range(0, len(agents), size):
            given = shown if own is None else shown[start : start + size]
            answer, some = self._run(agents[start : start + size], given, None if own is None else 0)
            fields.append(some)
        joined = list(map(torch.cat, zip(*fields, strict=True)))
        if own is not None:
            joined = [field[own] for field in joined]
        return with_tensors(answer, joined, validate=True)

    def _run(self, agents: Iterable[int], shown: Tensor, in_dim: int | None) -> tuple[Behavior, list[Tensor]]:
        """Return one module's answer, and the tensors of all answers, agents first."""
        with LOCK:  # another thread's call may have put its parameters into the first module
            each = list(map(tensors_in, map(self.policies.__getitem__, agents)))
        # Their names are the same, in the same order. Unlike torch.func.stack_module_state, gradients reach modules.
        together = map(torch.stack, zip(*map(dict.values, each), strict=True))
        stacked, first, kind = dict(zip(each[0], together, strict=True)), self.policies[0], []

        def call(tensors: dict[str, Tensor], rows: Tensor) -> list[Tensor]:
            answer = functional_call(first, tensors, (rows,))
            lead = rows.shape[: rows.dim() - self.feature_dims]
            kind.append(self._read(answer, lead, validate=False))  # vmap reads no values
            return tensors_of(kind[0])

        with evaluation_mode(first):  # whose code runs for all
            fields = vmap(call, in_dims=(0, in_dim))(stacked, shown.clone())
        return kind[0], fields

    def _name(self, agent: int) -> str:
        return self._names[agent] if self._names else str(agent)


def hint_shared(team: Team) -> str:
    """Return what to use for agents that are one network; adapters have their own."""
    name = "Team" if type(team) is PoliciesTeam else type(team).__name__
    return f"If the network is told which agent it is, use {name}.shared."


class TeamOptions(TypedDict, total=False):
    """The options of :func:`as_team`, which :func:`graphsnd.measure` takes too."""

    agents: int | None
    squashed: bool
    whole: bool
    feature_dims: int | Mapping[str, int]
    outputs: Outputs


def as_team(
    policies: Team | Mapping[str, Policy] | Sequence[Policy] | Policy,
    *,
    agents: int | None = None,
    squashed: bool = True,
    whole: bool = False,
    feature_dims: int | Mapping[str, int] = 1,
    outputs: Outputs = None,
) -> Team:
    """Return a team made of the given policies.

    Args:
        policies: Policies, as in :func:`~graphsnd.evaluate`. A team is returned unchanged.
        agents: Number of agents, for stacked modules; otherwise it must agree with the policies.
        squashed: Passed to :func:`~graphsnd.from_distribution`; a team has settled this already.
        whole: Give each policy of a list the observations unchanged, see :func:`~graphsnd.evaluate`.
        feature_dims: Trailing dimensions of one observation, for a list of policies.
        outputs: Names of several outputs, see :func:`~graphsnd.evaluate`.

    Raises:
        InputError: For an empty list, for something that holds no policies, and for another number of ``agents``.

    Example:
        >>> import torch
        >>> as_team([torch.nn.Linear(4, 2) for _ in range(3)])
        PoliciesTeam(agents=3, observation_features=None)
    """
    if isinstance(policies, Mapping | nn.ModuleDict):
        options: dict[str, Any] = {"squashed": squashed, "whole": whole, "feature_dims": feature_dims, "agents": agents}
        team = as_team(list(policies.values()), outputs=outputs, **options)
        return team.with_names(list(map(str, policies.keys())))
    if not isinstance(policies, Team) and callable(policies) and not isinstance(policies, nn.ModuleList):
        # A ModuleList can be called too; its call only says that it has none.
        if whole or feature_dims != 1:
            fix = "Pass one policy per agent: a stacked module answers for all agents on one observation."
            raise InputError("team", "to be a list with whole=True or feature_dims", type(policies).__name__, fix)
        return JointTeam(policies, agents=agents, squashed=squashed, outputs=outputs)
    given: object = policies
    if isinstance(given, Team):
        team = given
    else:
        listed = list(given) if isinstance(given, Iterable) and not isinstance(given, Tensor) else []
        if not listed or not all(map(callable, listed)):
            got = f"a {type(given).__name__} of {sorted({type(one).__name__ for one in listed})}"
            fix = "Models of a framework become a team by its adapter in graphsnd.integrations, such as sb3.ModelTeam."
            raise InputError("team", "to be a list or dict of modules or callables, or one stacked module", got, fix)
        arrays = None
        if isinstance(feature_dims, Mapping):
            arrays = Arrays({key: Array(dims) for key, dims in feature_dims.items()})
            listed, feature_dims = [OnArrays(policy, arrays) for policy in listed], 1
        team = PoliciesTeam(listed, squashed=squashed, whole=whole, feature_dims=feature_dims, outputs=outputs)
        team.arrays = arrays
    if agents is not None and agents != team.agents:
        raise InputError("agents", f"to be {team.agents}, the number of policies", agents)
    return team


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
        state, answers = self.state, []
        for observations in sequences:
            answer, state = self.step(observations, state)
            answers.append(read_single(answer, observations.shape[:-1], squashed=self.squashed))
        return map_tensors(lambda steps, _: torch.stack(steps), answers, validate=True)


def _describe_code(module: nn.Module) -> list[object]:
    """Return what decides what a module does, apart from the values of its parameters and buffers, to be compared.

    Classes, names, shapes and dtypes, and the other attributes of the module and its children: plain values as such,
    anything else by its identity. Nothing, where there are no parameters and buffers to batch over.
    """
    code: list[object] = []
    if len(list(module.named_modules(remove_duplicate=False))) != len(list(module.modules())):
        return code  # functional_call does not restore the parameters of a module that has two names
    for name, part in tensors_in(module).items():
        code.append((name, part.shape, part.dtype, part.device))
    for name, child in module.named_modules() if code else ():
        identity: object = type(child)
        for kind in type(child).__mro__:
            if vars(kind).get("__slots__"):  # attributes that vars does not show
                identity = id(child)
        code.append((name, identity))
        for key, value in vars(child).items():
            if key in _OWN:
                continue
            said: object
            if isinstance(value, torch.device) or (isinstance(value, dict) and not value):  # no hooks, as in most
                said = str(value)
            elif hasattr(value, "__array__"):  # a tensor that is neither parameter nor buffer
                said = id(value)
            else:
                try:  # It takes plain values only: numbers, texts, and lists, tuples and dicts of them.
                    said = marshal.dumps(value, 2)
                except ValueError:
                    said = id(value)
            code.append((key, type(value), said))
    return code
