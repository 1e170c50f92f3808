"""9 WHAT IT MEANS: groups of agents that act alike, and whether two teams or two algorithms differ."""

from graphsnd.analysis.comparing import Difference, RunsComparison, Score, TeamsComparison, compare, compare_runs
from graphsnd.analysis.grouping import Roles, roles

__all__ = ["Difference", "Roles", "RunsComparison", "Score", "TeamsComparison", "compare", "compare_runs", "roles"]
