"""Controlled diversity (DiCo) for BenchMARL, without a fork: a model, two callbacks, and Hydra configuration.

Needs ``pip install benchmarl vmas``. See ``docs/benchmarl.md``.
"""

from graphsnd.errors import require

require("benchmarl", "benchmarl")

from graphsnd.integrations.benchmarl.callbacks import ActionSpaceLoss, DiversityLog  # noqa: E402
from graphsnd.integrations.benchmarl.config import DiCoModelConfig  # noqa: E402
from graphsnd.integrations.benchmarl.model import DiCoModel  # noqa: E402

__all__ = ["ActionSpaceLoss", "DiCoModel", "DiCoModelConfig", "DiversityLog"]
