"""One stacked PPO trainer, for independent policies or for policies whose diversity is controlled (DiCo).

:class:`Trainer` does one iteration at a time; what it trains is a :class:`~graphsnd.rl.trainer.Method`: policies,
critics, a learner, and a companion that measures or controls diversity. :func:`train` adds files: a log, checkpoints
that training resumes from bit for bit, and a saved team for each seed. :func:`train_grid` trains many runs stack by
stack, on a Ray cluster too. A :class:`Task` says what is trained; :data:`PRESETS`
holds small ones and the paper's.
"""

from graphsnd.rl.evaluation import evaluate_team
from graphsnd.rl.grid import train_grid
from graphsnd.rl.loop import train
from graphsnd.rl.presets import PRESETS
from graphsnd.rl.settings import Settings
from graphsnd.rl.task import Task
from graphsnd.rl.trainer import Trainer

__all__ = [
    "PRESETS",
    "Settings",
    "Task",
    "Trainer",
    "evaluate_team",
    "train",
    "train_grid",
]
