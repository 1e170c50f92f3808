"""What a number means: which agents act alike, in which states agents differ, and whether two teams do."""

from graphsnd.analysis.comparing import TeamsComparison, compare
from graphsnd.analysis.fields import Field, bin_field
from graphsnd.analysis.grouping import Roles, roles
from graphsnd.analysis.permuting import act_alike

__all__ = ["Field", "Roles", "TeamsComparison", "act_alike", "bin_field", "compare", "roles"]
