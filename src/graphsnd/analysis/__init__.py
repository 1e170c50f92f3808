"""What a number means: which agents act alike, and whether two teams differ."""

from graphsnd.analysis.comparing import compare
from graphsnd.analysis.grouping import roles

__all__ = ["compare", "roles"]
