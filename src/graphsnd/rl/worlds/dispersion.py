"""Dispersion: a team that starts on one point eats food that lies all around (VMAS 1.5.2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from graphsnd.errors import check_device, check_integer, check_number
from graphsnd.rl.worlds.physics import DT, KEPT_SPEED, norm, offsets
from graphsnd.rl.worlds.world import (
    Continuous,
    Step,
    World,
    check_counts,
    check_flags,
    check_moves,
    draw_uniform,
    store,
)

AGENT_RADIUS = 0.035
IDLE = -0.01  # reward of a step without food, when time is penalised


@dataclass(frozen=True, eq=False)
class DispersionState:
    """E environments between two steps.

    Example:
        >>> state = Dispersion(4, 2).spawn(0)  # 4 agents in 2 environments
        >>> state.positions.shape, state.eaten.any().item(), state.steps.tolist()
        (torch.Size([2, 4, 2]), False, [0, 0])
    """

    positions: Tensor  # [E, N, 2]
    velocities: Tensor  # [E, N, 2]
    food: Tensor  # [E, F, 2]
    eaten: Tensor  # [E, F] bool
    steps: Tensor  # [E] int64


@dataclass(frozen=True, eq=False)
class Dispersion(World):
    r"""Agents pass through each other; an agent that touches food eats it.

    If :math:`c_f` agents touch food f, which was not eaten before, the reward of each agent is

    .. math:: \sum_{f\ \text{touched}} 1 / c_f, \qquad\text{or}\qquad \#\{f : c_f > 0\}\ \text{for all agents}

    with ``share_reward``. The episode terminates when all food is eaten. An observation is position, velocity, and for
    each food its position relative to the agent and whether it was eaten, 4 + 3 F numbers. The names of the options are
    those of VMAS.

    Args:
        agents: Number of agents.
        environments: Number of environments.
        n_food: Number of food items; the number of agents when None.
        share_reward: Whether all agents are rewarded for what any of them eats.
        penalise_by_time: Whether a reward of 0 becomes -0.01.
        food_radius: Radius of the food. An agent touches it within this distance plus its own radius, 0.035.
        pos_range: Half side of the walled square.
        horizon: Steps after which episodes are truncated; None for never.
        device: Device of all tensors.

    Raises:
        InputError: For options out of range.

    Example:
        >>> world = Dispersion(4, 2, food_radius=2.0)  # food everywhere
        >>> _, step = world.step(world.spawn(0), torch.zeros(2, 4, 2))
        >>> step.rewards[0].tolist(), step.terminated.tolist()
        ([1.0, 1.0, 1.0, 1.0], [True, True])
    """

    name = "dispersion"
    actions = Continuous(2)  # a force, at most 1 in each direction

    agents: int = 4
    environments: int = 32
    _: KW_ONLY
    n_food: int | None = None
    share_reward: bool = False
    penalise_by_time: bool = False
    food_radius: float = 0.05
    pos_range: float = 1.0
    horizon: int | None = None
    device: torch.device = torch.device("cpu")  # noqa: RUF009

    def __post_init__(self) -> None:
        store(self, device=check_device(self.device), **check_counts(self.agents, self.environments, self.horizon))
        if self.n_food is not None:
            store(self, n_food=check_integer("n_food", self.n_food, "to be an integer, at least 1, or None", low=1))
        for name in ("food_radius", "pos_range"):
            store(self, **{name: check_number(name, getattr(self, name), above=0)})
        check_flags(self, "share_reward", "penalise_by_time")

    @property
    def _food(self) -> int:
        return self.agents if self.n_food is None else self.n_food

    @property
    def observation_features(self) -> int:
        """4 for the agent's own motion and 3 for each food."""
        return 4 + 3 * self._food

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> DispersionState:
        """Return a state with all agents at rest in the middle and food uniform on the square."""
        count = environments or self.environments
        food = draw_uniform(generator, (count, self._food, 2), self.device) * self.pos_range
        positions = torch.zeros(count, self.agents, 2, device=self.device)
        eaten = torch.zeros(count, self._food, dtype=torch.bool, device=self.device)
        steps = torch.zeros(count, dtype=torch.long, device=self.device)
        return DispersionState(positions, torch.zeros_like(positions), food, eaten, steps)

    def observe(self, state: DispersionState) -> Tensor:
        """Return the observation of every agent, ``[E, N, 4 + 3 F]``."""
        return self._observe(state, *offsets(state.food, state.positions))

    def step(self, state: DispersionState, actions: Tensor) -> tuple[DispersionState, Step]:
        """Move, eat and observe. Rewards count food as it was before the step, observations as it is after."""
        forces = check_moves(actions, tuple(state.positions.shape)).to(self.dtype).clamp(-1.0, 1.0)
        velocities = state.velocities * KEPT_SPEED + forces * DT
        positions = (state.positions + velocities * DT).clamp(-self.pos_range, self.pos_range)
        x, y = offsets(state.food, positions)
        touched = norm(x, y) < AGENT_RADIUS + self.food_radius
        present = touched.sum(1)
        rewards = self._rewards(touched, present, state.eaten)
        eaten = state.eaten | (present > 0)
        after = DispersionState(positions, velocities, state.food, eaten, state.steps + 1)
        return after, Step(self._observe(after, x, y), rewards, eaten.all(-1), self.truncated(after.steps))

    def _observe(self, state: DispersionState, x: Tensor, y: Tensor) -> Tensor:
        environments, agents = state.positions.shape[:2]
        seen = state.positions.new_empty(environments, agents, self.observation_features)
        seen[..., :2] = state.positions
        seen[..., 2:4] = state.velocities
        for place, part in enumerate((x, y, state.eaten.unsqueeze(1))):
            seen[..., 4 + place :: 3] = part
        return seen

    def _rewards(self, touched: Tensor, present: Tensor, eaten: Tensor) -> Tensor:
        if self.share_reward:
            newly_eaten = (present > 0) & ~eaten
            rewards = newly_eaten.sum(-1, keepdim=True).to(self.dtype).expand(touched.shape[:2]).contiguous()
        else:
            # Food that no agent touches pays nothing; the clamp keeps infinity out of the sum.
            share = present.clamp(min=1).reciprocal() * ~eaten
            rewards = (touched * share.unsqueeze(1)).sum(-1)
        return torch.where(rewards == 0, IDLE, rewards) if self.penalise_by_time else rewards
