"""Independent PPO with unshared actors and critics, stacked as runs x agents, with SND measured on the way.

:class:`Trainer` does one iteration at a time. :func:`train` adds files: a log, checkpoints that training resumes from
bit for bit, and a saved team for each seed. :class:`Settings` default to the paper's table, ``PRESETS`` hold tasks.
"""

from graphsnd.training.advantages import advantages
from graphsnd.training.checkpoint import Checkpoint, Task, load_checkpoint, save_checkpoint, save_teams
from graphsnd.training.diversity import Diversity, diversity
from graphsnd.training.evaluation import Evaluation, evaluate_team
from graphsnd.training.log import Row, read_rows
from graphsnd.training.loop import Trained, train
from graphsnd.training.presets import PRESETS, Preset, preset
from graphsnd.training.settings import Settings
from graphsnd.training.trainer import Trainer

__all__ = [
    "PRESETS",
    "Checkpoint",
    "Diversity",
    "Evaluation",
    "Preset",
    "Row",
    "Settings",
    "Task",
    "Trained",
    "Trainer",
    "advantages",
    "diversity",
    "evaluate_team",
    "load_checkpoint",
    "preset",
    "read_rows",
    "save_checkpoint",
    "save_teams",
    "train",
]
