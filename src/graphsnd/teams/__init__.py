"""Teams: policies in any shape, evaluated on shared observations, all of them or a few.

``as_team`` makes a :class:`~graphsnd.Team` of what a user has, ``team.evaluate(observations)`` returns its behaviour,
and ``team.partial(observations, agents)`` that of chosen agents on each observation. Stacked networks and their heads
certify bounds on distances.
"""

from graphsnd.teams.heads import CategoricalHead, GaussianHead, TanhNormalHead
from graphsnd.teams.policies import as_team
from graphsnd.teams.stacked import StackedMLP, StackedTeam

__all__ = [
    "CategoricalHead",
    "GaussianHead",
    "StackedMLP",
    "StackedTeam",
    "TanhNormalHead",
    "as_team",
]
