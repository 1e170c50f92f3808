"""Rules and verdicts change in the open: the first ones are kept, and what became of them is a committed table."""

from __future__ import annotations

import pytest

from paper.judging.changes import FIRST, SAME, changes_text
from paper.judging.claims import RULES, Claim, Kind, load_claims
from paper.judging.verdicts import judge_all
from paper.published import read_published
from paper.store import RESULTS


def describe(claim: Claim) -> dict[str, str]:
    return {"number": claim.number, **{key: str(rule) for key in RULES if (rule := getattr(claim, key))}}


def test_a_rule_is_the_first_one_or_says_what_it_was() -> None:
    first = {claim.id: describe(claim.first) for claim in load_claims() if claim.first}
    assert first == {
        name: {key: rule[key] for key in rule if key not in ("value", "verdict")} for name, rule in FIRST.items()
    }


def test_what_changed_has_a_reason() -> None:
    for claim in load_claims():
        assert bool(claim.why) == (claim.added or claim.was is not None or claim.kind is Kind.FINDING), claim.id
        if claim.was:
            assert describe(claim.was) != describe(claim), claim.id


def test_the_committed_table_is_that_of_the_committed_results() -> None:
    judged = judge_all(load_claims(), RESULTS)
    written = (RESULTS / "rules.md").read_text(encoding="utf-8")
    assert changes_text(judged, RESULTS, read_published()) == written, "python -m paper run --scale paper writes it"


@pytest.mark.parametrize("id", ["dico50-paired-reward", "forwarding-baselines-most", "gpu-speedup-fused"])
def test_both_verdicts_are_in_the_table(id: str) -> None:
    (line,) = [line for line in (RESULTS / "rules.md").read_text().splitlines() if line.startswith(f"| `{id}` | ")][:1]
    assert FIRST[id]["verdict"] in line


def test_a_verdict_that_the_first_rule_gives_too_is_not_explained_by_a_change_of_rules() -> None:
    lines = (RESULTS / "rules.md").read_text(encoding="utf-8").splitlines()
    explained = {line.split("`")[1] for line in lines if f"| {SAME}" in line}
    moved = {one.claim.id: one for one in judge_all(load_claims(), RESULTS) if one.claim.was and one.claim.first}
    first = {one.claim.id: one.verdict for one in judge_all([one.claim.first for one in moved.values()], RESULTS)}
    moved = {name: one for name, one in moved.items() if FIRST[name]["verdict"] != one.verdict.value}
    assert explained & moved.keys() == {name for name, one in moved.items() if first[name] is one.verdict}
    assert explained & moved.keys()
    assert not [line for line in lines if "the number is another" in line], "say why in DATA"
