"""The paper's ablation of graph families at equal numbers of edges, and the measures that are said to explain it."""

from paper.expanders.ablation import EXPERIMENT, initial_team

__all__ = ["EXPERIMENT", "initial_team"]
