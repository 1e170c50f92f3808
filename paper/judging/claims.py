"""The claims of the paper, read from ``claims.yaml``: the statement, how it is measured, and when it is confirmed.

The first rules were written down before the experiments were run; they come from the paper's values and from sampling
error. The head of ``claims.yaml`` says what was known at that time. ``results/rules.md`` lists the replaced rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from graphsnd.errors import require
from paper.experiment import Scale
from paper.judging.rules import Rule

CLAIMS = Path(__file__).parents[1] / "claims.yaml"
RULES = ("rule", "direction", "correction", "undecided")


class Kind(Enum):
    """The kind of a row; the headline counts each kind separately."""

    THEOREM = "theorem or identity"  # or a step of a proof
    MEASUREMENT = "measurement of the paper"  # a reported number or observation that could have come out differently
    CHECK = "check that can hardly fail"  # an outcome that follows from a theorem, the setting or arithmetic
    FINDING = "finding of ours"  # not a statement of the paper


@dataclass(frozen=True)
class Claim:
    """One statement of the paper that a number can decide."""

    id: str  # kebab-case, unique
    kind: Kind
    place: str  # section, table or figure of the paper
    says: str  # one sentence, in our words
    paper: str  # the paper's value
    experiment: str  # name of the experiment that measures it
    number: str  # name of the number in that experiment
    measured: str  # how it is measured
    scales: tuple[Scale, ...]  # scales at which the rule may be applied, the largest first
    rule: Rule  # confirmed when it holds
    direction: Rule | None = None  # confirmed in direction when it holds
    correction: Rule | None = None  # corrected when it holds; tested before the rule
    undecided: Rule | None = None  # undecided when it holds and the rule does not: the interval leaves it open
    tolerance: str = ""  # for a measurement: where the limits of its rule come from
    note: str = ""  # what the comparison means
    finding: str = ""  # the outcome, added after measuring, with numbers of its experiment as {name.value:.1%}
    why: str = ""  # why a finding is no claim of the paper, or why a check can hardly fail


def load_claims() -> tuple[Claim, ...]:
    """Return the claims of ``claims.yaml``.

    Raises:
        MissingExtraError: Without PyYAML.
    """
    entries = require("yaml", "pyyaml").safe_load(CLAIMS.read_text(encoding="utf-8"))
    return tuple(map(_read_claim, entries))


def _read_claim(entry: dict[str, Any]) -> Claim:
    fields: dict[str, Any] = {
        name: " ".join(value.split()) if isinstance(value, str) else value for name, value in entry.items()
    }
    fields |= {name: Rule.parse(entry[name]) for name in RULES if name in entry}
    fields["kind"] = Kind[entry["kind"].upper()]
    fields["scales"] = tuple(sorted(map(Scale, entry["scales"]), key=list(Scale).index, reverse=True))
    return Claim(**fields)
