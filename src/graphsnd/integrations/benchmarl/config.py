"""The configuration of controlled diversity in a BenchMARL experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarl.models import MlpConfig
from benchmarl.models.common import Model, ModelConfig
from torch import nn

from graphsnd.control import Controller, DiCo, Homogeneous, Unconstrained
from graphsnd.control.controllers import BOUNDS
from graphsnd.integrations.benchmarl.model import DiCoModel

MODULES = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass
class DiCoModelConfig(ModelConfig):  # type: ignore[misc]
    """Configuration of a ``DiCoModel``.

    Where an experiment has no ``critic_model_config`` of its own, its critics are plain MLPs with the same layers.

    Args:
        target: The diversity to hold: SND of the agents' ``loc`` before the final tanh, or of their centred logits
            or action values.
            0 for agents that are all the same, None for no control.
        design: ``complete``, or a cheaper one such as ``bernoulli:0.1`` or ``agents:8``, as
            :func:`graphsnd.designs.parse` reads it.
        tau: Weight of a new measurement in the estimate.
        bootstrap: What the first estimate is, ``"measured"`` or the ``"target"``.
        lowest: Smallest scale.
        highest: Largest scale.
        differentiable: Whether gradients flow through the measurement into the scale, as in the original DiCo.
        num_cells: Sizes of the hidden layers.
        activation: ``"tanh"`` or ``"relu"``.
        squash_shared: Whether the shared mean passes a tanh into the actions' range, as in DiCo.
        observations: Largest number of observations of a minibatch to measure on, drawn at random; None for all.
        positions: Number of features, the first of an observation, that are the agent's position; only for ``knn:3``.
        seed: Seed of the random pairs; drawn from the experiment's seed when None.

    Example:
        >>> str(DiCoModelConfig(target=0.1, design="bernoulli:0.1").make_controller().design)
        'bernoulli:0.1'
    """

    target: float | None = None
    design: str = "complete"
    tau: float = 0.01
    bootstrap: str = "measured"
    lowest: float = BOUNDS[0]
    highest: float = BOUNDS[1]
    differentiable: bool = False
    num_cells: Sequence[int] = (256, 256)
    activation: str = "tanh"
    squash_shared: bool = True
    observations: int | None = None
    positions: int | None = None
    seed: int | None = None

    def make_controller(self) -> Controller:
        """Return the controller that the fields describe."""
        if self.target is None:
            return Unconstrained(self.design)
        if self.target == 0:
            return Homogeneous(self.design)
        return DiCo(
            self.target,
            tau=self.tau,
            bounds=(self.lowest, self.highest),
            design=self.design,
            bootstrap=self.bootstrap,
            differentiable=self.differentiable,
        )

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
