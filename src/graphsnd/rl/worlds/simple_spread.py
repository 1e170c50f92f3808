"""Simple spread: agents cover landmarks and should not bump into each other (mpe2 1.1.1, ``simple_spread_v3``)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from graphsnd.errors import check_device, check_number
from graphsnd.rl.worlds.physics import DT, KEPT_SPEED, contact_dense, norm, offsets
from graphsnd.rl.worlds.world import Discrete, Step, World, check_counts, check_flags, check_moves, draw_uniform, store

TOUCHING = 0.3  # two radii of 0.15
CAPTURED = 0.1  # a landmark is covered by an agent closer than this
THRUST = 5.0
MOVES = ((0.0, 0.0), (-THRUST, 0.0), (THRUST, 0.0), (0.0, -THRUST), (0.0, THRUST))


@dataclass(frozen=True, eq=False)
class SpreadState:
    """E environments between two steps.

    Example:
        >>> state = SimpleSpread(3, 2).spawn(0)  # 3 agents in 2 environments
        >>> state.positions.shape, state.landmarks.shape, state.steps.tolist()
        (torch.Size([2, 3, 2]), torch.Size([2, 3, 2]), [0, 0])
    """

    positions: Tensor  # [E, N, 2]
    velocities: Tensor  # [E, N, 2]
    landmarks: Tensor  # [E, N, 2]
    steps: Tensor  # [E] int64


@dataclass(frozen=True, eq=False)
class SimpleSpread(World):
    r"""One landmark per agent, and five moves: stay, left, right, down, up.

    The reward of agent i is, with :math:`\lambda` the local ratio,

    .. math:: -(1 - \lambda) \sum_l \min_j |x_j - p_l| - \lambda\, \#\{j \ne i : |x_i - x_j| < 0.3\}.

    An observation is velocity, position, landmarks relative to the agent, other agents relative to it, and two zeros
    for the silent channel of each other agent: 6 N numbers. Physics is float32 here and float64 in mpe2. Agents in
    exactly the same place are not pushed, where mpe2 divides 0 by 0.

    Args:
        agents: Number of agents, and of landmarks.
        environments: Number of environments.
        local_ratio: Weight of the agent's own collisions against the team's distances, in [0, 1].
        terminate_on_success: Whether the episode terminates once every landmark has an agent within 0.1.
        horizon: Steps after which episodes are truncated (``max_cycles``); None for never.
        device: Device of all tensors.

    Raises:
        InputError: For options out of range.

    Example:
        >>> world = SimpleSpread(3, 2)
        >>> _, step = world.step(world.spawn(0), torch.zeros(2, 3, dtype=torch.long))
        >>> step.observations.shape, bool((step.rewards < 0).all())
        (torch.Size([2, 3, 18]), True)
    """

    name = "simple_spread"
    actions = Discrete(len(MOVES))  # stay, left, right, down, up

    agents: int = 3
    environments: int = 32
    _: KW_ONLY
    local_ratio: float = 0.5
    terminate_on_success: bool = False
    horizon: int | None = 25
    device: torch.device = torch.device("cpu")  # noqa: RUF009
    _moves: Tensor = field(init=False, repr=False)  # [5, 2]
    _others: Tensor = field(init=False, repr=False)  # [N * (N-1)], the other agents, for each agent

    def __post_init__(self) -> None:
        store(self, device=check_device(self.device), **check_counts(self.agents, self.environments, self.horizon))
        store(self, local_ratio=check_number("local_ratio", self.local_ratio, low=0, high=1))
        check_flags(self, "terminate_on_success")
        others = torch.arange(self.agents).repeat(self.agents, 1)[~torch.eye(self.agents, dtype=torch.bool)]
        store(self, _moves=torch.tensor(MOVES, device=self.device), _others=others.to(self.device))

    @property
    def observation_features(self) -> int:
        """2 each for the agent's velocity and position, N landmarks, N-1 others and their channels."""
        return 6 * self.agents

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> SpreadState:
        """Return a state with agents at rest and landmarks, uniform on the square of half side 1."""
        count = environments or self.environments
        points = draw_uniform(generator, (count, 2 * self.agents, 2), self.device)
        positions, landmarks = points[:, : self.agents].contiguous(), points[:, self.agents :].contiguous()
        steps = torch.zeros(count, dtype=torch.long, device=self.device)
        return SpreadState(positions, torch.zeros_like(positions), landmarks, steps)

    def observe(self, state: SpreadState) -> Tensor:
        """Return the observation of every agent, ``[E, N, 6 N]``."""
        x, n = state.positions, self.agents
        seen = x.new_zeros(*x.shape[:2], self.observation_features)
        seen[..., :2] = state.velocities
        seen[..., 2:4] = x
        own = x.unsqueeze(2)
        landmarks = seen[..., 4 : 4 + 2 * n].unflatten(-1, (n, 2))
        torch.sub(state.landmarks.unsqueeze(1), own, out=landmarks)
        if n > 1:
            others = x.index_select(1, self._others).unflatten(1, (n, n - 1))
            torch.sub(others, own, out=seen[..., 4 + 2 * n : 2 + 4 * n].unflatten(-1, (n - 1, 2)))
        return seen

    def step(self, state: SpreadState, actions: Tensor) -> tuple[SpreadState, Step]:
        """Move with the old velocity, update it, then compute rewards and observations."""
        actions = check_moves(actions, tuple(state.positions.shape[:2]), integers=True)
        moves = self._moves.index_select(0, actions.reshape(-1)).view_as(state.positions)
        forces = moves + contact_dense(state.positions, TOUCHING, tail=True)
        positions = state.positions + state.velocities * DT
        velocities = state.velocities * KEPT_SPEED + forces * DT
        after = SpreadState(positions, velocities, state.landmarks, state.steps + 1)
        apart = norm(*offsets(state.landmarks, positions)).amin(1)  # [E, landmarks]
        collisions = (norm(*offsets(positions, positions)) < TOUCHING).sum(-1) - 1
        covered = -apart.sum(-1, keepdim=True)
        rewards = covered * (1 - self.local_ratio) - collisions * self.local_ratio
        truncated = self.truncated(after.steps)
        terminated = (apart < CAPTURED).all(-1) & ~truncated & self.terminate_on_success  # not both, as in mpe2
        return after, Step(self.observe(after), rewards, terminated, truncated)

    def solved(self, state: SpreadState) -> Tensor:
        """Return which agents cover a landmark."""
        return norm(*offsets(state.landmarks, state.positions)).amin(2) < CAPTURED
