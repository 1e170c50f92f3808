"""The behaviour of all agents of a BenchMARL group on the same observations, in training or from a checkpoint."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import Any

import torch
from benchmarl.experiment import Experiment
from benchmarl.models.common import Model
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, shape_of
from graphsnd.integrations.spaces import locate
from graphsnd.integrations.torchrl import ActorTeam, KeyedTeam, number_episodes, read_actor, run_actor
from graphsnd.teams.answers import ask, map_tensors
from graphsnd.teams.team import Team, device_of


def sample_frames(batch: TensorDictBase, most: int, *, sequences: bool = False) -> tuple[TensorDictBase, Tensor]:
    """Return evenly spaced frames of a batch, and the environment of each, or its episode in a single environment.

    Args:
        batch: Collected batch, of batch size ``[environments, time]`` or ``[time]``.
        most: Number of frames to return.
        sequences: Return whole sequences ``[k, time]``, at least one, for policies with a memory.

    Returns:
        Frames ``[frames]`` or ``[k, time]``, and integers of that shape.
    """
    time = batch.batch_size[-1]
    places = torch.arange(batch.numel(), device=batch.device).view(-1, time)
    rows, size = (places, max(1, most // time)) if sequences else (places.flatten(), most)
    if len(rows) > size:
        rows = rows[torch.linspace(0, len(rows) - 1, size, device=rows.device).round().long()]
    groups = rows // time if len(places) > 1 else number_episodes(batch).reshape(-1)[rows]
    return batch.reshape(-1)[rows], groups


def has_memory(policy: torch.nn.Module) -> bool:
    """Return whether a policy is recurrent."""
    return any(hasattr(module, "rnn_keys") for module in policy.modules())


@torch.no_grad()
def evaluate_group(
    policy: Any, frames: TensorDictBase, group: str, *, squashed: bool = True, columns: Any = None
) -> Behavior:
    r"""Return what every agent would do in every seat of every frame: all agents on the same observations.

    A frame holds one observation for each agent, its seat. Agent :math:`i` in seat :math:`k` of frame :math:`O` answers
    :math:`f_i(O)[k]`, its own network with its own parameters in that seat. Without communication this is the agent's
    answer to the observation :math:`O_k`. With it (a GNN), the other seats hold what they hold in the frame.

    BenchMARL runs agent i in seat i only, so the frame is rolled by s seats, for each s, and the answer of agent i is
    then the one for seat i + s. Networks must treat all seats alike, as all of BenchMARL's do. If BenchMARL's models
    share their parameters, the answer of a seat is computed once for all agents: differences are then exactly 0, not
    rounding.

    Recurrent policies see whole sequences, each agent with a memory of its own that is empty at the start.

    Args:
        policy: Policy of ``algorithm.get_policy_for_loss(group)``, which has no exploration.
        frames: Collected frames, of batch size ``[frames]`` or ``[sequences, time]``.
        group: Name of the group.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        columns: Features in which observations tell a shared network for which agent it acts, as in
            :class:`~graphsnd.integrations.torchrl.KeyedTeam`. The values there belong to the agent and stay with it in
            every seat.

    Returns:
        Behaviour of batch shape ``[agents, *frames.batch_size]``: seats, then frames. For Q-learners a categorical that
        is certain of the greedy action.

    Raises:
        InputError: For centralised policies, outputs without a distance, and errors that the policy raises.
    """
    models = [module for module in policy.modules() if isinstance(module, Model)]
    if any(model.centralised for model in models):
        raise InputError("policy", "that acts on observations of its own", "a centralised model")
    if columns is not None and any(type(model).__name__ == "Gnn" for model in models):
        raise InputError("columns", "to be None for agents that communicate, who also read those of others", columns)
    agents = models[0].n_agents
    shared = columns is None and all(m.share_params and type(m).__module__.startswith("benchmarl.") for m in models)
    lead, shifts = tuple(frames.batch_size), 1 if shared else agents
    shown = TensorDict({group: TensorDict({}, [shifts * lead[0], *lead[1:], agents])}, [shifts * lead[0], *lead[1:]])
    for key in policy.in_keys:
        if not _is_hidden(key):  # without it a recurrent model starts empty, as in training
            if (value := frames.get(key, None)) is None:
                raise InputError("policy", "that reads what was collected", f"the input {key}, which was not")
            value = value.to(models[0].device)
            own = isinstance(key, tuple) and key[0] == group
            shown.set(key, torch.cat([value.roll(-s, len(lead)) if own else value for s in range(shifts)]))
    if columns is not None:
        key, told = locate(columns, _own_keys(policy, group))
        shown.get(key).unflatten(0, (shifts, lead[0]))[..., told] = frames.get(key)[..., told].to(models[0].device)
    answers = ask(lambda given: run_actor(policy, given), shown, f"policy of {group!r}").get(group)
    seated = answers.apply(
        lambda part: _sort_by_seat(part, len(lead), shared=shared), batch_size=[agents, *lead, agents]
    )
    return read_actor(policy, TensorDict({group: seated}, [agents, *lead]), squashed=squashed)


class GroupTeam(KeyedTeam):
    """A group of agents that communicate or have a memory, as a team that answers to joint observations.

    :meth:`evaluate` takes what all agents observed, ``[..., agents, features]``, and for recurrent policies whole
    sequences ``[..., time, agents, features]``. Every agent answers in every seat, see :func:`evaluate_group`. There is
    no answer to a single observation, so ``graphsnd.measure(team, observations)`` evaluates all of them.

    Args:
        policy: Policy of ``algorithm.get_policy_for_loss(group)``.
        group: Name of the group.
        agents: Number of agents in it.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        feature_dims: Trailing dimensions of one observation, by key if the policy reads several; see
            :class:`~graphsnd.integrations.torchrl.ActorTeam`.
    """

    proportional, whole = False, True

    def __init__(self, policy: Any, group: str, agents: int, *, squashed: bool = True, feature_dims: Any = 1) -> None:
        self.policy, self.group, self.agents, self.squashed = policy, group, agents, squashed
        self.device, self.recurrent = device_of(policy), has_memory(policy)
        self._read_at(_own_keys(policy, group), feature_dims)

    def read_observations(self, observations: Any) -> Tensor:
        """Return joint observations as one tensor; those of a TensorDict, such as a rollout, are read from it."""
        joint = super().read_observations(observations)
        if joint.dim() < 3 + self.recurrent or joint.shape[-2] != self.agents:
            raise self._refusal(joint)
        return joint

    def _refusal(self, observations: Tensor) -> InputError:
        expected = f"with shape (..., {'time, ' * self.recurrent}{self.agents} agents, features)"
        fix = "Agents that communicate or remember answer to what all observed: graphsnd.measure(team, rollout)."
        return InputError("observations", expected, shape_of(observations), fix)

    def _evaluate(self, observations: Tensor) -> Behavior:
        joint = observations.flatten(0, -4 if self.recurrent else -3)
        lead = joint.shape[:-2]
        frames = TensorDict(self._by_key(joint), lead)
        if self.recurrent:
            frames["is_init"] = (torch.arange(lead[1], device=joint.device) == 0).expand(lead).unsqueeze(-1)
        behavior = evaluate_group(self.policy, frames, self.group, squashed=self.squashed, columns=self.columns)

        def seats_last(parts: list[Tensor], trailing: int) -> Tensor:
            part = parts[0].movedim(0, len(lead))
            return part.reshape(*observations.shape[:-1], *part.shape[-1 - trailing :])

        return map_tensors(seats_last, [behavior])

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        raise self._refusal(observations)


def _own_keys(policy: Any, group: str) -> list[Any]:
    """Return the observation keys of each agent of a group."""
    return [key for key in policy.in_keys if isinstance(key, tuple) and key[0] == group and not _is_hidden(key)]


def _is_hidden(key: Any) -> bool:
    return str(key[-1] if isinstance(key, tuple) else key).startswith("_hidden")


def _sort_by_seat(part: Tensor, axis: int, *, shared: bool) -> Tensor:
    """Return ``[seats, frames, ..., agents, ...]`` from the answers to rolled frames, agents at ``axis``."""
    agents = part.shape[axis]
    if shared:
        each = part.movedim(axis, 0).unsqueeze(axis + 1)
        return each.expand(*each.shape[: axis + 1], agents, *each.shape[axis + 2 :])
    parts = part.unflatten(0, (agents, -1)).movedim(axis + 1, 1)  # [shifts, agents, frames, ...]
    agent = torch.arange(agents, device=part.device)
    return parts[(agent[:, None] - agent) % agents, agent.expand(agents, -1)].movedim(1, axis + 1)


def load_teams(
    checkpoint: str | os.PathLike[str], *, device: torch.device | str = "cpu", squashed: bool = True
) -> dict[str, Team]:
    """Return the policies of a BenchMARL checkpoint, one team for each group of agents.

    BenchMARL rebuilds the experiment from the ``config.pkl`` beside it, which is a pickle: load what you trust. Nothing
    is written to the experiment's folder.

    Args:
        checkpoint: File ``<experiment>/checkpoints/checkpoint_<frames>.pt``.
        device: Device of the policies.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        Teams by group. Recurrent and graph networks answer to joint observations, see :class:`GroupTeam`.

    Raises:
        InputError: For policies that read a state of all agents.

    Example:
        >>> teams = load_teams("ippo_navigation/checkpoints/checkpoint_60000.pt")  # doctest: +SKIP
        >>> print(graphsnd.measure(teams["agents"], observations))  # doctest: +SKIP
    """
    device = str(device)
    with TemporaryDirectory() as folder:  # BenchMARL writes config.pkl again wherever it reloads
        patch = {"save_folder": folder, "loggers": [], "create_json": False, "restore_map_location": device}
        patch |= dict.fromkeys(("sampling_device", "train_device", "buffer_device"), device)
        experiment = Experiment.reload_from_file(os.fspath(checkpoint), experiment_patch=patch)
        experiment.close()
    teams = {}
    for group, names in experiment.group_map.items():
        # Without gradients a controlled model takes no evaluation for a training step.
        policy = experiment.algorithm.get_policy_for_loss(group).requires_grad_(False)
        model = next(module for module in policy.modules() if isinstance(module, Model))
        dims = {key: len(spec.shape) - 1 for key, spec in model.input_spec.items(True, True)}  # 3 for images
        team: Team = (
            GroupTeam(policy, group, len(names), squashed=squashed, feature_dims=dims)
            if has_memory(policy) or type(model).__name__ == "Gnn"
            else ActorTeam(policy, agents=len(names), squashed=squashed, feature_dims=dims)
        )
        teams[group] = team.with_names(names)
    return teams
