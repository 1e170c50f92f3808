r"""The navigation teams of the paper's core checks: n agents before and after training, and their observations.

Agents train by independent PPO with the paper's constants, in the default world of VMAS. The policies then act once
more with a separate seed. The observations of all agents are pooled, and every policy is evaluated on all of them, as
equation (1) says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphsnd.behavior import Gaussian
from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.teams import StackedTeam
from paper.experiment import Scale
from paper.runner import Cells, train_cell
from paper.shared.rollouts import as_gaussian, observe, one_thread

T = TypeVar("T")
TRAINING_SEED, ROLLOUT_SEED = 0, 42

_TABLE = PRESETS["navigation-100"].settings.replace(diversity_every=0)
SETTINGS: dict[Scale, Settings] = {
    Scale.SMOKE: _TABLE.replace(iterations=2, steps=16, environments=8, minibatch=64),
    Scale.LAPTOP: _TABLE.replace(iterations=40),
    Scale.PAPER: _TABLE.replace(iterations=100),
}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A team at one point of its training."""

    iteration: int
    team: StackedTeam
    observations: Tensor  # [steps * environments * agents, features], of all agents of one rollout

    @torch.no_grad()
    def behavior(self) -> Gaussian:
        """Return the behaviour of all policies on all observations.

        Policies are evaluated in float32. Their outputs are stored in float64, and so are the distances.
        """
        answers = as_gaussian(self.team.evaluate(self.observations))
        return Gaussian(answers.loc.double(), answers.scale.double())


def checkpoints(scale: Scale) -> tuple[int, int]:
    """Return the iterations at which teams are compared: the first and the last.

    Example:
        >>> checkpoints(Scale.PAPER)
        (0, 100)
    """
    return 0, SETTINGS[scale].iterations


def task(n: int, scale: Scale) -> Task:
    """Return the training of ``n`` agents.

    Every rollout of 128 steps begins with new episodes. A time limit of 200 steps is never reached, so none is set.

    Example:
        >>> task(4, Scale.PAPER).settings.samples
        4096
    """
    return Task("navigation", n, {}, (TRAINING_SEED,), settings=SETTINGS[scale])


def snapshot(scale: Scale, cells: Cells, n: int, iteration: int) -> Snapshot:
    """Return a team of ``n`` agents at one of the :func:`checkpoints`, trained now if it has not been.

    Args:
        scale: Scale of the training.
        cells: Cells; the team is kept beside them for all experiments, and a killed training continues.
        n: Number of agents.
        iteration: One of the two checkpoints.

    Raises:
        InputError: When the folder holds another training.
        KeyboardInterrupt: After Ctrl-C, once the training has saved a checkpoint.

    Example:
        >>> import pathlib, tempfile
        >>> snapshot(Scale.SMOKE, Cells(pathlib.Path(tempfile.mkdtemp())), 3, 0).behavior()
        Gaussian(agents=3, observations=384)
    """
    job = task(n, scale)
    with one_thread():
        if iteration:
            trainer = train_cell(job, cells.beside("teams"), f"n={n}")
        else:
            trainer = Trainer(job.make_world("cpu"), job.settings, seeds=job.seeds)
        team = trainer.team(TRAINING_SEED)
        observations = observe(team, trainer.world, steps=job.settings.steps, seed=ROLLOUT_SEED).flatten(0, -2)
    return Snapshot(trainer.iteration, team, observations)


def at_checkpoints(
    scale: Scale, cells: Cells, n: int, settings: dict[str, Any], make: Callable[[Snapshot], T], kind: type[T]
) -> list[T]:
    """Return the results of ``make`` for the team of ``n`` agents at both :func:`checkpoints`, each a cell.

    Args:
        scale: Scale of the training.
        cells: Folder of the cells.
        n: Number of agents.
        settings: Other values that the cells depend on, ready for JSON.
        make: Function that computes a row.
        kind: Type of the row.
    """

    def cell(iteration: int) -> T:
        about = {**task(n, scale).to_dict(), "iteration": iteration, "rollout_seed": ROLLOUT_SEED, **settings}
        return cells.get(
            f"n={n},iteration={iteration}", about, lambda: make(snapshot(scale, cells, n, iteration)), kind
        )

    return [cell(iteration) for iteration in checkpoints(scale)]
