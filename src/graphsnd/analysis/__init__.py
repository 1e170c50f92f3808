"""What a number means: which agents act alike, whether two teams differ, and how much diversity pays."""

from graphsnd.analysis.comparing import compare
from graphsnd.analysis.grouping import roles
from graphsnd.analysis.levels import level_curve

__all__ = ["compare", "level_curve", "roles"]
