"""One stacked PPO trainer, for independent policies or for policies whose diversity is controlled (DiCo).

:class:`Trainer` does one iteration at a time; what it trains is a :class:`~graphsnd.training.trainer.Method`: policies,
critics, a learner, and a companion that measures or controls diversity. :func:`train` adds files: a log, checkpoints
that training resumes from bit for bit, and a saved team for each seed. :func:`train_grid` trains many runs stack by
stack, on a Ray cluster too. :class:`Settings` default to the paper's table,
:class:`ControlSettings` to its study of control.
"""

from graphsnd.training.checkpoint import load_checkpoint, save_checkpoint, save_teams
from graphsnd.training.control import Run
from graphsnd.training.evaluation import Evaluation, evaluate_team
from graphsnd.training.grid import Stack, TrainedGrid, train_grid
from graphsnd.training.log import ControlRow, Row, read_rows
from graphsnd.training.loggers import Logger, open_logger
from graphsnd.training.loop import Trained, train
from graphsnd.training.ppo import compute_gae
from graphsnd.training.settings import ControlSettings, Settings
from graphsnd.training.task import CONTROL_PRESETS, PRESETS, ControlTask, Task, cut_grid
from graphsnd.training.trainer import Trainer

__all__ = [
    "CONTROL_PRESETS",
    "PRESETS",
    "ControlRow",
    "ControlSettings",
    "ControlTask",
    "Evaluation",
    "Logger",
    "Row",
    "Run",
    "Settings",
    "Stack",
    "Task",
    "Trained",
    "TrainedGrid",
    "Trainer",
    "compute_gae",
    "cut_grid",
    "evaluate_team",
    "load_checkpoint",
    "open_logger",
    "read_rows",
    "save_checkpoint",
    "save_teams",
    "train",
    "train_grid",
]
