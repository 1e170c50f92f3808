"""The paper's experiments, one module each, on the library's own parts, and its claims held against them.

An :class:`Experiment` runs at a :class:`Scale` and leaves numbers; a :class:`Claim` says which number decides it and by
which rule, fixed beforehand; :func:`judge_all` holds the claims against a folder of results.
"""

from graphsnd.reproduce.cells import Cells
from graphsnd.reproduce.expanders import Family, Row, Summary, ablation, compare, degrees, initial_team, summarise
from graphsnd.reproduce.experiment import Experiment, Number, Outcome, Scale
from graphsnd.reproduce.judging.claims import Claim, load_claims
from graphsnd.reproduce.judging.rules import Rule
from graphsnd.reproduce.judging.verdicts import Judged, Verdict, judge, judge_all
from graphsnd.reproduce.registry import NAMES, find
from graphsnd.reproduce.runner import run
from graphsnd.reproduce.store import Result, read_result

__all__ = [
    "NAMES",
    "Cells",
    "Claim",
    "Experiment",
    "Family",
    "Judged",
    "Number",
    "Outcome",
    "Result",
    "Row",
    "Rule",
    "Scale",
    "Summary",
    "Verdict",
    "ablation",
    "compare",
    "degrees",
    "find",
    "initial_team",
    "judge",
    "judge_all",
    "load_claims",
    "read_result",
    "run",
    "summarise",
]
