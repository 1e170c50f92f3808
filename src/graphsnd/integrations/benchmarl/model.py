"""A BenchMARL model whose diversity is held at a target: its configuration, its network and its controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from benchmarl.models import MlpConfig
from benchmarl.models.common import Model, ModelConfig
from tensordict import TensorDictBase
from torch import Tensor, nn
from torchrl.data import Categorical, OneHot

from graphsnd import Deterministic, snd
from graphsnd.control import Controller, DiCo, Homogeneous, Seek, State, Status, Unconstrained
from graphsnd.control.controllers import Constant
from graphsnd.control.measurement import Measurement, measure_selected, select_pairs
from graphsnd.control.networks import add_deviation, centre_logits
from graphsnd.designs.design import as_design
from graphsnd.errors import InputError
from graphsnd.teams import StackedMLP
from graphsnd.teams.stacked import run_all, run_chosen

COUNTED = ("forwards", "scale", "saturated", "empty", "invalid")
MODULES = {"tanh": nn.Tanh, "relu": nn.ReLU}


class Deviating(nn.Module):
    r"""A shared network and one deviation for each agent, which a single number scales.

    .. math:: y_i(o) = \mathrm{squash}(h(o)) + \rho\, b_i(o)

    The squashing acts on the shared part alone, as in DiCo; only the first ``controlled`` outputs deviate, the
    others (a Gaussian's scale) are shared. So the distance between two agents is
    :math:`\rho \lVert b_i(o) - b_j(o) \rVert`, which is what a controller needs.

    For actions in a ``box`` a squashed output is mapped into it. Discrete actions have no box: outputs are logits, and
    deviations are centred over the actions. Adding a number to all logits changes no policy, so it must not count as
    diversity either. (Centred logits under the Euclidean norm are Aitchison's distance.)

    Args:
        agents: Number of agents.
        inputs: Features of an observation.
        outputs: Features of the shared network's output.
        controlled: Number of outputs that deviate, the first ones.
        hidden: Sizes of the hidden layers of both networks.
        activation: ``"tanh"`` or ``"relu"``.
        box: Middle and half width of the actions' range, ``[2, controlled]``; None for no squashing.
        discrete: Whether outputs are logits.
        generator: Generator of the weights, uniform in ±1/sqrt(fan in) as in ``torch.nn.Linear``.

    Example:
        >>> network = Deviating(3, 5, 4, 2, (8,), generator=torch.Generator().manual_seed(0))
        >>> network(torch.zeros(7, 3, 5), torch.tensor(0.5)).shape, network.deviations_at(torch.zeros(6, 5)).shape
        (torch.Size([7, 3, 4]), torch.Size([6, 3, 2]))
    """

    box: Tensor | None

    def __init__(
        self,
        agents: int,
        inputs: int,
        outputs: int,
        controlled: int,
        hidden: Sequence[int],
        *,
        generator: torch.Generator,
        activation: str = "tanh",
        box: Tensor | None = None,
        discrete: bool = False,
    ) -> None:
        super().__init__()
        self.agents, self.controlled, self.discrete = agents, controlled, discrete
        draw = partial(StackedMLP.create, generator=generator, activation=activation, init="linear")
        self.shared = draw((1,), (inputs, *hidden, outputs))
        self.deviations = draw((agents,), (inputs, *hidden, controlled))
        self.register_buffer("box", box, persistent=False)

    def forward(self, observations: Tensor, scale: Tensor) -> Tensor:
        """Return the outputs of every agent on its own observation.

        Args:
            observations: Shape ``[..., agents, inputs]``.
            scale: The factor on deviations, ``[]``.

        Returns:
            Shape ``[..., agents, outputs]``.
        """
        rows = observations.reshape(-1, *observations.shape[-2:])
        own = self._centre(self.deviations(rows.transpose(0, 1)).transpose(0, 1))
        return self._combine(rows, own, scale).reshape(*observations.shape[:-1], -1)

    def deviations_at(self, observations: Tensor, agents: Tensor | None = None) -> Tensor:
        """Return the agents' deviations on the same observations.

        Args:
            observations: Shape ``[observations, inputs]``.
            agents: Agents to evaluate on each, int64 ``[observations, k]``; all agents when None.

        Returns:
            Shape ``[observations, agents or k, controlled]``.
        """
        networks = self.deviations
        own = run_all(networks, observations) if agents is None else run_chosen(networks, observations, agents)
        return self._centre(own)

    def actions_at(self, observations: Tensor, scale: Tensor) -> Tensor:
        """Return the controlled outputs of every agent on every observation: ``[observations, agents, controlled]``."""
        every = self._combine(observations.unsqueeze(1), self.deviations_at(observations), scale)
        return every[..., : self.controlled]

    def _combine(self, observations: Tensor, own: Tensor, scale: Tensor) -> Tensor:
        shared = self.shared(observations.reshape(1, -1, observations.shape[-1]))
        shared = shared.reshape(*observations.shape[:-1], -1)
        controlled, rest = shared[..., : self.controlled], shared[..., self.controlled :]
        controlled = add_deviation(controlled, own, scale, squash=self.box is not None, box=self.box)
        return torch.cat([controlled, rest.expand(*controlled.shape[:-1], -1)], -1)

    def _centre(self, own: Tensor) -> Tensor:
        return centre_logits(own) if self.discrete else own


@dataclass
class DiCoModelConfig(ModelConfig):  # type: ignore[misc]
    """Configuration of a ``DiCoModel``.

    If an experiment has no ``critic_model_config``, its critics are plain MLPs with the same layers.

    Args:
        target: Diversity to hold: SND of the agents' ``loc`` before the final tanh, or of their centred logits or
            action values. 0 for agents that are all the same, None for no control, two numbers to look for the best
            level between them (:class:`~graphsnd.control.Seek`), for which the experiment needs a
            ``DiversityCallback``.
        design: Pairs to measure, as :func:`graphsnd.designs.parse` reads them: ``complete``, or fewer, such as
            ``bernoulli:0.1`` or ``agents:8``.
        tau: Weight of a new measurement in the estimate.
        differentiable: Whether gradients flow through the measurement into the scale, as in the original DiCo.
        num_cells: Sizes of the hidden layers.
        activation: ``"tanh"`` or ``"relu"``.
        squash_shared: Whether the shared mean passes a tanh into the actions' range, as in DiCo.
        observations: Largest number of observations of a minibatch to measure on, drawn at random; None for all.
        positions: Number of features at the start of an observation that are the agent's position; only for ``knn:3``.

    Example:
        >>> str(DiCoModelConfig(target=0.1, design="bernoulli:0.1").make_controller().design)
        'bernoulli:0.1'
    """

    target: float | Sequence[float] | None = None
    design: str = "complete"
    tau: float = 0.01
    differentiable: bool = False
    num_cells: Sequence[int] = (256, 256)
    activation: str = "tanh"
    squash_shared: bool = True
    observations: int | None = None
    positions: int | None = None

    def make_controller(self) -> Controller:
        """Return the controller that the fields describe."""
        if self.target is None:
            return Unconstrained(self.design)
        if self.target == 0:
            return Homogeneous(self.design)
        options: dict[str, Any] = {"tau": self.tau, "design": self.design, "differentiable": self.differentiable}
        target: Any = self.target
        return (Seek if isinstance(target, Sequence) else DiCo)(target, **options)

    def get_model(self, **kwargs: Any) -> Model:
        """Return the model of one group of agents; an MLP for critics."""
        if self.is_critic:
            activation = MODULES[self.activation]
            critic = MlpConfig(num_cells=list(self.num_cells), layer_class=nn.Linear, activation_class=activation)
            critic.is_critic = True
            return critic.get_model(**kwargs)
        return DiCoModel(config=self, **{"model_index": 0, "is_critic": False, **kwargs})

    @staticmethod
    def associated_class() -> type[DiCoModel]:
        """Return the class of the model."""
        return DiCoModel


class DiCoModel(Model):  # type: ignore[misc]
    """A shared network, deviations of every agent, and a controller that scales them.

    A *training forward* is one with gradients enabled for the model's own parameters: the forward of a loss. It
    measures the unscaled deviations of agents on the observations of all agents in the batch, updates the estimate and
    scales by the result. Every other forward (rollouts, evaluation, targets) uses the scale as it stands. The state of
    the controller lies in buffers, so that checkpoints hold it, copies on other devices receive it, and TorchRL's
    functional losses write to the same place that rollouts read. Controllers that control nothing measure nothing.

    :class:`~graphsnd.integrations.benchmarl.DiCoModelConfig` makes it.

    Attributes:
        network: :class:`~graphsnd.integrations.benchmarl.model.Deviating`.
        controller_state: All numbers of the controller's state, float64.
        draws: Seed and number of measurements so far, float64; together they seed the next random pairs.
        tally: Sums of :data:`COUNTED` over training forwards since the last reset.

    Example:
        >>> from torchrl.data import Bounded, Composite, Unbounded
        >>> from graphsnd.integrations.benchmarl import DiCoModelConfig
        >>> leaves = {"observation": Unbounded((3, 5)), "logits": Unbounded((3, 4)), "action": Bounded(-1, 1, (3, 2))}
        >>> seen, out, action = (Composite({"agents": Composite({k: v}, shape=(3,))}) for k, v in leaves.items())
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
        self.register_buffer("draws", torch.tensor([drawn, 0.0], dtype=torch.float64, device=self.device))
        self.register_buffer("tally", torch.zeros(len(COUNTED), dtype=torch.float64, device=self.device))

    @property
    def discrete(self) -> bool:
        """Whether outputs are logits of discrete actions."""
        return isinstance(self.action_spec[self.agent_group, "action"], (Categorical, OneHot))

    @property
    def state(self) -> State:
        """The state of the controller."""
        return self._unpack(self.controller_state)

    def _unpack(self, packed: Tensor) -> State:
        return unpack(packed, self.controller.initial(device=packed.device))

    @property
    def scale(self) -> Tensor:
        """The present scale of deviations, ``[]``."""
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
            observations: Observations of a batch, ``[..., agents, inputs]``.
            most: Largest number of frames to use.
        """
        if self.n_agents == 1:
            return torch.zeros_like(self.scale)
        frames = observations.reshape(-1, *observations.shape[-2:])
        if len(frames) > most:
            frames = frames[torch.linspace(0, len(frames) - 1, most, device=frames.device).round().long()]
        rows = frames.flatten(0, 1).to(self.controller_state.device)
        return snd(Deterministic(self.network.actions_at(rows, self.scale)))

    @torch.no_grad()
    def observe(self, reward: Tensor) -> dict[str, float]:
        """Show the reward of a batch to a controller that seeks a level, and return its level; ignored by others.

        Args:
            reward: Mean reward of the batch, which was collected at the present level.
        """
        if not isinstance(self.controller, Seek):
            return {}
        held = float(self.controller.level(self.state))
        state = self.controller.observe(reward, self.state)
        self.controller_state.copy_(pack(state))
        return {"level": held, "clear": float(self.controller.report(state).clear)}

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
        return self.scale if learns or self._trained is None else self.controller.scale(self._unpack(self._trained))

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
        counted = (torch.ones_like(scale), scale, status.saturated, status.empty, status.invalid)
        self.tally += torch.stack([part.double().mean() for part in counted])

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
        """Return the generator of the next measurement, which follows from what checkpoints hold."""
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


def pack(state: State) -> Tensor:
    """Return all numbers of a state as one float64 tensor.

    Example:
        >>> pack(State(torch.tensor(0.5), torch.tensor(True)))
        tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    return torch.cat([part.double().flatten() for part in vars(state).values()])


def unpack(packed: Tensor, like: State) -> State:
    """Return the state that :func:`pack` wrote, with the shapes and dtypes of ``like``."""
    parts = vars(like)
    split = packed.split([part.numel() for part in parts.values()])
    return replace(
        like, **{name: own.view_as(part).to(part.dtype) for (name, part), own in zip(parts.items(), split, strict=True)}
    )
