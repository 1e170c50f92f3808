"""Compare the claims with the results: a verdict for each claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from paper.experiment import Number, Scale
from paper.judging.claims import Claim, Kind
from paper.runner import Result, read_results


class Verdict(Enum):
    """The outcome of comparing a claim with a measurement."""

    CONFIRMED = "confirmed"
    IN_DIRECTION = "confirmed in direction"
    CORRECTED = "corrected"
    NOT_CONFIRMED = "not confirmed"
    FOUND = "found"  # for findings only, like the next one
    NOT_FOUND = "not found"
    UNDECIDED = "undecided"  # the noise of a time spans a limit, or an interval leaves both outcomes open
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, and what decided it."""

    claim: Claim
    verdict: Verdict
    number: Number | None = None  # None when nothing was measured, as below
    result: Result | None = None

    @property
    def scale(self) -> Scale | None:
        """The scale that decided it."""
        return self.result.scale if self.result else None

    @property
    def rules(self) -> str:
        """The rule, and the rule that decided if it was a different one."""
        others = {Verdict.IN_DIRECTION: self.claim.direction, Verdict.CORRECTED: self.claim.correction}
        other = (others | {Verdict.UNDECIDED: self.claim.undecided}).get(self.verdict)
        return f"rule: {self.claim.rule}" + (f"; {self.verdict.value}: {other}" if other else "")

    @property
    def told(self) -> str:
        """The finding at the paper's scale; at other scales the meaning of the comparison."""
        if self.claim.finding and self.result and self.scale is Scale.PAPER:
            with suppress(KeyError):  # the finding may quote a number that this run lacks
                return self.claim.finding.format(**self.result.numbers)
        return self.claim.note or self.claim.tolerance


def judge(claim: Claim, results: Mapping[Scale, Result]) -> Judged:
    """Compare one claim with the results of its experiment.

    The largest scale decides at which the rule may be applied and the number was measured. A correction is tested
    first: if a statement is about the wrong quantity, it does not matter that its number agrees.

    Args:
        claim: The claim.
        results: Results of its experiment, by scale.

    Raises:
        InputError: When a rule is about an interval and the number has none.
    """
    for scale in claim.scales:
        if scale in results and claim.number in results[scale].numbers:
            number = results[scale].numbers[claim.number]
            return Judged(claim, judge_number(claim, number), number, results[scale])
    return Judged(claim, Verdict.NOT_MEASURED)


def judge_all(claims: Iterable[Claim], folder: Path, *, scales: Sequence[Scale] = tuple(Scale)) -> list[Judged]:
    """Compare claims with a folder of results.

    Args:
        claims: Claims, as from :func:`~paper.judging.claims.load_claims`.
        folder: Folder of results.
        scales: Scales to use, by default all; the largest one that was run decides.
    """
    claims = list(claims)
    results: dict[str, dict[Scale, Result]] = {}
    for name in {claim.experiment for claim in claims}:
        results[name] = {scale: one for scale, one in read_results(folder, name).items() if scale in scales}
    return [judge(claim, results[claim.experiment]) for claim in claims]


def count_kinds(judged: Iterable[Judged]) -> dict[Kind, Counter[Verdict]]:
    """Count the verdicts of each kind of row, in the order of the verdicts."""
    counted = {kind: Counter(dict.fromkeys(Verdict, 0)) for kind in Kind}
    for one in judged:
        counted[one.claim.kind][one.verdict] += 1
    return counted


def judge_number(claim: Claim, number: Number) -> Verdict:
    """Return what a number says about a claim.

    A time is tested at both ends of its interval too, which allow for the noise of the machine. If the ends disagree,
    the verdict is undecided. A range of times is tested with all times at their lower ends and with all at their upper.
    """
    if number.clock and number.low is not None and number.high is not None:
        points = [Number(end, end, end) for end in (number.value, number.low, number.high)]
        readings = (replace(number, clock=False), *number.ends) if number.ends else points
        verdicts = {judge_number(claim, reading) for reading in readings}
        return verdicts.pop() if len(verdicts) == 1 else Verdict.UNDECIDED
    ours = claim.kind is Kind.FINDING
    asked = (
        (claim.correction, Verdict.CORRECTED),
        (claim.rule, Verdict.FOUND if ours else Verdict.CONFIRMED),
        (claim.undecided, Verdict.UNDECIDED),
        (claim.direction, Verdict.IN_DIRECTION),
    )
    held = (verdict for rule, verdict in asked if rule is not None and rule.holds(number))
    return next(held, Verdict.NOT_FOUND if ours else Verdict.NOT_CONFIRMED)
