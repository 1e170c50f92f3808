"""The network that BenchMARL trains: one for all agents, plus a deviation of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from graphsnd.control.networks import add_deviation, centre_logits
from graphsnd.teams import StackedMLP
from graphsnd.teams.stacked import run_all, run_chosen


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
        controlled: Number of them, from the first on, that deviate.
        hidden: Sizes of the hidden layers, of both networks.
        activation: ``"tanh"`` or ``"relu"``.
        box: Middle and half width of the actions' range, ``[2, controlled]``; None for no squashing.
        discrete: Whether outputs are logits.
        generator: Draws the weights, uniform in ±1/sqrt(fan in) as ``torch.nn.Linear`` does.

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
