"""What a number means: which agents act alike, and whether two teams differ."""

from graphsnd.analysis.comparing import TeamsComparison, compare
from graphsnd.analysis.grouping import Roles, roles

__all__ = ["Roles", "TeamsComparison", "compare", "roles"]
