"""The claims of the paper, read from ``claims.yaml``: what it says, how that is measured, and when it counts as shown.

The first rules were written down before the experiments were run; they come from the paper's values and from sampling
error. The head of ``claims.yaml`` says what was known by then. A rule that was replaced stays in the file, as ``was``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from string import Formatter
from typing import Any

from graphsnd.errors import InputError, check_choice, require
from paper.experiment import Scale
from paper.judging.rules import Rule
from paper.registry import NAMES, find

CLAIMS = Path(__file__).parents[1] / "claims.yaml"
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TEXTS = ("id", "place", "says", "paper", "experiment", "number", "measured")
RULES = ("rule", "direction", "correction")
OPTIONAL = ("tolerance", "note", "why", "finding")
FIELDS = (*TEXTS, *RULES, *OPTIONAL, "kind", "scales", "was")


class Kind(Enum):
    """What a row is about; the headline counts them apart."""

    THEOREM = "theorem or identity"  # and checks of one: only a bug, or luck, could make it fail
    MEASUREMENT = "measurement of the paper"  # a number or an observation that it reports
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
    number: str  # a field of that experiment's numbers
    measured: str  # how
    scales: tuple[Scale, ...]  # at which the rule may be applied, the largest first
    rule: Rule  # confirmed when it holds
    direction: Rule | None = None  # confirmed in direction when it holds
    correction: Rule | None = None  # corrected when it holds; asked before the rule
    tolerance: str = ""  # of a measurement: where the limits of its rule come from
    note: str = ""  # what the comparison means
    finding: str = ""  # what came out, added after measuring, with numbers of its experiment as {name.value:.1%}
    added: bool = False  # whether the row was added after the first verdicts
    was: Claim | None = None  # with the number and the rules that it had at first, where these changed
    why: str = ""  # they changed, or the row was added, or is no claim of the paper

    @property
    def first(self) -> Claim | None:
        """As it was judged at first, before kinds were told apart; None for a row that was added later."""
        return None if self.added else self.was or replace(self, kind=Kind.MEASUREMENT)


def load_claims(text: str | None = None) -> tuple[Claim, ...]:
    """Read the claims.

    Args:
        text: YAML; that of ``claims.yaml`` when None.

    Raises:
        InputError: Naming the claim and the field that is not as it should be.
        MissingExtraError: Without PyYAML.
    """
    yaml = require("yaml", "pyyaml")
    if text is None:
        text = CLAIMS.read_text(encoding="utf-8")
    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError("claims.yaml", "to be YAML", " ".join(str(error).split())) from None
    if not isinstance(entries, list) or not entries:
        raise InputError("claims.yaml", "to be a list of claims", type(entries).__name__)
    claims = tuple(_claim(entry, at) for at, entry in enumerate(entries, 1))
    for name, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            raise InputError(f"{name}.id", "to be unique", f"{count} claims with it")
    return claims


def _claim(entry: Any, at: int) -> Claim:
    name = f"claim {at}"
    if not isinstance(entry, dict):
        raise InputError(name, "to map fields to values", repr(entry))
    if not isinstance(entry.get("id"), str) or not KEBAB.fullmatch(entry["id"]):
        raise InputError(f"{name}.id", "in kebab-case, such as recovery-zero-error", repr(entry.get("id")))
    name = entry["id"]
    for key in entry:
        check_choice(f"{name}.{key}", key, FIELDS)
    texts: dict[str, Any] = {key: _text(entry, key) for key in (*TEXTS, *OPTIONAL) if key in TEXTS or key in entry}
    check_choice(f"{name}.experiment", texts["experiment"], NAMES)
    claim = Claim(**texts, **_rules(entry, name), kind=_kind(entry), scales=_scales(entry))
    _check_number(claim)
    if entry.get("was") == "new":
        return replace(claim, added=True)
    return replace(claim, was=_was(claim, entry["was"])) if "was" in entry else claim


def _rules(entry: dict[str, Any], name: str) -> dict[str, Any]:
    rules = {key: Rule.parse(entry[key], f"{name}.{key}") for key in RULES if key in entry}
    if "rule" not in rules:
        raise InputError(f"{name}.rule", "to say when the claim is confirmed", "nothing")
    return rules


def _kind(entry: dict[str, Any]) -> Kind:
    """Read the kind, and check that the row has what this kind needs."""
    name, given = entry["id"], str(entry.get("kind"))
    kinds = {kind.name.lower(): kind for kind in Kind}
    check_choice(f"{name}.kind", given, kinds)
    needed = {Kind.MEASUREMENT: "tolerance", Kind.FINDING: "why"}.get(kinds[given])
    if needed and needed not in entry:
        raise InputError(f"{name}.{needed}", f"for every {given}", "nothing")
    if kinds[given] is Kind.FINDING and entry.keys() & {"direction", "correction"}:
        raise InputError(f"{name}.rule", "to be the only one: a finding is found or not", "others")
    if "was" in entry and "why" not in entry:
        raise InputError(f"{name}.why", "to say why the rule changed", "nothing")
    return kinds[given]


def _was(claim: Claim, entry: Any) -> Claim:
    name = f"{claim.id}.was"
    if not isinstance(entry, dict) or entry.keys() - {*RULES, "number"}:
        raise InputError(name, f"to be 'new', or to map number, {', '.join(RULES)} to what they were", repr(entry))
    first = replace(claim, kind=Kind.MEASUREMENT, number=entry.get("number", claim.number))
    _check_number(first)
    return replace(first, **{"direction": None, "correction": None, **_rules(entry, name)})


def _check_number(claim: Claim) -> None:
    numbers = find(claim.experiment).numbers
    known = [field.name for field in fields(numbers)]
    quoted = [name.partition(".")[0] for _, name, *_ in Formatter().parse(claim.finding) if name]
    for place, name in (("number", claim.number), *(("finding", name) for name in quoted)):
        if name not in known:
            expected = f"to be a field of {numbers.__module__}.{numbers.__name__}: {', '.join(known)}"
            raise InputError(f"{claim.id}.{place}", expected, repr(name))


def _text(entry: dict[str, Any], key: str) -> str:
    text = entry.get(key)
    if not isinstance(text, str) or not text.strip():
        fix = "Put it in quotes." if isinstance(text, (int, float)) else ""
        raise InputError(f"{entry['id']}.{key}", "to be text", "nothing" if text is None else repr(text), fix)
    return " ".join(text.split())


def _scales(entry: dict[str, Any]) -> tuple[Scale, ...]:
    listed, names = entry.get("scales"), [scale.value for scale in Scale]
    if not isinstance(listed, list) or not listed or any(one not in names for one in listed):
        raise InputError(f"{entry['id']}.scales", f"to be a list of some of {', '.join(names)}", repr(listed))
    return tuple(scale for scale in reversed(Scale) if scale.value in listed)
