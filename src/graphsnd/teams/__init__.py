"""Teams: policies in any shape, evaluated on shared observations, all of them or a few.

``as_team`` makes a :class:`Team` of what a user has, ``team.evaluate(observations)`` returns its behaviour, and
``team.partial(observations, agents)`` that of chosen agents on each observation. Stacked networks and their heads
certify bounds on distances.
"""

from graphsnd.teams.evaluation import draw_samples, evaluate
from graphsnd.teams.files import load_behavior, save_behavior
from graphsnd.teams.heads import CategoricalHead, DeterministicHead, GaussianHead, TanhNormalHead
from graphsnd.teams.policies import as_team
from graphsnd.teams.stacked import StackedMLP, StackedTeam
from graphsnd.teams.team import Team

__all__ = [
    "CategoricalHead",
    "DeterministicHead",
    "GaussianHead",
    "StackedMLP",
    "StackedTeam",
    "TanhNormalHead",
    "Team",
    "as_team",
    "draw_samples",
    "evaluate",
    "load_behavior",
    "save_behavior",
]
