"""The built-in team: agents of four hidden roles, with small differences within each role."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from graphsnd.behavior import Behavior, Gaussian
from graphsnd.errors import MOST_AGENTS, check_integer
from graphsnd.teams.evaluation import evaluate

ROLES = ("scout", "guard", "carrier", "medic")
SHARES = (0.40, 0.28, 0.20, 0.12)  # of the team, so that the rarest role is also the most distinctive
FEATURES, HIDDEN, ACTIONS = 6, 48, 2


@dataclass(frozen=True, eq=False)
class ExampleTeam:
    """Behaviour of the built-in team, and its roles, which the measure does not see.

    Example:
        >>> team = example_team(12, 64)
        >>> team.behavior, team.roles.shape, team.positions.shape, len(team.role_names)
        (Gaussian(agents=12, observations=64), torch.Size([12]), torch.Size([12, 2]), 4)
    """

    behavior: Behavior  # what is measured
    roles: torch.Tensor  # int64 [agents], index into role_names; hidden from every measurement
    positions: torch.Tensor  # [agents, 2], where the agents stand, in metres
    role_names: tuple[str, ...] = ROLES  # of the roles


def example_team(agents: int = 100, observations: int = 2000, seed: int = 0) -> ExampleTeam:
    """Return Gaussian policies of agents with four hidden roles, on the observations of one rollout.

    Every policy is a network with shared random features. Its last layer is the role's, plus a deviation of the
    agent's own, whose size varies between agents. Agents stand around their role's post, so near agents tend
    to act alike. Agents are numbered at random: the order says nothing about the roles.

    Args:
        agents: Team size, at least 8, so that every role is played by at least one agent.
        observations: Length of the rollout.
        seed: Seed of roles, policies and observations.

    Raises:
        InputError: For fewer than 8 agents, or no observation.

    Example:
        >>> example_team(12, 64).behavior
        Gaussian(agents=12, observations=64)
    """
    fix = "Four roles need a few agents each."
    agents = check_integer("agents", agents, "to be at least 8", low=8, high=MOST_AGENTS, fix=fix)
    observations = check_integer("observations", observations, "to be an integer, at least 1", low=1)
    generator = torch.Generator().manual_seed(seed)
    roles = _roles(agents)[torch.randperm(agents, generator=generator)]
    policies = _Policies(roles, generator)
    posts = torch.tensor([[-4.0, 2.5], [3.0, 3.5], [-1.0, -3.5], [5.0, -2.5]])
    positions = posts[roles] + 2.0 * torch.randn(agents, 2, generator=generator)
    return ExampleTeam(evaluate(policies, _rollout(observations, generator)), roles, positions)


def _roles(agents: int) -> torch.Tensor:
    """Return the role of each agent in order, as close to SHARES as whole agents allow, no role left empty."""
    counts = [max(1, round(share * agents)) for share in SHARES[1:]]
    counts = [agents - sum(counts), *counts]
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


def _rollout(steps: int, generator: torch.Generator) -> torch.Tensor:
    """Return observations ``[steps, features]`` that drift as in a real episode: neighbours in time are alike."""
    noise = torch.randn(steps, FEATURES, generator=generator)
    states = [noise[0]]
    for step in noise[1:]:
        states.append(0.8 * states[-1] + 0.6 * step)
    return torch.stack(states)


class _Policies:
    """All policies as one stacked callable: ``[..., features]`` to a Gaussian ``[..., agents, actions]``."""

    def __init__(self, roles: torch.Tensor, generator: torch.Generator) -> None:
        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator)

        agents = len(roles)
        self.features = normal(FEATURES, HIDDEN) / FEATURES**0.5
        self.bias = normal(HIDDEN)
        common = 0.8 * normal(1, HIDDEN, 2 * ACTIONS)
        # The farther down the list, the farther the role is from what all have in common. Roles differ in two
        # directions only, so a map of the team in the plane can show all four.
        sideways = torch.tensor([[-0.4, -0.4], [-0.6, 0.5], [0.6, 0.7], [1.1, -0.6]])
        role = common + torch.einsum("rk,kha->rha", sideways, normal(2, HIDDEN, 2 * ACTIONS))
        own = 0.28 * (0.2 * normal(agents)).exp().view(-1, 1, 1) * normal(agents, HIDDEN, 2 * ACTIONS)
        self.heads = (role[roles] + own) / HIDDEN**0.5

    def __call__(self, observations: torch.Tensor) -> Gaussian:
        hidden = torch.tanh(observations @ self.features + self.bias)
        loc, log_scale = torch.einsum("...h,nha->...na", hidden, self.heads).chunk(2, dim=-1)
        return Gaussian(loc, (0.5 * log_scale - 1.0).exp())
