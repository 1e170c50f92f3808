"""A BenchMARL model whose diversity is held at a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from benchmarl.models.common import Model
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, OneHot

from graphsnd import Deterministic, snd
from graphsnd.control import Homogeneous, State, Status, Unconstrained
from graphsnd.control.controllers import Constant
from graphsnd.control.measurement import Measurement, measure_selected, select_pairs
from graphsnd.designs.design import as_design
from graphsnd.errors import InputError
from graphsnd.integrations.benchmarl.policy import Deviating

if TYPE_CHECKING:
    from graphsnd.integrations.benchmarl.config import DiCoModelConfig

COUNTED = ("forwards", "scale", "saturated", "empty", "invalid")


class DiCoModel(Model):  # type: ignore[misc]
    """A shared network, deviations of every agent, and a controller that scales them.

    A *training forward* is one with gradients enabled for the model's own parameters: the forward of a loss. It
    measures the unscaled deviations of agents on the observations of all agents in the batch, updates the estimate and
    scales by the result. Every other forward (rollouts, evaluation, targets) uses the scale as it stands. The state of
    the controller lies in buffers, so that checkpoints hold it, copies on other devices receive it, and TorchRL's
    functional losses write to the same place that rollouts read. Controllers that control nothing measure nothing.

    Made by :class:`~graphsnd.integrations.benchmarl.DiCoModelConfig`.

    Attributes:
        network: :class:`~graphsnd.integrations.benchmarl.policy.Deviating`.
        controller_state: The controller's state, float64 ``[fields]``.
        draws: Seed and number of measurements so far, float64; together they seed the next random pairs.
        tally: Sums of :data:`COUNTED` over training forwards since it was last set to 0.

    Example:
        >>> from torchrl.data import Bounded, Composite, Unbounded
        >>> from graphsnd.integrations.benchmarl import DiCoModelConfig
        >>> parts = {"observation": Unbounded((3, 5)), "logits": Unbounded((3, 4)), "action": Bounded(-1, 1, (3, 2))}
        >>> seen, out, action = (Composite({"agents": Composite({k: v}, shape=(3,))}) for k, v in parts.items())
        >>> options = {"agent_group": "agents", "input_has_agent_dim": True, "n_agents": 3, "centralised": False}
        >>> options |= {"input_spec": seen, "output_spec": out, "action_spec": action}
        >>> options |= {"share_params": True, "device": "cpu"}
        >>> model = DiCoModelConfig(target=0.1).get_model(**options)  # as BenchMARL does
        >>> model(seen.zero((7,)))["agents", "logits"].shape  # [frames, agents, loc and scale]
        torch.Size([7, 3, 4])
    """

    controller_state: Tensor
    draws: Tensor
    tally: Tensor
    _trained: Tensor | None = None  # the state that training forwards write to, for targets

    def __init__(self, *, config: DiCoModelConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.controller = config.make_controller()
        if self.n_agents == 1 and not isinstance(self.controller, Homogeneous):
            self.controller = Unconstrained()  # one agent has no diversity to scale: its deviation counts in full
        self.observations, self.positions = config.observations, config.positions
        # As every model of BenchMARL does, this one draws from the global state that the experiment has seeded.
        drawn = int(torch.randint(2**31, ()))
        self.network = Deviating(
            self.n_agents,
            sum(spec.shape[-1] for spec in self.input_spec.values(True, True)),
            self.output_leaf_spec.shape[-1],
            self._controlled_outputs(),
            tuple(config.num_cells),
            activation=config.activation,
            box=self._box() if config.squash_shared else None,
            discrete=self.discrete,
            generator=torch.Generator().manual_seed(drawn),
        ).to(self.device)
        self.register_buffer("controller_state", pack(self.controller.initial(device=self.device)))
        start = [float(drawn if config.seed is None else config.seed), 0.0]
        self.register_buffer("draws", torch.tensor(start, dtype=torch.float64, device=self.device))
        self.register_buffer("tally", torch.zeros(len(COUNTED), dtype=torch.float64, device=self.device))

    @property
    def discrete(self) -> bool:
        """Whether outputs are logits of discrete actions."""
        return isinstance(self.action_spec[self.agent_group, "action"], (Categorical, OneHot))

    @property
    def state(self) -> State:
        """The state of the controller."""
        return unpack(self.controller_state)

    @property
    def scale(self) -> Tensor:
        """The factor on deviations as it stands, ``[]``."""
        return self.controller.scale(self.state)

    @property
    def estimate(self) -> Tensor:
        """The smoothed measurement of diversity, of the state's shape; NaN before the first one."""
        return torch.where(self.state.initialized, self.state.estimate, torch.nan)

    @torch.no_grad()
    def audit(self, observations: Tensor, *, most: int = 4096) -> Tensor:
        r"""Return the SND over all pairs of the scaled policies, which should be the target.

        All agents answer the same observations, those of ``most`` evenly spaced frames. Scales of Gaussians are
        shared, so this is their 2-Wasserstein distance; for discrete actions it is Aitchison's. One agent gives 0.

        Args:
            observations: Shape ``[..., agents, inputs]``, of a batch.
            most: Frames to use.
        """
        if self.n_agents == 1:
            return torch.zeros_like(self.scale)
        frames = observations.reshape(-1, *observations.shape[-2:])
        if len(frames) > most:
            frames = frames[torch.linspace(0, len(frames) - 1, most, device=frames.device).round().long()]
        rows = frames.flatten(0, 1).to(self.controller_state.device)
        return snd(Deterministic(self.network.actions_at(rows, self.scale)))

    def gather(self, tensordict: TensorDictBase) -> Tensor:
        """Return everything the agents observe, ``[..., agents, inputs]``."""
        return torch.cat([tensordict.get(key) for key in self.in_keys], -1)

    def _forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        observations = self.gather(tensordict)
        # Targets are run with gradients enabled too, but on copies of the parameters that need none.
        learns = self.network.deviations.weights[0].requires_grad
        training = torch.is_grad_enabled() and learns
        scale = self._step(observations.detach()) if training else self._present_scale(learns)
        tensordict.set(self.out_key, self.network(observations, scale))
        return tensordict

    def _present_scale(self, learns: bool) -> Tensor:
        """Return the scale without measuring. TorchRL never updates the buffers among the parameters of a target."""
        return self.scale if learns or self._trained is None else self.controller.scale(unpack(self._trained))

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self._trained = None  # the buffer may be another one afterwards
        return super()._apply(*args, **kwargs)

    def _step(self, observations: Tensor) -> Tensor:
        """Measure, update the controller and return the scale."""
        if isinstance(self.controller, Constant):
            scale = self.scale
            self.tally[:2] += torch.stack([torch.ones_like(scale), scale])
            return scale
        generator = self._generator()
        rows, positions = self._sample(observations.reshape(-1, *observations.shape[-2:]), generator)
        with torch.set_grad_enabled(self.controller.differentiable):
            measured = self._measure(rows, positions, generator)
        scale, state, status = self.controller.step(measured, self.state, generator=generator)
        self._store(scale.detach(), state, status)
        return scale

    def _measure(self, rows: Tensor, positions: Tensor | None, generator: torch.Generator) -> Measurement:
        """Return the diversity of the deviations; only agents that the controller's design selects are evaluated."""
        design = as_design(self.controller.design)
        selection = select_pairs(design, len(rows), self.n_agents, generator, device=rows.device, positions=positions)
        values = self.network.deviations_at(rows, selection.agents)
        return Measurement(*(part[0] for part in measure_selected([selection], values.unsqueeze(0))))

    @torch.no_grad()
    def _store(self, scale: Tensor, state: State, status: Status) -> None:
        # In place: within a loss the buffers are lent to this module, and what replaces them is dropped afterwards.
        self.controller_state.copy_(pack(state))
        self.__dict__["_trained"] = self.controller_state  # no buffer of its own, which a loss would replace too
        self.draws[1] += 1
        parts = (torch.ones_like(scale), scale, status.saturated, status.empty, status.invalid)
        self.tally += torch.stack([part.double().mean() for part in parts])

    def _sample(self, frames: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """Return observations ``[O, inputs]`` of all agents, and the positions of all at each, ``[O, agents, d]``."""
        rows = frames.flatten(0, 1)
        chosen = torch.arange(len(rows))
        if self.observations is not None and len(rows) > self.observations:
            chosen = torch.randperm(len(rows), generator=generator)[: self.observations]
            rows = rows[chosen.to(rows.device)]
        if self.positions is None:
            return rows, None
        return rows, frames[(chosen // self.n_agents).to(frames.device), :, : self.positions]

    def _generator(self) -> torch.Generator:
        """Return another generator for every measurement, a function of what checkpoints hold."""
        words = [int(word) for word in self.draws.tolist()]
        return torch.Generator().manual_seed(int(np.random.SeedSequence(words).generate_state(1)[0]))

    def _controlled_outputs(self) -> int:
        outputs = self.output_leaf_spec.shape[-1]
        if self.discrete:
            return outputs
        actions = self.action_spec[self.agent_group, "action"].shape[-1]
        if outputs not in (actions, 2 * actions):
            raise InputError("output_spec", f"with {actions} or {2 * actions} features", outputs)
        return actions

    def _box(self) -> Tensor | None:
        if self.discrete:
            return None
        space = self.action_spec[self.agent_group, "action"].space
        low, high = (end.reshape(self.n_agents, -1) for end in (space.low, space.high))
        if not (torch.equal(low, low[:1].expand_as(low)) and torch.equal(high, high[:1].expand_as(high))):
            fix = "Set squash_shared=False, or give the agents groups of their own."
            raise InputError("action_spec", "with one range of actions for all agents", f"from {low} to {high}", fix)
        return torch.stack([(low[0] + high[0]) / 2, (high[0] - low[0]) / 2])

    def _perform_checks(self) -> None:
        super()._perform_checks()
        if self.is_critic or self.centralised or not self.input_has_agent_dim:
            raise InputError("model_config", "of a policy", "a critic", "Pass critic_model_config=MlpConfig(...).")
        for key, spec in self.input_spec.items(True, True):
            if spec.shape[:-1] != (self.n_agents,):
                expected = f"with shape ({self.n_agents}, features)"
                raise InputError(f"input_spec[{key!r}]", expected, tuple(spec.shape), "Images need another model.")


def pack(state: State) -> Tensor:
    """Return a state as one float64 tensor ``[fields, *shape]``.

    Example:
        >>> pack(State(torch.tensor(0.5), torch.tensor(True)))
        tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    return torch.stack([state.estimate.double(), state.initialized.double()])


def unpack(packed: Tensor) -> State:
    """Return the state that :func:`pack` wrote."""
    return State(packed[0], packed[1].bool())
