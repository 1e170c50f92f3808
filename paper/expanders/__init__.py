"""The paper's ablation of graph families at equal numbers of edges, and everything that is said to explain it."""

from paper.expanders.ablation import ablation
from paper.expanders.families import Family, degrees
from paper.expanders.ratios import Row, Summary, compare, summarise
from paper.expanders.run import EXPERIMENT
from paper.expanders.teams import initial_team

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
