"""The paper's experiments, one module each, on the library's own parts, and its claims held against them.

An :class:`Experiment` runs at a :class:`Scale` and leaves numbers; a :class:`Claim` says which number decides it and by
which rule, fixed beforehand; :func:`judge_all` holds the claims against a folder of results.
"""

from paper.cells import Cells
from paper.expanders import Family, Row, Summary, ablation, compare, degrees, initial_team, summarise
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.judging.claims import Claim, load_claims
from paper.judging.rules import Rule
from paper.judging.verdicts import Judged, Verdict, judge, judge_all
from paper.registry import NAMES, find
from paper.runner import run
from paper.store import Result, read_result

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
