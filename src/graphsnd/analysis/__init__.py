"""9 WHAT IT MEANS: groups of agents that act alike, and whether two teams or two algorithms differ."""

from graphsnd.analysis.grouping import Roles, roles

__all__ = ["Roles", "roles"]
