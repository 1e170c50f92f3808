"""From policies to the behaviour of their team on shared observations, or to samples of what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior, Samples
from graphsnd.errors import InputError, as_tensor, describe
from graphsnd.teams.answers import LOCK, ask
from graphsnd.teams.policies import Policy, as_team
from graphsnd.teams.team import Team


def evaluate(
    team: Team | Mapping[str, Policy] | Sequence[Policy] | Policy,
    observations: Tensor,
    *,
    agents: int | None = None,
    squashed: bool = True,
    whole: bool = False,
    feature_dims: int | Mapping[str, int] = 1,
    outputs: str | Sequence[str] | None = None,
) -> Behavior:
    r"""Return what every agent would do on every observation: the input of equation (1).

    All observations are pooled and shown to all policies, whichever agent made them. So ``[time, agents, features]``
    from a rollout and ``[time * agents, features]`` give the same numbers, and two policies can't be compared on
    different observations. A policy of a list is given ``[observations, features]``, one row per observation, and
    answers ``[observations, actions]``.

    Modules are asked in evaluation mode (dropout off), and their modes restored. A policy whose answer to one row
    depends on the other rows, or on chance, is refused, unless ``whole=True`` says that rows belong together. Then
    each policy is given the observations as they are, and answers with the same leading dimensions:

    - *Recurrent policies* are given sequences ``[time, batch, features]`` (or ``[batch, time, features]``, as they
      take them), and each rolls its own hidden state along the same observations.
      :class:`~graphsnd.teams.policies.Unroll` makes such a policy of one that takes a step and a state.
    - *Communicating policies* (graph networks) are given joint observations ``[..., agents, features]``. For a joint
      observation O and a seat k, agent i's behaviour is what its own network does in that seat, with its own
      parameters at every seat, and the distance is the mean over joint observations and seats:

      .. math:: d(i,j) = \frac{1}{|B|\,n} \sum_{O \in B} \sum_{k=1}^{n} W_2\left(f_i(O)_k, f_j(O)_k\right)

    Args:
        team: A list of ``n`` policies (``nn.Module`` or callable), one per agent, or a dict of them, whose keys name
            the agents; or one stacked module that answers for all agents with an agents axis in second to last place;
            or a :class:`~graphsnd.Team`. An answer is a ``torch.distributions`` object, a tensor (deterministic
            action), a behaviour, a dict or list of distributions and behaviours, one for each part of the action, or a
            dict of tensors with names as in ``outputs``. A value beside them, as of an actor-critic, is left out.
        observations: Shape ``[..., features]``, or a dict of what each agent observed, which is pooled.
        agents: Number of agents, for stacked modules that, like TorchRL's ``MultiAgentMLP``, take one observation per
            agent; each observation is then shown to all of them. Without it the module is called on
            ``observations`` as they are and must add the agents axis itself.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        whole: Give each policy of a list the observations as they are instead of pooled, see above.
        feature_dims: Trailing dimensions of one observation, for a list of policies: 3 for images
            ``[channels, height, width]``. Where an observation is several arrays, those of each by name,
            ``{"camera": 3, "speed": 1}``: observations and what a policy is given are then dicts with these names.
        outputs: Names of the tensors in a tuple that policies return, such as ``"logits, value"``. Known are ``loc`` or
            ``mean`` with ``scale``, ``std``, ``log_scale``, ``log_std`` or ``covariance``; ``logits``; ``probs``; and
            ``action``. Others are left out. Without names such a tuple is refused, because a value beside an action
            looks like a scale.

    Returns:
        A behaviour with ``n`` agents and all of the leading dimensions of ``observations``.

    Raises:
        InputError: For an empty team, when policies answer in different families or shapes, when an answer depends
            on other observations of the batch or is drawn, and when a policy raises an error of its own.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = [torch.nn.Linear(4, 2) for _ in range(3)]
        >>> gs.evaluate(team, torch.zeros(16, 4))
        Deterministic(agents=3, observations=16)
    """
    made = as_team(team, agents=agents, squashed=squashed, whole=whole, feature_dims=feature_dims, outputs=outputs)
    return made.evaluate(observations)


@torch.no_grad()
def draw_samples(
    policies: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
    observations: Any,
    samples: int = 64,
    *,
    encode: Callable[[Any], Any] | None = None,
    seed: int = 0,
) -> Samples:
    """Call every policy several times on all observations, and return its actions as samples.

    Draws of torch come from ``seed``, and the global generators are left as they were. Policies with random numbers of
    another kind seed themselves, each with its own seed.

    Args:
        policies: Policy of each agent; a dict names them. Each policy draws an answer to every observation.
        observations: A tensor ``[..., features]``, or anything that policies take, such as a list of prompts.
        samples: Number of calls of each policy.
        encode: Turns an answer into features ``[..., features]``, such as a list of sentences into embeddings.
        seed: Seed of torch's generators.

    Raises:
        InputError: For answers that are no tensors of one shape ``[..., features]`` and have not been encoded.

    Example:
        >>> noisy = [lambda o, k=k: o + k * torch.randn_like(o) for k in range(3)]
        >>> draw_samples(noisy, torch.zeros(5, 2), samples=8)
        Samples(agents=3, observations=5)
    """
    named = dict(policies.items() if isinstance(policies, Mapping | nn.ModuleDict) else enumerate(policies))
    observations = as_tensor(observations)
    with LOCK, torch.random.fork_rng():
        torch.manual_seed(seed)
        drawn = [
            [_draw(policy, observations, str(name), encode) for _ in range(samples)] for name, policy in named.items()
        ]
    shapes = {answer.shape for answers in drawn for answer in answers}
    if len(shapes) != 1:
        got = " and ".join(sorted(str(tuple(shape)) for shape in shapes)) or "no policies"
        raise InputError("policies", "to answer in one shape", got)
    made = Samples(torch.stack([torch.stack(answers, dim=-2) for answers in drawn], dim=-3))
    return made if isinstance(policies, Sequence | nn.ModuleList) else made.with_names(list(map(str, named)))


def _draw(policy: Callable[..., Any], observations: Any, name: str, encode: Callable[[Any], Any] | None) -> Tensor:
    answer = ask(policy, observations, f"policy {name}")
    answer = as_tensor(answer if encode is None else encode(answer))
    if not isinstance(answer, Tensor) or answer.dim() < 2 or not answer.is_floating_point():
        fix = "Distributions: return a draw, policy(o).sample(). Text, tokens, choices: encode=, which gives features."
        got = f"{describe(answer)} of policy {name}"
        raise InputError("policies", "to answer with floating tensors (..., features)", got, fix)
    return answer
