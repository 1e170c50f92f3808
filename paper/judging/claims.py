"""The claims of the paper, read from ``claims.yaml``: what it says, how that is measured, and when it counts as shown.

The rules were written down before the experiments were run; they come from the paper's values and from sampling error.
The head of ``claims.yaml`` says what was known by then.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graphsnd.errors import InputError
from paper.experiment import Scale
from paper.judging.rules import Rule
from paper.registry import NAMES, find

CLAIMS = Path(__file__).parents[1] / "claims.yaml"
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TEXTS = ("id", "place", "says", "paper", "experiment", "number", "measured", "note")
RULES = ("rule", "direction", "correction")
FIELDS = frozenset({*TEXTS, *RULES, "scales", "finding"})


class MissingYamlError(InputError):
    """PyYAML is not installed; results can be made here and judged elsewhere."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper that a number can decide."""

    id: str  # kebab-case, unique
    place: str  # in the paper
    says: str  # one sentence, in our words
    paper: str  # its value, as the paper has it
    experiment: str  # that measures it
    number: str  # a field of that experiment's numbers
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
        text: YAML; that of ``claims.yaml`` when None.

    Raises:
        InputError: Naming the claim and the field that is not as it should be.
        MissingYamlError: Without PyYAML.
    """
    yaml = _import_yaml()
    if text is None:
        text = CLAIMS.read_text(encoding="utf-8")
    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError("claims.yaml", "to be YAML", " ".join(str(error).split())) from None
    if not isinstance(entries, list) or not entries:
        raise InputError("claims.yaml", "to be a list of claims", type(entries).__name__)
    claims = tuple(_claim(entry, at) for at, entry in enumerate(entries, 1))
    _check_unique(claims)
    return claims


def _import_yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError:
        fix = "Install it with: pip install pyyaml"
        raise MissingYamlError("claims.yaml", "to be read by PyYAML", "no such package", fix) from None


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
    _check_number(texts)
    rules = {key: Rule.parse(entry[key], f"{name}.{key}") for key in RULES if key in entry}
    if "rule" not in rules:
        raise InputError(f"{name}.rule", "to say when the claim is confirmed", "nothing")
    finding = _text(entry, "finding") if "finding" in entry else ""
    fields: dict[str, Any] = {**texts, **rules}
    return Claim(**fields, scales=_scales(entry), finding=finding)


def _check_number(texts: dict[str, str]) -> None:
    numbers = find(texts["experiment"]).numbers
    known = [field.name for field in fields(numbers)]
    if texts["number"] not in known:
        expected = f"to be a field of {numbers.__module__}.{numbers.__name__}: {', '.join(known)}"
        raise InputError(f"{texts['id']}.number", expected, repr(texts["number"]))


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


def _check_unique(claims: Sequence[Claim]) -> None:
    for claim, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            raise InputError(f"{claim}.id", "to be unique", f"{count} claims with it")
