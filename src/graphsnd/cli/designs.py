"""Where strings become designs and budgets; the only such place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from graphsnd.errors import InputError
from graphsnd.estimation import (
    AgentSubset,
    AllPairs,
    Budget,
    Design,
    FixedGraph,
    FreshCirculant,
    FreshMatching,
    ObservationSubset,
    SortedProjections,
    Weighting,
)


@dataclass(frozen=True)
class Form:
    """One way to write a design."""

    example: str
    meaning: str
    number: type[int] | type[float] | None  # what follows the colon
    build: Callable[[float], Design]


FORMS: dict[str, Form] = {
    "all": Form("all", "every pair", None, lambda _: AllPairs()),
    "matching": Form("matching", "agents in random pairs", None, lambda _: FreshMatching()),
    "pairs": Form("pairs:20", "20 random disjoint pairs", int, lambda v: FreshMatching(int(v))),
    "circulant": Form("circulant:8", "8 partners on a random ring", int, lambda v: FreshCirculant(int(v))),
    "agents": Form("agents:8", "all pairs of 8 random agents", int, lambda v: AgentSubset(int(v))),
    "projections": Form("projections:8", "all pairs by sorting", int, lambda v: SortedProjections(int(v))),
    "bernoulli": Form("bernoulli:0.1", "one Bernoulli graph for all", float, lambda v: FixedGraph.bernoulli(v)),
    "ht": Form(
        "ht:0.1", "the same, Horvitz-Thompson", float, lambda v: FixedGraph.bernoulli(v, Weighting.HORVITZ_THOMPSON)
    ),
    "uniform": Form("uniform:500", "one graph of 500 pairs", int, lambda v: FixedGraph.uniform(int(v))),
    "regular": Form("regular:8", "one random regular graph", int, lambda v: FixedGraph.regular(int(v))),
}


def parse_design(text: str | None) -> Design | None:
    """Read ``name``, ``name:number``, and either with ``@observations``; None stays None.

    Raises:
        InputError: With all forms, for anything else.

    Example:
        >>> parse_design("agents:8@1000").name
        '8 random agents at 1,000 random observations'
    """
    if text is None:
        return None
    body, at, count = text.strip().lower().partition("@")
    name, colon, rest = body.partition(":")
    form = FORMS.get(name)
    if form is None or (form.number is None) == bool(colon):
        known = ", ".join(form.example for form in FORMS.values())
        raise InputError("--design", f"to be one of {known}, and @1000 for 1000 observations", repr(text))
    try:
        design = form.build(form.number(rest) if form.number else 0.0)
        return ObservationSubset(int(count), design) if at else design
    except InputError:
        raise
    except ValueError:
        raise InputError("--design", f"with numbers as in {form.example}@1000", repr(text)) from None


def parse_budget(text: str | None) -> Budget | None:
    """Read ``1e6`` (distances), ``1e6e`` (policy evaluations) or ``5s`` (seconds); None stays None.

    Example:
        >>> parse_budget("2.5s")
        Budget(distances=None, evaluations=None, seconds=2.5)
    """
    if text is None:
        return None
    body = text.strip().lower()
    kinds = {"s": "seconds", "e": "evaluations"}
    kind = kinds.get(body[-1:], "distances")
    try:
        amount = float(body[:-1] if body[-1:] in kinds else body)
        if not 0 < amount < math.inf:
            raise ValueError
    except ValueError:
        fix = "Write 1e6 for a million distances, 1e6e for policy evaluations, 5s for seconds."
        raise InputError("--budget", "to be a positive number, alone or with s or e", repr(text), fix) from None
    return Budget(seconds=amount) if kind == "seconds" else Budget(**{kind: int(amount)})
