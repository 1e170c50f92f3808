"""What every agent of a BenchMARL group would do on the same observations."""

from __future__ import annotations

from typing import Any

import torch
from benchmarl.models.common import Model
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.integrations.torchrl import read_actor, run_actor


def sample_frames(batch: TensorDictBase, most: int, *, sequences: bool = False) -> tuple[TensorDictBase, Tensor | None]:
    """Return evenly spaced frames of a collected batch, and the environment that each comes from.

    Args:
        batch: Batch size ``[environments, time]``, or ``[time]``.
        most: Number of frames to return.
        sequences: Return whole sequences ``[k, time]``, at least one, where policies have a memory.

    Returns:
        Frames ``[frames]`` or ``[k, time]``, and integers of that shape; None for a single environment.
    """
    time = batch.batch_size[-1]
    places = torch.arange(batch.numel(), device=batch.device).view(-1, time)
    rows, size = (places, max(1, most // time)) if sequences else (places.flatten(), most)
    if len(rows) > size:
        rows = rows[torch.linspace(0, len(rows) - 1, size, device=rows.device).round().long()]
    return batch.reshape(-1)[rows], rows // time if len(places) > 1 else None


def has_memory(policy: torch.nn.Module) -> bool:
    """Return whether a policy is recurrent."""
    return any(hasattr(module, "rnn_keys") for module in policy.modules())


@torch.no_grad()
def evaluate_group(policy: Any, frames: TensorDictBase, group: str, *, squashed: bool = True) -> Behavior:
    r"""Return what every agent would do in every seat of every frame: all agents on the same observations.

    A frame holds one observation for each agent, its seat. Agent :math:`i` in seat :math:`k` of frame :math:`O` answers
    :math:`f_i(O)[k]`, its own network with its own parameters in that seat. Without communication this is the agent's
    answer to the observation :math:`O_k`. With it (a GNN), the other seats hold what they hold in the frame.

    BenchMARL runs agent i in seat i only, so agents are seated in turn: the frame is rolled by s seats, for each s, and
    the answer of agent i is then the one for seat i + s. That needs networks to which seats are interchangeable, as
    they are to all of BenchMARL's. Where BenchMARL's models share their parameters, the answer of a seat is that of all
    agents, and is computed once: differences are then exactly 0, not rounding.

    Recurrent policies see whole sequences, each agent with a memory of its own that is empty at the start.

    Args:
        policy: Of ``algorithm.get_policy_for_loss(group)``, so without exploration.
        frames: Batch size ``[frames]``, or ``[sequences, time]``, as collected.
        group: Name of the group.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        Batch shape ``[agents, *frames.batch_size]``: seats, then frames. For Q-learners the greedy action, as a
        categorical that is certain of it.

    Raises:
        InputError: For centralised policies, and what has no distance.
    """
    models = [module for module in policy.modules() if isinstance(module, Model)]
    if any(model.centralised for model in models):
        raise InputError("policy", "that acts on observations of its own", "a centralised model")
    agents = models[0].n_agents
    shared = all(model.share_params and type(model).__module__.startswith("benchmarl.") for model in models)
    lead, shifts = tuple(frames.batch_size), 1 if shared else agents
    shown = TensorDict({group: TensorDict({}, [shifts * lead[0], *lead[1:], agents])}, [shifts * lead[0], *lead[1:]])
    for key in policy.in_keys:
        if not _is_hidden(key):  # without it a recurrent model starts empty, as in training
            value = frames.get(key).to(models[0].device)
            own = isinstance(key, tuple) and key[0] == group
            shown.set(key, torch.cat([value.roll(-s, len(lead)) if own else value for s in range(shifts)]))
    answers = run_actor(policy, shown).get(group)
    seated = answers.apply(
        lambda part: _sort_by_seat(part, len(lead), shared=shared), batch_size=[agents, *lead, agents]
    )
    return read_actor(policy, TensorDict({group: seated}, [agents, *lead]), squashed=squashed)


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
