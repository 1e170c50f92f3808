"""How a BenchMARL experiment asks for controlled diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphsnd.control import Bootstrap, Controller
from graphsnd.control.dico import BOUNDS
from graphsnd.errors import require
from graphsnd.integrations.benchmarl.controllers import make_controller
from graphsnd.integrations.benchmarl.model import DiCoModel

require("benchmarl", "benchmarl")
from benchmarl.models import MlpConfig, model_config_registry  # noqa: E402
from benchmarl.models.common import Model, ModelConfig  # noqa: E402
from torch import nn  # noqa: E402

MODULES = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass
class DiCoModelConfig(ModelConfig):  # type: ignore[misc]
    """Configuration of a :class:`~graphsnd.integrations.benchmarl.DiCoModel`; also ``conf/model/dico.yaml``.

    Where an experiment has no ``critic_model_config`` of its own, its critics are plain MLPs with the same layers.

    Args:
        target: The diversity to hold: SND of the agents' ``loc`` before the final tanh, or of their centred logits.
            0 for agents that are all the same, None for no control.
        design: ``complete``, or a cheaper one such as ``bernoulli:0.1`` or ``agents:8``, as
            :func:`graphsnd.designs.parse` reads it.
        tau: Weight of a new measurement in the estimate.
        bootstrap: What the first estimate is, ``"measured"`` or the ``"target"``.
        lowest: Smallest scale.
        highest: Largest scale.
        num_cells: Sizes of the hidden layers.
        activation: ``"tanh"`` or ``"relu"``.
        squash_shared: Whether the shared mean passes a tanh into the actions' range, as in DiCo.
        observations: Measure on at most so many observations of a minibatch, drawn at random; all when None.
        positions: How many features, the first of an observation, say where the agent is; only for ``knn:3``.
        seed: Of the random pairs; drawn from the experiment's seed when None.
        controller: Any :class:`~graphsnd.control.Controller`, in place of everything from ``target`` to ``highest``.
            BenchMARL pickles it.

    Example:
        >>> str(DiCoModelConfig(target=0.1, design="bernoulli:0.1").make_controller().design)
        'bernoulli:0.1'
    """

    target: float | None = None
    design: str = "complete"
    tau: float = 0.01
    bootstrap: str = Bootstrap.MEASURED.value
    lowest: float = BOUNDS[0]
    highest: float = BOUNDS[1]
    num_cells: Sequence[int] = (256, 256)
    activation: str = "tanh"
    squash_shared: bool = True
    observations: int | None = None
    positions: int | None = None
    seed: int | None = None
    controller: Any = None

    def make_controller(self) -> Controller:
        """The controller that the fields describe."""
        if self.controller is not None:
            return self.controller
        return make_controller(
            self.target, self.design, tau=self.tau, bootstrap=self.bootstrap, bounds=(self.lowest, self.highest)
        )

    def get_model(self, **kwargs: Any) -> Model:
        """The model of one group of agents; an MLP for critics."""
        if self.is_critic:
            activation = MODULES[self.activation]
            critic = MlpConfig(num_cells=list(self.num_cells), layer_class=nn.Linear, activation_class=activation)
            critic.is_critic = True
            return critic.get_model(**kwargs)
        return DiCoModel(
            controller=self.make_controller(),
            num_cells=self.num_cells,
            activation=self.activation,
            squash_shared=self.squash_shared,
            observations=self.observations,
            positions=self.positions,
            seed=self.seed,
            is_critic=False,
            **{"model_index": 0, **kwargs},
        )

    @staticmethod
    def associated_class() -> type[DiCoModel]:
        """The model."""
        return DiCoModel


def register() -> None:
    """Make ``model=dico`` known to BenchMARL's own Hydra loaders. Idempotent; done when the package is imported."""
    model_config_registry["dico"] = DiCoModelConfig
