"""The paper's ablation of graph families at equal numbers of edges, and everything that is said to explain it."""

from graphsnd.reproduce.expanders.ablation import ablation
from graphsnd.reproduce.expanders.families import Family, degrees
from graphsnd.reproduce.expanders.ratios import Row, Summary, compare, summarise
from graphsnd.reproduce.expanders.run import EXPERIMENT
from graphsnd.reproduce.expanders.teams import initial_team

__all__ = [
    "EXPERIMENT",
    "Family",
    "Row",
    "Summary",
    "ablation",
    "compare",
    "degrees",
    "initial_team",
    "summarise",
]
