"""The claims of the paper, read from ``claims.yaml``: what it says, how that is measured, and when it counts as shown.

The rules were written down before the experiments were run; they come from the paper's values and from sampling error.
The head of ``claims.yaml`` says what was known by then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from graphsnd.errors import InputError, require
from paper.experiment import Scale
from paper.judging.rules import Rule
from paper.registry import NAMES

KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TEXTS = ("id", "place", "says", "paper", "experiment", "number", "measured", "note")
RULES = ("rule", "direction", "correction")
FIELDS = frozenset({*TEXTS, *RULES, "scales", "finding"})


@dataclass(frozen=True)
class Claim:
    """One statement of the paper that a number can decide."""

    id: str  # kebab-case, unique
    place: str  # in the paper
    says: str  # one sentence, in our words
    paper: str  # its value, as the paper has it
    experiment: str  # that measures it
    number: str  # among the numbers of that experiment
    measured: str  # how
    scales: tuple[Scale, ...]  # at which the rule may be applied, the largest first
    rule: Rule  # confirmed when it holds
    note: str  # what the comparison means
    direction: Rule | None = None  # confirmed in direction when it holds
    correction: Rule | None = None  # corrected when it holds; asked before the rule
    finding: str = ""  # what came out, added after measuring


def load_claims(text: str | None = None) -> tuple[Claim, ...]:
    """Read the claims.

    Args:
        text: YAML; that of ``claims.yaml`` in this package when None.

    Raises:
        InputError: Naming the claim and the field that is not as it should be.
        MissingExtraError: Without PyYAML.
    """
    yaml = require("yaml", "reproduce")
    if text is None:
        text = resources.files("paper").joinpath("claims.yaml").read_text(encoding="utf-8")
    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError("claims.yaml", "to be YAML", " ".join(str(error).split())) from None
    if not isinstance(entries, list) or not entries:
        raise InputError("claims.yaml", "to be a list of claims", type(entries).__name__)
    claims = tuple(_claim(entry, at) for at, entry in enumerate(entries, 1))
    _check_unique(claims)
    return claims


def _claim(entry: Any, at: int) -> Claim:
    name = f"claim {at}"
    if not isinstance(entry, dict):
        raise InputError(name, "to map fields to values", repr(entry))
    if not isinstance(entry.get("id"), str) or not KEBAB.fullmatch(entry["id"]):
        raise InputError(f"{name}.id", "in kebab-case, such as recovery-zero-error", repr(entry.get("id")))
    name = entry["id"]
    unknown = sorted(map(str, entry.keys() - FIELDS))
    if unknown:
        raise InputError(f"{name}.{unknown[0]}", f"to be one of {', '.join(sorted(FIELDS))}", "another field")
    texts = {key: _text(entry, key) for key in TEXTS}
    if texts["experiment"] not in NAMES:
        raise InputError(f"{name}.experiment", f"to be one of {', '.join(NAMES)}", repr(texts["experiment"]))
    rules = {key: Rule.parse(entry[key], f"{name}.{key}") for key in RULES if key in entry}
    if "rule" not in rules:
        raise InputError(f"{name}.rule", "to say when the claim is confirmed", "nothing")
    finding = _text(entry, "finding") if "finding" in entry else ""
    fields: dict[str, Any] = {**texts, **rules}
    return Claim(**fields, scales=_scales(entry), finding=finding)


def _text(entry: dict[str, Any], key: str) -> str:
    found = entry.get(key)
    if not isinstance(found, str) or not found.strip():
        fix = "Put it in quotes." if isinstance(found, (int, float)) else ""
        raise InputError(f"{entry['id']}.{key}", "to be text", "nothing" if found is None else repr(found), fix)
    return " ".join(found.split())


def _scales(entry: dict[str, Any]) -> tuple[Scale, ...]:
    found = entry.get("scales")
    names = [scale.value for scale in Scale]
    if not isinstance(found, list) or not found or any(one not in names for one in found):
        raise InputError(f"{entry['id']}.scales", f"to be a list of some of {', '.join(names)}", repr(found))
    return tuple(scale for scale in reversed(Scale) if scale.value in found)


def _check_unique(claims: Sequence[Claim]) -> None:
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise InputError(f"{claim.id}.id", "to be unique", "a second claim with it")
        seen.add(claim.id)
