"""9 WHAT IT MEANS: groups of agents that act alike, and whether two teams or two algorithms differ."""

from graphsnd.analysis.comparing import Difference, RunsComparison, Score, TeamsComparison, compare, compare_runs
from graphsnd.analysis.grouping import Roles, roles
from graphsnd.analysis.permuting import act_alike
from graphsnd.analysis.runs import LoggedRun, MetricComparison, compare_folders, read_runs

__all__ = [
    "Difference",
    "LoggedRun",
    "MetricComparison",
    "Roles",
    "RunsComparison",
    "Score",
    "TeamsComparison",
    "act_alike",
    "compare",
    "compare_folders",
    "compare_runs",
    "read_runs",
    "roles",
]
