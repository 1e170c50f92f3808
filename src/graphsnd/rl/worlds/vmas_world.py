"""Any VMAS scenario whose agents are alike, as a world."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, require
from graphsnd.rl.worlds.simulator import SimulatorWorld, draw_seeds
from graphsnd.rl.worlds.world import Step


class VmasWorld(SimulatorWorld):
    """A stock VMAS scenario; needs the extra ``vmas``.

    Actions are clamped to their range, and termination is kept apart from truncation, which VMAS merges by default.
    Each :meth:`spawn` makes and seeds a new simulator; later resets continue the random stream that VMAS keeps, so
    ``reset_done`` does not draw from its generator. That stream is shared by all VMAS environments of the
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

    Example:
        >>> world = VmasWorld("balance", 2, agents=3)
        >>> world.name, world.actions, world.observe(world.spawn(0)).shape
        ('vmas:balance', Continuous(features=2, low=-1.0, high=1.0), torch.Size([2, 3, 16]))
    """

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
        super().__init__(f"vmas:{scenario}", agents, environments, horizon, device)
        self._scenario, self._continuous = scenario, continuous
        self._options = options if agents is None else {"n_agents": agents, **options}
        probe = self._make(1, 0)
        self._describe("scenario", agents, list(probe.observation_space), list(probe.action_space))

    def _start(self, environments: int, generator: torch.Generator | int) -> tuple[Any, Tensor]:
        simulator = self._make(environments, draw_seeds(generator, 1)[0])
        return simulator, _observe(simulator)

    def _advance(self, simulator: Any, actions: Tensor) -> Step:
        moves = actions if self._continuous else actions.unsqueeze(-1)
        observations, rewards, terminated, truncated, _ = simulator.step(list(moves.unbind(1)))
        return Step(torch.stack(observations, 1), torch.stack(rewards, 1), terminated, truncated)

    def _reset(self, simulator: Any, rows: list[int], before: Tensor, generator: torch.Generator | int) -> Tensor:
        if len(rows) == len(before):
            simulator.reset(return_observations=False)
        else:
            for row in rows:
                simulator.reset_at(row, return_observations=False)
        return _observe(simulator)

    def _places(self, simulator: Any, kind: str) -> Tensor | None:
        entities = simulator.agents if kind == "agents" else simulator.world.landmarks
        return torch.stack([entity.state.pos for entity in entities], 1) if entities else None

    def _make(self, environments: int, seed: int) -> Any:
        vmas = require("vmas", "vmas")
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            try:
                simulator = vmas.make_env(
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
            # How VMAS refuses names and options alike; and options that are given above.
            except (AssertionError, TypeError) as error:
                if "scenario not found" in str(error):
                    known = ", ".join([*vmas.scenarios, *vmas.mpe_scenarios])
                    raise InputError("scenario", f"to be one of {known}", repr(self._scenario)) from error
                raise InputError("options", f"that {self.name} accepts", repr(self._options), f"{error}.") from error
        unused = [str(one.message) for one in raised if "not used by the scenario" in str(one.message)]
        if unused:
            raise InputError("options", f"to be those of {self.name}", unused[0].split(" passed")[0])
        return simulator


def _observe(simulator: Any) -> Tensor:
    return torch.stack(simulator.get_from_scenario(True, False, False, False)[0], 1)
