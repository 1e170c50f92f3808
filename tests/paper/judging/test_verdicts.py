from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper.experiment import Number, Scale
from paper.judging.claims import Kind
from paper.judging.rules import Rule
from paper.judging.verdicts import Verdict, count_kinds, judge, judge_all, judge_number
from paper.runner import Result, run
from tests.paper.fakes import claim, squares


def result(scale: Scale, **numbers: Number) -> Result:
    return Result("recovery", "Squares", scale, {}, (), numbers, {})


@pytest.mark.parametrize(("value", "changes", "verdict"), [
    (9, {}, Verdict.CONFIRMED),
    (8, {}, Verdict.NOT_CONFIRMED),
    (8, {"direction": Rule.parse({"above": 1})}, Verdict.IN_DIRECTION),
    (9, {"direction": Rule.parse({"above": 1})}, Verdict.CONFIRMED),
    (0, {"direction": Rule.parse({"above": 1})}, Verdict.NOT_CONFIRMED),
    (9, {"correction": Rule.parse({"at_least": 2})}, Verdict.CORRECTED),  # asked before the rule
    (9, {"correction": Rule.parse({"at_least": 20})}, Verdict.CONFIRMED),
    (8, {"correction": Rule.parse({"at_least": 20})}, Verdict.NOT_CONFIRMED),
    (8, {"undecided": Rule.parse({"at_least": 8})}, Verdict.UNDECIDED),
    (9, {"undecided": Rule.parse({"at_least": 8})}, Verdict.CONFIRMED),
    (8, {"undecided": Rule.parse({"at_least": 8}), "kind": Kind.FINDING}, Verdict.UNDECIDED),
    (9, {"kind": Kind.FINDING}, Verdict.FOUND),
    (8, {"kind": Kind.FINDING}, Verdict.NOT_FOUND),
    (9, {"kind": Kind.CHECK}, Verdict.CONFIRMED),
])  # fmt: skip
def test_the_order_of_rules(value: float, changes: dict[str, Any], verdict: Verdict) -> None:
    assert judge(claim(**changes), {Scale.LAPTOP: result(Scale.LAPTOP, largest=Number(value))}).verdict is verdict


def test_a_row_tells_its_rule_and_what_decided() -> None:
    results = {Scale.LAPTOP: result(Scale.LAPTOP, largest=Number(8))}
    weaker = Rule.parse({"above": 1})
    assert judge(claim(), results).rules == "rule: exactly 9"
    assert judge(claim(direction=weaker), results).rules == "rule: exactly 9; confirmed in direction: above 1"
    assert judge(claim(correction=weaker), results).rules == "rule: exactly 9; corrected: above 1"
    assert judge(claim(undecided=weaker), results).rules == "rule: exactly 9; undecided: above 1"
    assert judge(claim(), {}).rules == "rule: exactly 9"


def test_the_largest_scale_that_measured_it_decides() -> None:
    results = {
        Scale.SMOKE: result(Scale.SMOKE, largest=Number(1)),
        Scale.LAPTOP: result(Scale.LAPTOP, largest=Number(9)),
        Scale.PAPER: result(Scale.PAPER, other=Number(1)),
    }
    found = judge(claim(), results)
    assert (found.verdict, found.scale, found.number) == (Verdict.CONFIRMED, Scale.LAPTOP, Number(9))
    assert judge(claim(scales=(Scale.SMOKE,)), results).verdict is Verdict.NOT_CONFIRMED
    nothing = judge(claim(scales=(Scale.PAPER,)), results)
    assert (nothing.verdict, nothing.scale, nothing.number, nothing.result) == (Verdict.NOT_MEASURED, None, None, None)


def test_a_folder_of_results(tmp_path: Path) -> None:
    for scale in (Scale.SMOKE, Scale.LAPTOP):
        run(squares(), scale, out=tmp_path, work=tmp_path / "work")
    claims = [claim(), claim("timed", experiment="timing"), claim("four", {"at_most": 4})]
    found = judge_all(claims, tmp_path)
    assert [one.verdict.value for one in found] == ["confirmed", "not measured", "not confirmed"]
    small = judge_all(claims, tmp_path, scales=(Scale.SMOKE,))
    assert [one.verdict.value for one in small] == ["not confirmed", "not measured", "confirmed"]
    there = {Verdict.CONFIRMED: 1, Verdict.NOT_CONFIRMED: 1, Verdict.NOT_MEASURED: 1}
    assert count_kinds(found)[Kind.MEASUREMENT] == dict.fromkeys(Verdict, 0) | there


def test_a_finding_quotes_numbers_of_the_papers_scale() -> None:
    found = claim(finding="{largest.value:.0f}, from {largest.low:.1f} on; {smallest.value:.0%}.", scales=tuple(Scale))
    largest, smallest = Number(9, 8.25, 10), Number(0.5)
    paper = {Scale.PAPER: result(Scale.PAPER, largest=largest, smallest=smallest)}
    assert judge(found, paper).told == "9, from 8.2 on; 50%."
    assert judge(found, {Scale.PAPER: result(Scale.PAPER, largest=largest)}).told == found.note  # smallest is not there
    assert judge(found, {Scale.SMOKE: result(Scale.SMOKE, largest=largest, smallest=smallest)}).told == found.note
    assert judge(found, {}).told == found.note


@pytest.mark.parametrize(("ends", "expected"), [
    ((9.5, 9.9), Verdict.CONFIRMED), ((8.5, 9.9), Verdict.UNDECIDED), ((9.5, 12.0), Verdict.UNDECIDED),
    ((1.0, 99.0), Verdict.UNDECIDED), ((None, None), Verdict.CONFIRMED),
])  # fmt: skip
def test_a_time_whose_noise_spans_a_limit_is_undecided(ends: tuple[Any, Any], expected: Verdict) -> None:
    rules = {"rule": {"between": [9, 10]}, "direction": Rule.parse({"between": [5, 20]})}
    assert judge_number(claim("timed", **rules), Number(9.7, *ends, clock=True)) is expected
    assert judge_number(claim("counted", **rules), Number(9.7, *ends)) is Verdict.CONFIRMED


@pytest.mark.parametrize(("times", "expected"), [
    ([Number(9.5, 9.2, 9.8), Number(10.5, 10.1, 10.9)], Verdict.CONFIRMED),
    ([Number(9.5, 9.2, 9.8), Number(15.0, 14.0, 16.0)], Verdict.IN_DIRECTION),  # apart, each with little noise
    ([Number(9.5, 8.5, 9.8), Number(10.5, 10.1, 10.9)], Verdict.UNDECIDED),
    ([Number(9.5), Number(10.5)], Verdict.CONFIRMED),
])  # fmt: skip
def test_a_range_of_times_is_asked_as_a_whole(times: list[Number], expected: Verdict) -> None:
    rules = {
        "rule": {"interval": {"within": [9, 11]}},
        "direction": Rule.parse({"interval": {"within": [5, 20]}}),
    }
    assert judge_number(claim("timed", **rules), Number.timed_range(times, "sizes")) is expected
