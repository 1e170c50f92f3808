"""The committed results give the verdicts that they gave before the reproduction was rearranged."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paper.judging.claims import load_claims
from paper.judging.verdicts import Judged, judge_all
from paper.store import RESULTS

BASELINE = Path(__file__).parents[1] / "baselines" / "verdicts.json"


def describe(one: Judged) -> dict[str, Any]:
    claim, number = one.claim, one.number
    rules = {"rule": claim.rule, "direction": claim.direction, "correction": claim.correction}
    return {
        "verdict": one.verdict.value,
        "number": None if number is None else {end: getattr(number, end) for end in ("value", "low", "high")},
        "scale": one.scale.value if one.scale else None,
        **{name: None if rule is None else asdict(rule) for name, rule in rules.items()},
    }


def test_every_verdict_its_number_and_its_rules_are_unchanged() -> None:
    judged = {one.claim.id: describe(one) for one in judge_all(load_claims(), RESULTS)}
    assert json.loads(json.dumps(judged)) == json.loads(BASELINE.read_text(encoding="utf-8"))
