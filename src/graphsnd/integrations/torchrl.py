"""TorchRL's multi-agent actors as teams.

Needs ``torchrl`` and ``tensordict``. See ``docs/torchrl.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from graphsnd.behavior import Behavior, Categorical, Deterministic, Gaussian
from graphsnd.behavior.distributions import read_distribution
from graphsnd.errors import InputError, require
from graphsnd.integrations.probe import Probe
from graphsnd.integrations.spaces import locate
from graphsnd.teams.answers import evaluation_mode, map_tensors, tensors_of
from graphsnd.teams.arrays import Array, Arrays
from graphsnd.teams.joint import JointTeam
from graphsnd.teams.policies import hint_shared
from graphsnd.teams.team import Team

__all__ = ["ActorTeam", "DiversityCallback"]

tensordict = require("tensordict", "torchrl")
MultiAgentNetBase = require("torchrl.modules.models.multiagent", "torchrl").MultiAgentNetBase
TrainerHookBase = require("torchrl.trainers", "torchrl").TrainerHookBase


class KeyedTeam(Team):
    """A team that reads observations at one key of a TensorDict, or at several, which are then joined.

    Attributes:
        observation_keys: Keys of the observations; none for a bare network.
        columns: Features in which an observation tells a shared network for which agent it acts. They are replaced by
            the identity of the agent that answers. A slice, a list or one integer; if several entries are read, with
            the key of one: ``{("agents", "observation"): slice(-3, None)}``. None: nothing is replaced.
        identity: Identity of each agent, ``[agents, k]``; one-hot vectors when None.
    """

    observation_keys: tuple[Any, ...] = ()
    columns: Any = None
    identity: Tensor | None = None

    def _read_at(self, keys: Sequence[Any], feature_dims: int | Mapping[Any, int]) -> None:
        dims = feature_dims if isinstance(feature_dims, Mapping) else dict.fromkeys(keys or [()], feature_dims)
        self.observation_keys = tuple(keys)
        self.arrays = Arrays({key: Array(dims.get(key, 1)) for key in keys}) if len(keys) > 1 else None
        self.feature_dims = 1 if self.arrays else next(iter(dims.values()), 1)

    def join_arrays(self, observations: Any) -> Any:
        """As for every team; a TensorDict, such as a rollout, is read at ``observation_keys``."""
        if isinstance(observations, tensordict.TensorDictBase):
            entries = self.read_entries(observations)
            observations = entries if self.arrays else entries[self.observation_keys[0]]
        return super().join_arrays(observations)

    def read_entries(self, rollout: Any) -> dict[Any, Tensor]:
        """Return the entries of a TensorDict that are observations, by their keys."""
        entries = {key: rollout.get(key, None) for key in self.observation_keys}
        absent = [key for key, part in entries.items() if part is None]
        if absent or not entries:
            expected = f"with the entry {absent[0]!r}, which the actor reads" if absent else "to be a tensor"
            raise InputError("observations", expected, f"a TensorDict with {list(rollout.keys(True, True))}")
        return entries

    def _by_key(self, rows: Tensor) -> dict[Any, Tensor]:
        entries = self.arrays.split(rows) if self.arrays else {(*self.observation_keys, ())[0]: rows}
        if self.columns is not None:  # rows are [..., agents, features]
            key, columns = locate(self.columns, list(entries))
            seen = entries[key]
            reader = Team.shared(lambda rows: rows, self.agents, columns=columns, identity=self.identity)
            places = torch.arange(self.agents, device=seen.device).expand(seen.shape[:-1]).reshape(-1, 1)
            told: Any = reader.partial(seen.flatten(0, -2), places)
            entries[key] = told.actions.view_as(seen)
        return entries


class ActorTeam(KeyedTeam, JointTeam):
    """A TorchRL actor of several agents, each of which answers the same observations.

    An actor takes one observation per agent and answers for agent i in place i. Every observation is shown in all
    places, so that agents are compared on the same ones, whichever of them made them. Nothing is drawn: a distribution
    is compared as such, an action without exploration. Action values (``QValueActor``) are compared by the greedy
    action: total variation is the share of observations on which two agents choose differently.

    Args:
        actor: A ``ProbabilisticActor`` (of an ``ActorValueOperator`` its policy operator), a ``TensorDictModule`` or
            ``TensorDictSequential`` that puts out an action, a ``loc`` and ``scale``, ``logits``, ``probs`` or action
            values; or a ``MultiAgentMLP`` that puts out actions. It may read several keys, such as pixels, a vector and
            an action mask, and must not be centralised or recurrent.
        agents: Number of agents; read from the ``MultiAgentMLP`` when None.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        weights: Weights of the parts of a ``CompositeDistribution``, by name.
        feature_dims: Trailing dimensions of one observation, 3 for images; by key if the actor reads several. Keys that
            are left out have 1.

    Attributes:
        observation_keys: Keys at which the actor reads observations; none for a bare network. With several,
            observations are a TensorDict, or a dict with these keys.
        columns: Features in which a shared actor reads for which agent it acts; an argument of :meth:`shared`.
        identity: Identity of each agent that it reads there, ``[agents, k]``; one-hot vectors when None.

    Raises:
        InputError: For centralised and recurrent networks, inputs of other agents, an unknown number of agents, and
            modules that change an action after it was drawn.

    Example:
        >>> import torch, graphsnd as gs
        >>> from torchrl.modules import MultiAgentMLP
        >>> options = {"n_agent_inputs": 4, "n_agent_outputs": 2, "n_agents": 3, "centralized": False}
        >>> team = ActorTeam(MultiAgentMLP(**options, share_params=True))
        >>> print(gs.measure(team, torch.randn(16, 4)).value)
        0.0
    """

    def __init__(
        self,
        actor: nn.Module,
        *,
        agents: int | None = None,
        squashed: bool = True,
        weights: Mapping[str, float] | None = None,
        feature_dims: int | Mapping[Any, int] = 1,
    ) -> None:
        check_policy(actor)
        networks = [module for module in actor.modules() if isinstance(module, MultiAgentNetBase)]
        if any(network.centralized for network in networks):
            fix = "Centralised networks see all agents at once: there is no answer to one observation."
            raise InputError("actor", "with decentralised networks", "a centralised one", fix)
        agents = networks[0].n_agents if agents is None and networks else agents
        if agents is None:
            raise InputError("agents", "to be given for an actor without a MultiAgentMLP", "None", "Pass agents=.")
        super().__init__(actor, agents=agents, squashed=squashed)
        self._read_at([] if isinstance(actor, MultiAgentNetBase) else find_observation_keys(actor), feature_dims)
        self.actor, self.weights = actor, weights
        del self.policy  # the actor; a copy of this team has its own method instead
        held = {id(each) for network in networks if network.share_params for each in network.parameters()}
        self._shared = bool(held) and all(id(each) in held for each in actor.parameters())

    @classmethod
    def shared(cls, policy: Any, agents: Any, *, columns: Any = None, identity: Any = None, **options: Any) -> Self:
        """Return the team of agents that share one actor, which reads in its observations for which agent it acts.

        Args:
            policy: An actor as above, such as one with ``share_params=True``.
            agents: Number of agents, or a list of their names.
            columns: Features that hold the identity, which is replaced; the attribute ``columns``.
            identity: Identity of each agent, ``[agents, k]``; one-hot vectors when None.
            **options: Options of this class.
        """
        if isinstance(agents, Sequence):
            return cls.shared(policy, len(agents), columns=columns, identity=identity, **options).with_names(agents)
        team = cls(policy, agents=agents, **options)
        team.columns, team.identity = columns, identity
        return team

    def alike(self) -> str:
        """Return a message if agents share one network that does not read its agent's identity, else an empty text."""
        untold = self._shared and self.columns is None
        return f"share one network, so they act alike on the same observation. {hint_shared(self)}" if untold else ""

    def _evaluate(self, observations: Tensor) -> Behavior:
        behavior = super()._evaluate(observations)
        return collapse_equal_agents(behavior) if self._shared else behavior

    def policy(self, shown: Tensor) -> Behavior:
        """Return what the actor answers to observations in the places of agents."""
        if not self.observation_keys:
            return Deterministic(run_actor(self.actor, self._by_key(shown)[()]))
        given = tensordict.TensorDict(self._by_key(shown), shown.shape[: -1 - self.feature_dims])
        return read_actor(self.actor, run_actor(self.actor, given), squashed=self.squashed, weights=self.weights)


class DiversityCallback(TrainerHookBase):  # type: ignore[misc, valid-type]
    """Log the SND of a team on the batches that a ``torchrl.trainers.Trainer`` collects, before it learns from them.

    It logs ``snd`` and, if there are enough observations for an interval, ``snd_low`` and ``snd_high``. Observations of
    one episode depend on each other, so the interval is over episodes, or over environments if the collector does not
    number episodes.

    Args:
        team: The actor that is trained, as a team.
        every: Batches from one measurement to the next.
        observations: Largest number of observations to measure on, evenly spaced in the batch.
        **options: Options of :func:`graphsnd.measure`: ``design``, ``distance``, ``rel_tol`` and so on.

    Example:
        >>> import tensordict.nn
        >>> from torchrl.modules import MultiAgentMLP
        >>> key, network = ("agents", "observation"), MultiAgentMLP(4, 2, 3, centralized=False, share_params=True)
        >>> actor = tensordict.nn.TensorDictModule(network, in_keys=[key], out_keys=[("agents", "action")])
        >>> callback = DiversityCallback(ActorTeam(actor))  # .register(trainer), which calls it with each batch
        >>> callback(tensordict.TensorDict({key: torch.randn(8, 50, 3, 4)}, [8, 50]))["snd"]
        0.0
    """

    def __init__(self, team: ActorTeam, *, every: int = 1, observations: int = 2048, **options: Any) -> None:
        self.team, self.probe, self.batches = team, Probe(every, observations, **options), 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The logged numbers, a dictionary for each measurement, with ``step``, the number of batches before it."""
        return self.probe.rows

    def __call__(self, batch: Any) -> dict[str, float] | None:
        """Return what the trainer logs; None where it is not time to measure."""
        step, self.batches = self.batches, self.batches + 1
        if not self.probe.due(step):
            return None
        entries, episodes = self.team.read_entries(batch), number_episodes(batch)
        mask = batch.get(("collector", "mask"), torch.ones_like(episodes, dtype=torch.bool))
        agents = next(iter(entries.values())).shape[episodes.dim()]
        rows = mask.flatten().repeat_interleave(agents).nonzero().squeeze(1)  # of all agents
        places = rows[self.probe.places(len(rows))]
        seen = {key: part.flatten(0, mask.dim())[places] for key, part in entries.items()}
        clusters = episodes.flatten().repeat_interleave(agents)[places]
        seen = tensordict.TensorDict(seen, [len(places)])
        numbers = self.probe.measure(step, self.team, seen, clusters=clusters)
        self.probe.record(step, numbers)
        return numbers

    def register(self, trainer: Any, name: str = "diversity") -> None:
        """Add the callback to a trainer."""
        trainer.register_op("pre_steps_log", self)
        trainer.register_module(name, self)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of batches so far."""
        return {"batches": self.batches}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore that number."""
        self.batches = state_dict["batches"]


def number_episodes(batch: Any) -> Tensor:
    """Return which episode, or else which environment, each frame of a collected batch belongs to."""
    episodes = batch.get(("collector", "traj_ids"), None)
    if episodes is not None:
        return episodes.reshape(batch.batch_size)
    first = torch.arange(batch.shape[0] if batch.batch_dims > 1 else 1, device=batch.device)
    return first.view(-1, *[1] * (batch.batch_dims - 1)).expand(batch.batch_size)


def collapse_equal_agents(behavior: Behavior) -> Behavior:
    """Return the first agent's answers for all if agents differ by rounding only, else the behaviour unchanged.

    One network that answers for all agents rounds by the place of an observation in the batch, which is no diversity.
    An actor that gives its one network the agent's identity can still have diversity.
    """
    first = map_tensors(lambda given, trailing: given[0].narrow(-1 - trailing, 0, 1).expand_as(given[0]), [behavior])
    for part, own in zip(tensors_of(behavior), tensors_of(first), strict=True):
        rounding = 64 * torch.finfo(part.dtype).eps * float(part.detach().abs().max())
        if float((part - own).detach().abs().max()) > rounding:
            return behavior
    return first


def check_policy(actor: Any) -> None:
    """Raise for a sequence that draws an action before its end, such as an actor-critic or an actor with exploration.

    It is no probabilistic sequence to TensorDict: its ``loc`` and ``scale`` are those before a tanh.
    """
    known = tensordict.nn
    drawn = (isinstance(step, known.ProbabilisticTensorDictModule) for step in _list_steps(actor))
    if not isinstance(actor, known.ProbabilisticTensorDictSequential) and any(drawn):
        fix = "Pass the ProbabilisticActor alone, as from get_policy_operator(), without exploration."
        raise InputError("actor", "that ends with the distribution of the action", list(actor.out_keys), fix)


def _list_steps(module: Any) -> list[Any]:
    """Return the modules of nested sequences in their order."""
    if not isinstance(module, tensordict.nn.TensorDictSequential):
        return [module]
    return [step for part in module.module.children() for step in _list_steps(part)]


def find_observation_keys(actor: Any) -> list[Any]:
    """Return the keys that an actor reads.

    Raises:
        InputError: For recurrent actors, and those that read several groups' observations, or a state of all.
    """
    # A distribution that reads a whole entry, as composite ones do, seems to read it from outside.
    made = {key[:depth] for key in actor.out_keys if isinstance(key, tuple) for depth in range(1, len(key))}
    keys = [key for key in actor.in_keys if (key if isinstance(key, tuple) else (key,)) not in made]
    if "is_init" in keys or any(key[0] == "next" for key in actor.out_keys if isinstance(key, tuple)):
        fix = "For recurrent policies see graphsnd.evaluate(..., whole=True)."
        raise InputError("actor", "without a memory", f"inputs {keys}", fix)
    if len({key[0] if isinstance(key, tuple) else None for key in keys}) != 1:
        raise InputError("actor", "that reads what one group of agents observes", f"inputs {keys}")
    return keys


def run_actor(actor: Any, given: Any) -> Any:
    """Return a TensorDict with an actor's outputs before anything is drawn, with dropout off."""
    probabilistic = isinstance(actor, tensordict.nn.ProbabilisticTensorDictSequential)
    with evaluation_mode(actor):
        return (actor.get_dist_params if probabilistic else actor)(given)


def read_actor(actor: Any, answers: Any, *, squashed: bool, weights: Mapping[str, float] | None = None) -> Behavior:
    """Return the behaviour in an actor's outputs.

    Args:
        actor: Actor, as in :class:`ActorTeam`.
        answers: Outputs that :func:`run_actor` returned, leaves ``[..., agents, outputs]``.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        weights: Passed to :func:`~graphsnd.from_distribution`.

    Raises:
        InputError: For other outputs than an actor of :class:`ActorTeam` has.
    """
    if isinstance(actor, tensordict.nn.ProbabilisticTensorDictSequential):
        # TorchRL's TruncatedNormal fails on the strides that a MultiAgentMLP puts out.
        made = actor.build_dist_from_params(answers.contiguous())
        return read_distribution(made, weights, squashed=squashed, lead=answers.batch_dims)
    outputs = {key[-1] if isinstance(key, tuple) else key: answers.get(key) for key in actor.out_keys}
    if "action_value" in outputs:
        values = outputs["action_value"]
        return Categorical(probs=nn.functional.one_hot(values.argmax(-1), values.shape[-1]).to(values.dtype))
    if outputs.keys() >= {"loc", "scale"}:
        return Gaussian(outputs["loc"], outputs["scale"])
    used = {key for step in _list_steps(actor) for key in step.in_keys}  # features between two steps
    last = {key[-1] if isinstance(key, tuple) else key: answers.get(key) for key in actor.out_keys if key not in used}
    if last.keys() <= {"logits", "probs"}:
        return Categorical(**last)
    if len(last) == 1:
        return Deterministic(*last.values())
    expected = "with an action, loc and scale, logits, probs, or action_value as outputs"
    raise InputError("actor", expected, list(actor.out_keys))
