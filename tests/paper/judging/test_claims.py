from __future__ import annotations

import re
from collections import Counter
from itertools import combinations_with_replacement
from string import Formatter

from paper.experiment import NAMES, Number, Scale
from paper.judging.claims import Kind, load_claims
from paper.runner import RESULTS, read_results


def test_every_claim_is_whole_and_names_numbers_that_were_measured() -> None:
    claims = load_claims()
    assert {claim.experiment for claim in claims} == set(NAMES)
    assert max(Counter(claim.id for claim in claims).values()) == 1
    measured = {name: read_results(RESULTS, name)[Scale.PAPER].numbers for name in NAMES}
    for claim in claims:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim.id)
        assert claim.id not in {*NAMES, "top"}  # both are places on the page
        assert all((claim.place, claim.says, claim.paper, claim.measured, claim.scales)), claim.id
        assert bool(claim.tolerance) >= (claim.kind is Kind.MEASUREMENT), claim.id
        assert bool(claim.why) == (claim.kind in (Kind.FINDING, Kind.CHECK)), claim.id
        assert not (claim.direction and claim.undecided), claim.id
        assert claim.kind is not Kind.FINDING or not (claim.direction or claim.correction), claim.id
        named = {claim.number, *(name.partition(".")[0] for _, name, *_ in Formatter().parse(claim.finding) if name)}
        assert named <= {*measured[claim.experiment], "loop_time_over_paper"}, claim.id  # that waits for a GPU


def test_a_direction_is_never_stricter_than_its_rule() -> None:
    for claim in load_claims():
        ends = sorted(
            end for rule in (claim.rule, claim.direction) if rule for each in rule.conditions for end in each.ends
        )
        near = sorted(end + step for end in ends for step in (-1e-6, 0.0, 1e-6))
        for low, high in combinations_with_replacement(near, 2):
            for number in (Number(low, low, high), Number(high, low, high)):
                assert not claim.direction or claim.direction.holds(number) or not claim.rule.holds(number), claim.id
