"""2 WHO acts: policies, stacked or listed, evaluated on shared observations, all of them or a few."""

from graphsnd.teams.actions import ActionDistribution, CategoricalActions, NormalActions, TanhNormalActions
from graphsnd.teams.callables import CallablesTeam, ModulesTeam, Policy, Unroll
from graphsnd.teams.drawing import draw_samples
from graphsnd.teams.evaluation import JointTeam, as_team, evaluate
from graphsnd.teams.files import load_behavior, save_behavior
from graphsnd.teams.heads import CategoricalHead, DeterministicHead, GaussianHead, Head, TanhNormalHead
from graphsnd.teams.network import StackedMLP
from graphsnd.teams.stacked import StackedTeam
from graphsnd.teams.team import Team

__all__ = [
    "ActionDistribution",
    "CallablesTeam",
    "CategoricalActions",
    "CategoricalHead",
    "DeterministicHead",
    "GaussianHead",
    "Head",
    "JointTeam",
    "ModulesTeam",
    "NormalActions",
    "Policy",
    "StackedMLP",
    "StackedTeam",
    "TanhNormalActions",
    "TanhNormalHead",
    "Team",
    "Unroll",
    "as_team",
    "draw_samples",
    "evaluate",
    "load_behavior",
    "save_behavior",
]
