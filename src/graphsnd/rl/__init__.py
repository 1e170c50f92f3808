"""One stacked PPO trainer, for independent policies or for policies whose diversity is controlled (DiCo).

:class:`Trainer` does one iteration at a time; what it trains is a :class:`~graphsnd.rl.trainer.Method`: policies,
critics, a learner, and a companion that measures or controls diversity. :func:`train` adds files: a log, checkpoints
that training resumes from bit for bit, and a saved team for each seed. :func:`train_grid` trains many runs stack by
stack, on a Ray cluster too. :class:`Settings` default to the paper's table,
:class:`ControlSettings` to its study of control.
"""

from graphsnd.rl.evaluation import evaluate_team
from graphsnd.rl.grid import train_grid
from graphsnd.rl.loop import train
from graphsnd.rl.settings import ControlSettings, Settings
from graphsnd.rl.task import CONTROL_PRESETS, PRESETS, ControlTask, Task
from graphsnd.rl.trainer import Trainer

__all__ = [
    "CONTROL_PRESETS",
    "PRESETS",
    "ControlSettings",
    "ControlTask",
    "Settings",
    "Task",
    "Trainer",
    "evaluate_team",
    "train",
    "train_grid",
]
