"""The paper's experiments as functions, one module each, on the library's own parts."""

from graphsnd.reproduce.expanders import Family, ablation, degrees, initial_team
from graphsnd.reproduce.ratios import Row, Summary, compare, summarise

__all__ = ["Family", "Row", "Summary", "ablation", "compare", "degrees", "initial_team", "summarise"]
