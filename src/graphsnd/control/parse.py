"""Where strings become estimators; the only such place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphsnd.control.estimators import Estimator, FreshGraph, Full, Nearest, PerObservation
from graphsnd.errors import InputError
from graphsnd.estimation import AgentSubset, FreshCirculant, FreshMatching


@dataclass(frozen=True)
class Form:
    """One way to write an estimator."""

    example: str
    number: type[int] | type[float] | None  # what follows the colon
    build: Callable[[float], Estimator]


FORMS: dict[str, Form] = {
    "full": Form("full", None, lambda _: Full()),
    "bernoulli": Form("bernoulli:0.1", float, FreshGraph.bernoulli),
    "uniform": Form("uniform:20", int, lambda v: FreshGraph.uniform(int(v))),
    "regular": Form("regular:4", int, lambda v: FreshGraph.regular(int(v))),
    "knn": Form("knn:3", int, lambda v: Nearest(int(v))),
    "matching": Form("matching", None, lambda _: PerObservation(FreshMatching())),
    "circulant": Form("circulant:4", int, lambda v: PerObservation(FreshCirculant(int(v)))),
    "agents": Form("agents:4", int, lambda v: PerObservation(AgentSubset(int(v)))),
}


def parse_estimator(text: str) -> Estimator:
    """Read ``name`` or ``name:number``.

    Raises:
        InputError: With all forms, for anything else.

    Example:
        >>> parse_estimator("bernoulli:0.1").name
        'bernoulli:0.1'
    """
    name, colon, rest = text.strip().lower().partition(":")
    form = FORMS.get(name)
    if form is None or (form.number is None) == bool(colon):
        known = ", ".join(form.example for form in FORMS.values())
        raise InputError("estimator", f"to be one of {known}", repr(text))
    try:
        return form.build(form.number(rest) if form.number else 0.0)
    except InputError:
        raise
    except ValueError:
        raise InputError("estimator", f"with a number as in {form.example}", repr(text)) from None
