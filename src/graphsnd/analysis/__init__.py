"""9 WHAT IT MEANS: who acts alike, in which states agents differ, and whether two teams or algorithms do."""

from graphsnd.analysis.comparing import Difference, RunsComparison, Score, TeamsComparison, compare, compare_runs
from graphsnd.analysis.fields import Field, bin_field
from graphsnd.analysis.grouping import Roles, roles
from graphsnd.analysis.permuting import act_alike
from graphsnd.analysis.runs import LoggedRun, MetricComparison, compare_folders, read_runs

__all__ = [
    "Difference",
    "Field",
    "LoggedRun",
    "MetricComparison",
    "Roles",
    "RunsComparison",
    "Score",
    "TeamsComparison",
    "act_alike",
    "bin_field",
    "compare",
    "compare_folders",
    "compare_runs",
    "read_runs",
    "roles",
]
