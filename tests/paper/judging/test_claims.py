from __future__ import annotations

import sys
from itertools import combinations_with_replacement
from typing import Any

import pytest
import yaml

from graphsnd.errors import InputError, MissingExtraError
from paper.experiment import Number, Scale
from paper.judging.claims import load_claims
from paper.registry import NAMES

ENTRY: dict[str, Any] = {
    "id": "zero-error",
    "kind": "measurement",
    "tolerance": "Rounding.",
    "place": "Appendix B",
    "says": "No error\n  at all.",
    "paper": "0",
    "experiment": "recovery",
    "number": "largest_error",
    "measured": "in float64",
    "scales": ["smoke", "paper"],
    "rule": {"at_most": 1.0e-12},
    "direction": {"below": 0.01},
    "note": "Rounding.",
}


def test_a_claim() -> None:
    (claim,) = load_claims(yaml.safe_dump([ENTRY]))
    assert claim.says == "No error at all."
    assert claim.scales == (Scale.PAPER, Scale.SMOKE)  # the largest first
    assert (str(claim.rule), str(claim.direction), claim.correction) == ("at most 1e-12", "below 0.01", None)
    assert claim.finding == ""


@pytest.mark.parametrize(("change", "words"), [
    ({"id": "Zero Error"}, "claim 1.id"),
    ({"id": None}, "claim 1.id"),
    ({"paper": 0}, "zero-error.paper.*quotes"),
    ({"place": None}, "zero-error.place"),
    ({"note": " "}, "zero-error.note"),
    ({"experiment": "recover"}, "zero-error.experiment"),
    ({"number": "smallest_error"}, "zero-error.number.*paper.recovery.Numbers: largest_error"),
    ({"scales": []}, "zero-error.scales"),
    ({"scales": ["huge"]}, "zero-error.scales"),
    ({"scales": "paper"}, "zero-error.scales"),
    ({"rule": None}, "zero-error.rule"),
    ({"rule": {"at_most": "1e-3"}}, "zero-error.rule.at_most"),
    ({"correction": {"over": 1}}, "zero-error.correction"),
    ({"tolerance": 1}, "zero-error.tolerance"),
    ({"finding": 3}, "zero-error.finding"),
    ({"finding": "{smallest_error.value:.0%} of it"}, "zero-error.finding.*paper.recovery.Numbers: largest_error"),
    ({"kind": "claim"}, "zero-error.kind.*theorem, measurement, finding"),
    ({"kind": "finding"}, "zero-error.why"),
    ({"kind": "finding", "why": "Ours."}, "zero-error.rule.*only one"),
    ({"was": {"rule": {"at_most": 1}}}, "zero-error.why"),
    ({"was": {"limit": 1}, "why": "Loose."}, "zero-error.was"),
    ({"was": {"number": "smallest_error", "rule": {"at_most": 1}}, "why": "Loose."}, "zero-error.number"),
    ({"was": {"direction": {"at_most": 1}}, "why": "Loose."}, "zero-error.was.rule"),
])  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_claims(yaml.safe_dump([ENTRY | change]))


def test_fields_that_are_missing() -> None:
    for field in ENTRY.keys() - {"id", "direction", "note"}:
        with pytest.raises(InputError, match=f"zero-error.{field}"):
            load_claims(yaml.safe_dump([{key: value for key, value in ENTRY.items() if key != field}]))


def test_what_a_claim_was() -> None:
    text = {"why": "It was loose.", "was": {"rule": {"at_most": 1}}}
    (loose,) = load_claims(yaml.safe_dump([ENTRY | text]))
    assert loose.was is not None
    assert (str(loose.was.rule), loose.was.direction, loose.first) == ("at most 1", None, loose.was)
    (new,) = load_claims(yaml.safe_dump([ENTRY | text | {"was": "new"}]))
    assert (new.added, new.first) == (True, None)
    (same,) = load_claims(yaml.safe_dump([ENTRY]))
    assert same.first == same


@pytest.mark.parametrize("text", ["[", "a: 1", "- 3", "[]"])
def test_other_files(text: str) -> None:
    with pytest.raises(InputError, match="claim"):
        load_claims(text)


def test_ids_are_unique() -> None:
    with pytest.raises(InputError, match=r"zero-error\.id.*unique"):
        load_claims(yaml.safe_dump([ENTRY, ENTRY]))


def test_without_pyyaml_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match="pip install pyyaml"):
        load_claims("[]")


def test_the_claims_of_the_paper_are_valid_and_use_every_experiment() -> None:
    claims = load_claims()
    assert len(claims) >= 40
    assert {claim.experiment for claim in claims} == set(NAMES)
    assert not {claim.id for claim in claims} & {*NAMES, "top"}  # both are places on the page


def test_a_direction_is_never_stricter_than_its_rule() -> None:
    for claim in load_claims():
        ends = sorted(
            end for rule in (claim.rule, claim.direction) if rule for each in rule.conditions for end in each.ends
        )
        near = sorted(end + step for end in ends for step in (-1e-6, 0.0, 1e-6))
        for low, high in combinations_with_replacement(near, 2):
            for number in (Number(low, low, high), Number(high, low, high)):
                assert not claim.direction or claim.direction.holds(number) or not claim.rule.holds(number), claim.id
