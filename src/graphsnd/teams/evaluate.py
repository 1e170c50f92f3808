"""Every policy on every observation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.callables import CallablesTeam, JointTeam, Policy
from graphsnd.teams.modules import ModulesTeam
from graphsnd.teams.team import Team


def evaluate(
    team: Team | Sequence[Policy] | Policy, observations: Tensor, *, agents: int | None = None, squashed: bool = True
) -> Behavior:
    """What every agent would do on every observation: the input of equation (1).

    All observations are pooled and shown to all policies, whoever's they were. So ``[time, agents, features]``
    from a rollout and ``[time * agents, features]`` give the same numbers, and two policies can't be compared on
    different observations.

    Args:
        team: A list of ``n`` policies (``nn.Module`` or callable), each mapping ``[..., features]`` to one agent's
            answer; or one stacked module that answers for all agents with an agents axis in second to last place; or a
            :class:`~graphsnd.teams.Team`. An answer is a ``torch.distributions`` object, a tensor (deterministic
            action), a tuple ``(loc, scale)``, or a behaviour.
        observations: Shape ``[..., features]``.
        agents: For stacked modules that, like TorchRL's ``MultiAgentMLP``, take one observation per agent: the
            number of agents; each observation is then shown to all of them. Without it the module is called on
            ``observations`` as they are and must add the agents axis itself.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        A behaviour with ``n`` agents and all of the leading dimensions of ``observations``.

    Raises:
        InputError: For an empty team, and when policies answer in different families or shapes.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = [torch.nn.Linear(4, 2) for _ in range(3)]
        >>> gs.evaluate(team, torch.zeros(16, 4))
        Deterministic(agents=3, observations=16)
    """
    return as_team(team, agents=agents, squashed=squashed).evaluate(observations)


def as_team(
    policies: Team | Sequence[Policy] | Policy,
    *,
    agents: int | None = None,
    squashed: bool = True,
    observation_features: int | None = None,
) -> Team:
    """A team out of whatever holds the policies.

    Args:
        policies: As in :func:`evaluate`. A team is returned as it is.
        agents: As in :func:`evaluate`, for stacked modules; elsewhere it must agree with the policies.
        squashed: Passed to :func:`~graphsnd.from_distribution`; a team has settled this already.
        observation_features: Length of one observation, where known.

    Returns:
        The team.

    Raises:
        InputError: For an empty list, for something that holds no policies, and for another number of ``agents``.

    Example:
        >>> import torch
        >>> as_team([torch.nn.Linear(4, 2) for _ in range(3)])
        ModulesTeam(agents=3, observation_features=None)
    """
    if not isinstance(policies, Team) and callable(policies) and not isinstance(policies, nn.ModuleList):
        # A ModuleList can be called too; its call only says that it has none.
        return JointTeam(policies, agents=agents, squashed=squashed, observation_features=observation_features)
    team = policies if isinstance(policies, Team) else _listed(policies, squashed, observation_features)
    if agents is not None and agents != team.agents:
        raise InputError("agents", f"to be {team.agents}, the number of policies", agents)
    return team


def _listed(policies: object, squashed: bool, features: int | None) -> Team:
    if not isinstance(policies, Iterable):
        raise InputError("team", _EXPECTED, type(policies).__name__)
    listed = list(policies)
    if not all(callable(policy) for policy in listed):
        raise InputError("team", _EXPECTED, f"a {type(policies).__name__} that holds something else")
    if not listed:
        raise InputError("team", "to hold at least one policy", "an empty list")
    kind = ModulesTeam if all(isinstance(policy, nn.Module) for policy in listed) else CallablesTeam
    return kind(listed, squashed=squashed, observation_features=features)


_EXPECTED = "to be a list of modules or callables, or one stacked module"
