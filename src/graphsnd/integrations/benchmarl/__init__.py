"""Diversity in BenchMARL, without a fork: measured in any experiment by a callback, controlled by a model (DiCo).

Needs ``pip install benchmarl vmas``. See ``docs/benchmarl.md``.
"""

from graphsnd.errors import require

require("benchmarl", "benchmarl")

from graphsnd.integrations.benchmarl.callbacks import ActionSpaceLoss, DiversityCallback  # noqa: E402
from graphsnd.integrations.benchmarl.evaluation import load_teams  # noqa: E402
from graphsnd.integrations.benchmarl.model import DiCoModelConfig  # noqa: E402
from graphsnd.integrations.benchmarl.tasks import GraphsndTask  # noqa: E402

__all__ = [
    "ActionSpaceLoss",
    "DiCoModelConfig",
    "DiversityCallback",
    "GraphsndTask",
    "load_teams",
]
