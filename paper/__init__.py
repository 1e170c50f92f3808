"""The paper's experiments, one module each, on the library's own parts, and a verdict on each of the paper's claims.

An :class:`Experiment` runs at a :class:`Scale` and leaves numbers; a :class:`Claim` says which number decides it and by
which rule, fixed beforehand; :func:`judge_all` compares the claims with a folder of results.
"""

from paper.cells import Cells
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
    "Judged",
    "Number",
    "Outcome",
    "Result",
    "Rule",
    "Scale",
    "Verdict",
    "find",
    "judge",
    "judge_all",
    "load_claims",
    "read_result",
    "run",
]
