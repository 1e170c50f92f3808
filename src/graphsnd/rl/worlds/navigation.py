"""Navigation: every agent has its own goal and a range finder to avoid the others (VMAS 1.5.2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_device, check_integer, check_number
from graphsnd.rl.worlds.lidar import Lidar
from graphsnd.rl.worlds.physics import (
    DT,
    KEPT_SPEED,
    Near,
    add_contact,
    clamp_to,
    contact_dense,
    count_contacts,
    length,
)
from graphsnd.rl.worlds.spawning import scatter_apart
from graphsnd.rl.worlds.world import Continuous, Step, World, check_counts, check_flags, check_moves, store

SUBSTEPS = 2
GOAL_RADIUS = 0.05
CLEARANCE = 0.05  # distance between the rims of agents and goals at the start
LENGTHS = ("world_spawning_x", "world_spawning_y", "lidar_range", "agent_radius")
FLAGS = ("collisions", "enforce_bounds", "shared_rew", "vmas_compatible")


@dataclass(frozen=True, eq=False)
class NavigationState:
    """E environments between two steps.

    Example:
        >>> state = Navigation(4, 2).spawn(0)  # 4 agents in 2 environments
        >>> state.targets.shape, state.shaping.shape, state.steps.tolist()
        (torch.Size([2, 4, 2]), torch.Size([2, 4]), [0, 0])
    """

    positions: Tensor  # [E, N, 2]
    velocities: Tensor  # [E, N, 2]
    targets: Tensor  # [E, N, 2], each agent's goal
    shaping: Tensor  # [E, N], distance to the goal times the shaping factor, at the last reward
    steps: Tensor  # [E] int64


@dataclass(frozen=True, eq=False)
class Navigation(World):
    r"""Agents push each other on their way to their goals.

    With :math:`d_i` the distance to the goal, the reward of a step is

    .. math:: \sum_j (d_j^{\text{before}} - d_j) + 0.01\,[\text{all } d_j < 0.05]
        - \#\{j : |x_i - x_j| - r - r \le 0.005\},

    where the sum is over the team with ``shared_rew`` and over agent i alone otherwise. The episode terminates when all
    :math:`d_i` are below ``agent_radius``. An observation is position, velocity, position minus goal, and the range
    minus the readings of the rays, 18 numbers by default. The names of the options are those of VMAS.

    One rule differs from VMAS. VMAS punishes a near miss (a gap in (0, 0.005]) only if the same two agents overlap in
    some environment of the batch, so that environments depend on each other. Here a near miss is always punished.
    ``vmas_compatible=True`` restores the rule of VMAS, over all environments of the state.

    Args:
        agents: Number of agents.
        environments: Number of environments.
        collisions: Whether agents are solid, and see each other.
        world_spawning_x: Half width of the box in which agents and goals start.
        world_spawning_y: Half height of that box.
        enforce_bounds: Whether that box has walls.
        lidar_range: Length of the rays.
        agent_radius: Radius of every agent.
        n_lidar_rays: Number of rays.
        shared_rew: Whether the shaping reward is the sum over the team.
        pos_shaping_factor: Multiplies distances in the reward.
        final_reward: Reward of every agent in each step with all agents on their goals.
        agent_collision_penalty: Reward for each other agent in contact.
        horizon: Steps after which episodes are truncated; None for never.
        vmas_compatible: Whether near misses are gated across the batch, as in VMAS.
        device: Device of all tensors.
        dense: Whether to compute all pairs; for tests. None: only on a GPU, where waiting for a list of pairs costs
            more.

    Raises:
        InputError: For options out of range.

    Example:
        >>> world = Navigation(4, 2)
        >>> state, step = world.step(world.spawn(0), torch.zeros(2, 4, 2))
        >>> step.observations.shape, step.rewards.abs().max().item()
        (torch.Size([2, 4, 18]), 0.0)
    """

    name = "navigation"
    actions = Continuous(2)  # a force, at most 1 in each direction
    spawns_on_host: ClassVar[bool] = True

    agents: int = 4
    environments: int = 32
    _: KW_ONLY
    collisions: bool = True
    world_spawning_x: float = 1.0
    world_spawning_y: float = 1.0
    enforce_bounds: bool = False
    lidar_range: float = 0.35
    agent_radius: float = 0.1
    n_lidar_rays: int = 12
    shared_rew: bool = True
    pos_shaping_factor: float = 1.0
    final_reward: float = 0.01
    agent_collision_penalty: float = -1.0
    horizon: int | None = None
    vmas_compatible: bool = False
    device: torch.device = torch.device("cpu")  # noqa: RUF009
    dense: bool | None = None
    _lidar: Lidar = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store(self, device=check_device(self.device), **check_counts(self.agents, self.environments, self.horizon))
        check_flags(self, *FLAGS)
        if self.dense is False and self.device.type != "cpu":
            raise InputError("dense", "not to be False off the CPU", self.dense)
        rays = check_integer("n_lidar_rays", self.n_lidar_rays, "to be an integer, at least 1", low=1)
        store(self, n_lidar_rays=rays)
        for name in LENGTHS:
            store(self, **{name: check_number(name, getattr(self, name), low=1e-6, high=1e6)})
        store(self, _lidar=Lidar.make(rays, self.lidar_range, self.agent_radius, self.device))

    @property
    def _half(self) -> tuple[float, float]:
        return self.world_spawning_x, self.world_spawning_y

    @property
    def _apart(self) -> float:
        return 2 * self.agent_radius + CLEARANCE

    @property
    def _lists_pairs(self) -> bool:
        """Whether close pairs are searched for: with collisions, unless all pairs are computed."""
        dense = self.device.type != "cpu" if self.dense is None else self.dense
        return self.collisions and not dense

    @property
    def observation_features(self) -> int:
        """4 for the agent's own motion, 2 for its goal, and the rays."""
        return 6 + (self.n_lidar_rays if self.collisions else 0)

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> NavigationState:
        """Return a state with agents and goals at rest, ``2 * agent_radius + 0.05`` apart.

        Raises:
            InputError: When many random tries find no place for some of them.
        """
        count = environments or self.environments
        points = scatter_apart(generator, count, 2 * self.agents, self._half, self._apart).to(self.device)
        positions, targets = (part.contiguous() for part in points.split(self.agents, 1))
        shaping = length(positions - targets) * self.pos_shaping_factor
        steps = torch.zeros(count, dtype=torch.long, device=self.device)
        return NavigationState(positions, torch.zeros_like(positions), targets, shaping, steps)

    def observe(self, state: NavigationState) -> Tensor:
        """Return the observation of every agent, ``[E, N, f]``."""
        near = Near.find(state.positions, self._lidar.reach, self.agent_radius) if self._lists_pairs else None
        return self._observe(state, near)

    def step(self, state: NavigationState, actions: Tensor) -> tuple[NavigationState, Step]:
        """Two sub-steps of the physics, then rewards, then observations."""
        forces = check_moves(actions, tuple(state.positions.shape)).to(self.dtype).clamp(-1.0, 1.0)
        positions, velocities, near = self._move(state, forces)
        distances = length(positions - state.targets)
        shaping = distances * self.pos_shaping_factor
        after = NavigationState(positions, velocities, state.targets, shaping, state.steps + 1)
        rewards = self._rewards(state.shaping - shaping, distances, positions, near)
        terminated = (distances < self.agent_radius).all(-1)
        return after, Step(self._observe(after, near), rewards, terminated, self.truncated(after.steps))

    def solved(self, state: NavigationState) -> Tensor:
        """Return which agents are within their radius of their goal; the episode ends when all are."""
        return length(state.positions - state.targets) < self.agent_radius

    def _advance(self, positions: Tensor, velocities: Tensor, forces: Tensor, substep: int) -> tuple[Tensor, Tensor]:
        h = DT / SUBSTEPS
        velocities = (velocities * KEPT_SPEED if substep == 0 else velocities) + forces * h
        positions = positions + velocities * h
        return clamp_to(positions, self._half) if self.enforce_bounds else positions, velocities

    def _move(self, state: NavigationState, forces: Tensor) -> tuple[Tensor, Tensor, Near | None]:
        """Return the next positions and velocities, and the close pairs where they are listed."""
        x, v, near, touching = state.positions, state.velocities, None, 2 * self.agent_radius
        if self._lists_pairs:
            # One search per step, wide enough for every pair that can matter at its end.
            near = Near.find(x, self._lidar.reach, self.agent_radius, 2 * self._stride(v, forces))
        for substep in range(SUBSTEPS):
            if near is not None:
                near = near.update(x)
                total = add_contact(forces.reshape(-1, 2).clone(), x.reshape(-1, 2), *near.contact, touching)
                x, v = self._advance(x, v, total.view(x.shape), substep)
            else:
                x, v = self._advance(x, v, forces + contact_dense(x, touching) if self.collisions else forces, substep)
        return x, v, near.update(x) if near is not None else None

    def _stride(self, velocities: Tensor, forces: Tensor) -> float:
        """Return how far an agent gets in this step unless it is pushed hard."""
        h = DT / SUBSTEPS
        free = velocities * (2 * h * KEPT_SPEED) + forces * (3 * h * h)
        return float(free.abs().max()) * 2**0.5 + 0.1 * self.agent_radius

    def _rewards(self, gained: Tensor, distances: Tensor, positions: Tensor, near: Near | None) -> Tensor:
        shaped = gained.sum(-1, keepdim=True) if self.shared_rew else gained
        home = (distances < GOAL_RADIUS).all(-1, keepdim=True)
        rewards = shaped + torch.where(home, self.final_reward, 0.0)
        if not self.collisions:
            return rewards.expand_as(gained).contiguous()
        count = count_contacts(positions, self.agent_radius, near, gated=self.vmas_compatible)
        return rewards + count * self.agent_collision_penalty

    def _observe(self, state: NavigationState, near: Near | None) -> Tensor:
        x = state.positions
        parts = [x, state.velocities, x - state.targets]
        if self.collisions:
            flat = x.reshape(-1, 2)
            readings = self._lidar.dense(x) if near is None else self._lidar.sparse(flat, near.low, near.high)
            parts.append(self.lidar_range - readings.view(*x.shape[:2], -1))
        return torch.cat(parts, -1)
