"""Training with controlled diversity (DiCo): IPPO on shared + scaled private networks, runs of all arms stacked.

:class:`ControlTrainer` does one iteration at a time; :func:`control` adds the log, checkpoints and resumption. The
defaults of :class:`ControlSettings` are those behind the paper's study.
"""

from graphsnd.training.dico.checkpoint import load_control, save_control
from graphsnd.training.dico.log import ControlRow, read_control_rows
from graphsnd.training.dico.loop import Controlled, control
from graphsnd.training.dico.settings import PRESETS, ControlSettings
from graphsnd.training.dico.task import ControlTask, Run
from graphsnd.training.dico.trainer import ControlTrainer

__all__ = [
    "PRESETS",
    "ControlRow",
    "ControlSettings",
    "ControlTask",
    "ControlTrainer",
    "Controlled",
    "Run",
    "control",
    "load_control",
    "read_control_rows",
    "save_control",
]
