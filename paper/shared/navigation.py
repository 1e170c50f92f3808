r"""The navigation teams of the paper's core checks: n agents before and after training, and what they saw.

Independent PPO with the paper's table, in the default world of VMAS. The policies are then let loose once more with a
seed of its own, and the observations of all agents are pooled: every policy answers all of them, as equation (1) says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Gaussian
from graphsnd.errors import InputError
from graphsnd.teams import StackedTeam
from graphsnd.training import Evaluation, Settings, Task, Trainer, evaluate_team, preset
from paper.cells import Cells
from paper.experiment import Scale
from paper.shared.seen import observe, one_thread
from paper.shared.trained import trained

TRAINING_SEED, ROLLOUT_SEED = 0, 42

_TABLE = preset("navigation").settings.replace(diversity_every=0)
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
    evaluation: Evaluation  # how well it does, exploring as in training

    @torch.no_grad()
    def behavior(self) -> Gaussian:
        """What all policies would do on all observations.

        Answers are the float32 that the policies give; they are kept in float64, and so are the distances.
        """
        answers = self.team.evaluate(self.observations)
        if not isinstance(answers, Gaussian):
            raise InputError("team", "of Gaussian policies", repr(answers))
        return Gaussian(answers.loc.double(), answers.scale.double())

    def about(self) -> dict[str, Any]:
        """What a reader wants to know of the team, ready for JSON."""
        found = self.evaluation
        return {
            "iteration": self.iteration,
            "observations": len(self.observations),
            "reward": found.reward,
            "solved": found.solved_at_end,
        }


def checkpoints(scale: Scale) -> tuple[int, int]:
    """The iterations at which teams are looked at: the first and the last.

    Example:
        >>> checkpoints(Scale.PAPER)
        (0, 100)
    """
    return 0, SETTINGS[scale].iterations


def task(n: int, scale: Scale) -> Task:
    """The training of ``n`` agents.

    Every rollout of 128 steps begins anew, so that a time limit of 200 steps would never be met and none is set.

    Example:
        >>> task(4, Scale.PAPER).settings.samples
        4096
    """
    return Task("navigation", n, {}, (TRAINING_SEED,), SETTINGS[scale])


def snapshot(scale: Scale, cells: Cells, n: int, iteration: int) -> Snapshot:
    """A team of ``n`` agents at one of the :func:`checkpoints`, trained now if it has not been.

    Args:
        scale: Which training.
        cells: Where it is kept; a killed one continues.
        n: Number of agents.
        iteration: One of the two checkpoints.

    Raises:
        InputError: For another iteration, or a folder that holds another training.
        KeyboardInterrupt: After Ctrl-C, once the training has saved where it was.

    Example:
        >>> import pathlib, tempfile
        >>> found = snapshot(Scale.SMOKE, Cells(pathlib.Path(tempfile.mkdtemp())), 3, 0)
        >>> found.behavior()
        Gaussian(agents=3, observations=384)
    """
    if iteration not in checkpoints(scale):
        raise InputError("iteration", f"to be one of {checkpoints(scale)}", iteration)
    job = task(n, scale)
    with one_thread():
        trainer = trained(job, cells, f"team,n={n}") if iteration else _untrained(job)
        team, steps = trainer.team(TRAINING_SEED), job.settings.steps
        seen = observe(team, trainer.world, steps=steps, seed=ROLLOUT_SEED)
        found = evaluate_team(team, trainer.world, steps=steps, seed=ROLLOUT_SEED, deterministic=False)
    return Snapshot(trainer.iteration, team, seen.flatten(0, -2), found)


def at_checkpoints(
    scale: Scale, cells: Cells, n: int, settings: dict[str, Any], make: Callable[[Snapshot], Any]
) -> list[Any]:
    """What ``make`` finds in the team of ``n`` agents at both :func:`checkpoints`, each a cell.

    Args:
        scale: Which training.
        cells: Where cells are kept.
        n: Number of agents.
        settings: What else the cells depend on.
        make: Gives something ready for JSON.
    """

    def cell(iteration: int) -> Any:
        about = {**task(n, scale).to_dict(), "iteration": iteration, "rollout_seed": ROLLOUT_SEED, **settings}
        return cells.get(f"n={n},iteration={iteration}", about, lambda: make(snapshot(scale, cells, n, iteration)))

    return [cell(iteration) for iteration in checkpoints(scale)]


def _untrained(job: Task) -> Trainer:
    return Trainer(job.make_world("cpu"), job.settings, seeds=job.seeds)
