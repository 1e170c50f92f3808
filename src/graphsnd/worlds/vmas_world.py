"""Any VMAS scenario whose agents are alike, behind the protocol."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, require
from graphsnd.worlds.checks import check_counts
from graphsnd.worlds.simulator import Handle, Simulator, seeds
from graphsnd.worlds.world import Continuous, Discrete, Step, World


class VmasWorld(World):
    """A stock VMAS scenario; needs the extra ``vmas``.

    Actions are clamped to their range, and termination is kept apart from truncation, which VMAS merges by default.
    Each :meth:`spawn` makes a simulator of its own and seeds it; later resets go on with the random stream that VMAS
    keeps, so ``reset_done`` does not draw from its generator. That stream is shared by all VMAS environments of the
    process.

    Args:
        scenario: Name of the scenario, such as ``balance``.
        environments: Number of environments.
        agents: Passed on as ``n_agents``; the scenario's default when None.
        horizon: Steps after which episodes are truncated; None for never.
        continuous: Whether actions are forces rather than numbers of moves.
        device: Where tensors are.
        **options: Keyword arguments of the scenario.

    Raises:
        InputError: For an unknown scenario or option, or agents that differ in what they see or can do.
        MissingExtraError: Without VMAS.
    """

    spawns_on_host = True

    def __init__(
        self,
        scenario: str,
        environments: int,
        *,
        agents: int | None = None,
        horizon: int | None = None,
        continuous: bool = True,
        device: torch.device | str = "cpu",
        **options: Any,
    ) -> None:
        check_counts(1 if agents is None else agents, environments, horizon)
        self._name = f"vmas:{scenario}"
        self.environments, self.horizon, self.device = environments, horizon, torch.device(device)
        self._scenario, self._continuous = scenario, continuous
        self._options = options if agents is None else {"n_agents": agents, **options}
        probe = self._make(1, 0)
        self.agents = len(probe.agents)
        if agents not in (None, self.agents):
            raise InputError("agents", f"to be {self.agents}, which {self.name} always has", agents)
        self._features = _alike("observations", self.name, [_length(space) for space in probe.observation_space])
        self._actions = _alike("actions", self.name, [_actions(space) for space in probe.action_space])

    @property
    def name(self) -> str:
        """What it was made from."""
        return self._name

    @property
    def observation_features(self) -> int:
        """Length of what one agent sees."""
        return int(self._features)

    @property
    def actions(self) -> Continuous | Discrete:
        """What an agent may do."""
        return self._actions

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> Handle:
        """A new simulator, seeded from ``generator``."""
        count = self.environments if environments is None else environments
        simulator = self._make(count, seeds(generator, 1)[0])
        return Handle(Simulator(simulator), 0, _look(simulator))

    def observe(self, state: Handle) -> Tensor:
        """What every agent sees, ``[E, N, f]``."""
        return state.observations

    def step(self, state: Handle, actions: Tensor) -> tuple[Handle, Step]:
        """Advance the simulator; ``state`` is used up."""
        simulator = state.open()
        moves = list(actions.unbind(1)) if self._continuous else list(actions.unsqueeze(-1).unbind(1))
        observations, rewards, terminated, truncated, _ = simulator.step(moves)
        seen = torch.stack(observations, 1)
        return state.advance(seen), Step(seen, torch.stack(rewards, 1), terminated, truncated)

    def reset_done(self, state: Handle, done: Tensor, generator: torch.Generator | int) -> Handle:
        """Let VMAS reset the finished environments, all at once when all are."""
        simulator = state.open()
        rows = done.nonzero()[:, 0].tolist()
        if not rows:
            return state
        if len(rows) == len(done):
            simulator.reset(return_observations=False)
        else:
            for row in rows:
                simulator.reset_at(row, return_observations=False)
        return state.advance(_look(simulator))

    def positions(self, state: Handle) -> Tensor:
        """Where the agents are, ``[E, N, 2]``."""
        return torch.stack([agent.state.pos for agent in state.open().agents], 1)

    def goals(self, state: Handle) -> Tensor | None:
        """Where the landmarks are, ``[E, L, 2]``; None when there are none."""
        landmarks = state.open().world.landmarks
        return torch.stack([one.state.pos for one in landmarks], 1) if landmarks else None

    def _make(self, environments: int, seed: int) -> Any:
        vmas = require("vmas", "vmas")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                made = vmas.make_env(
                    self._scenario,
                    num_envs=environments,
                    device=self.device,
                    continuous_actions=self._continuous,
                    max_steps=self.horizon,
                    seed=seed,
                    clamp_actions=True,
                    terminated_truncated=True,
                    **self._options,
                )
            except AssertionError as error:  # how VMAS refuses names and options alike
                if "scenario not found" in str(error):
                    raise InputError("scenario", "to be the name of a VMAS scenario", repr(self._scenario)) from error
                raise InputError("options", f"that {self.name} accepts", repr(self._options), f"{error}.") from error
        unused = [str(one.message) for one in said if "not used by the scenario" in str(one.message)]
        if unused:
            raise InputError("options", f"to be those of {self.name}", unused[0].split(" passed")[0])
        return made


def _look(simulator: Any) -> Tensor:
    return torch.stack(simulator.get_from_scenario(True, False, False, False)[0], 1)


def _length(space: Any) -> Any:
    shape = getattr(space, "shape", None)
    return shape[0] if shape is not None and len(shape) == 1 else repr(space)


def _actions(space: Any) -> Any:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if len({*space.low.tolist()}) == len({*space.high.tolist()}) == 1:
        return Continuous(space.shape[0], float(space.low[0]), float(space.high[0]))
    return repr(space)


def _alike(what: str, name: str, found: list[Any]) -> Any:
    if len(set(found)) > 1 or isinstance(found[0], str):
        listed = ", ".join(sorted({str(one) for one in found}))
        raise InputError("scenario", f"whose agents have the same {what}", f"{name} with {listed}")
    return found[0]
