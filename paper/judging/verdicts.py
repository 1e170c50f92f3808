"""Claims against results: a verdict for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from graphsnd.errors import InputError
from paper.experiment import Number, Scale
from paper.judging.claims import Claim
from paper.store import Result, read_results


class Verdict(Enum):
    """What measurement says about a claim."""

    CONFIRMED = "confirmed"
    IN_DIRECTION = "confirmed in direction"
    CORRECTED = "corrected"
    NOT_CONFIRMED = "not confirmed"
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
        """At which it was decided."""
        return self.result.scale if self.result else None


def judge(claim: Claim, results: Mapping[Scale, Result]) -> Judged:
    """Hold one claim against the results of its experiment.

    The largest scale at which the rule may be applied and the number was measured decides. A correction is asked
    first, because where a statement is about the wrong thing it does not matter that its number is met.

    Args:
        claim: The claim.
        results: Of its experiment, by scale.

    Raises:
        InputError: When a rule is about an interval and the number has none.
    """
    for scale in claim.scales:
        if scale in results and claim.number in results[scale].numbers:
            number = results[scale].numbers[claim.number]
            return Judged(claim, _verdict(claim, number), number, results[scale])
    return Judged(claim, Verdict.NOT_MEASURED)


def judge_all(claims: Iterable[Claim], folder: Path, *, scales: Sequence[Scale] = tuple(Scale)) -> list[Judged]:
    """Hold claims against a folder of results.

    Args:
        claims: See :func:`~paper.judging.claims.load_claims`.
        folder: Of results.
        scales: That are looked at; all of them unless told, and then the largest that was run decides.
    """
    claims = list(claims)
    found = {name: read_results(folder, name) for name in dict.fromkeys(claim.experiment for claim in claims)}
    seen = {name: {s: result for s, result in results.items() if s in scales} for name, results in found.items()}
    return [judge(claim, seen[claim.experiment]) for claim in claims]


def counts(judged: Iterable[Judged]) -> dict[Verdict, int]:
    """How many claims have each verdict.

    Example:
        >>> counts([])[Verdict.CONFIRMED]
        0
    """
    found = [one.verdict for one in judged]
    return {verdict: found.count(verdict) for verdict in Verdict}


def _verdict(claim: Claim, number: Number) -> Verdict:
    asked = (
        (claim.correction, Verdict.CORRECTED),
        (claim.rule, Verdict.CONFIRMED),
        (claim.direction, Verdict.IN_DIRECTION),
    )
    try:
        held = (verdict for rule, verdict in asked if rule is not None and rule.holds(number))
        return next(held, Verdict.NOT_CONFIRMED)
    except InputError as error:
        raise InputError(f"{claim.experiment}.{claim.number}", f"to suit the claim {claim.id}", str(error)) from None
