"""The claims of the paper, read from ``claims.yaml``: what it says, how that is measured, and when it counts as shown.

The first rules were written down before the experiments were run; they come from the paper's values and from sampling
error. The head of ``claims.yaml`` says what was known by then, and ``results/rules.md`` which rules were replaced.
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
    """What a row is about; the headline counts them apart."""

    THEOREM = "theorem or identity"  # or a step of a proof
    MEASUREMENT = "measurement of the paper"  # a number or an observation that it reports, and that could be otherwise
    CHECK = "check that can hardly fail"  # an outcome that a theorem, the setting or arithmetic gives by itself
    FINDING = "finding of ours"  # nothing that the paper says


@dataclass(frozen=True)
class Claim:
    """One statement of the paper that a number can decide."""

    id: str  # kebab-case, unique
    kind: Kind
    place: str  # in the paper
    says: str  # one sentence, in our words
    paper: str  # its value, as the paper has it
    experiment: str  # that measures it
    number: str  # among that experiment's numbers
    measured: str  # how
    scales: tuple[Scale, ...]  # at which the rule may be applied, the largest first
    rule: Rule  # confirmed when it holds
    direction: Rule | None = None  # confirmed in direction when it holds
    correction: Rule | None = None  # corrected when it holds; asked before the rule
    undecided: Rule | None = None  # undecided when it holds and the rule does not: the interval leaves it open
    tolerance: str = ""  # of a measurement: where the limits of its rule come from
    note: str = ""  # what the comparison means
    finding: str = ""  # what came out, added after measuring, with numbers of its experiment as {name.value:.1%}
    why: str = ""  # a finding is no claim of the paper, or a check can hardly fail


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
