"""The one parser of designs, and the table of what it reads."""

from __future__ import annotations

from graphsnd.arguments import checked
from graphsnd.designs.design import Complete, Design
from graphsnd.designs.drawn import Bernoulli, Nearest, Radius, Regular, Uniform
from graphsnd.designs.relabelled import Agents, Matching, Ring
from graphsnd.errors import InputError

# By the word before the colon; cli/measure.py says what each measures.
FORMS: dict[str, type[Design]] = {
    form.family: form for form in (Complete, Bernoulli, Uniform, Regular, Nearest, Radius, Matching, Ring, Agents)
}


@checked
def parse(text: str, argument: str = "design") -> Design:
    """Return the design that is written ``family`` or ``family:number``; the inverse of ``str(design)``.

    A design of your own graph has no such text: give the object.

    Args:
        text: For example ``bernoulli:0.1``.
        argument: What errors call it, an argument or an option of the command line.

    Raises:
        InputError: With all forms, for anything else.

    Example:
        >>> parse("bernoulli:0.1"), str(parse("matching"))
        (Bernoulli(p=0.1), 'matching')
    """
    family, colon, rest = text.strip().lower().partition(":")
    form = FORMS.get(family)
    if form is None:
        expected = f"to be one of {', '.join(form.example for form in FORMS.values())}"
        raise InputError(argument, expected, repr(text))
    if not colon and form.example == family:
        return form()
    if form.number is None:
        raise InputError(argument, f"to be {family} without a number", repr(text), f"Write {form.example}.")
    try:
        value = form.number(rest)
    except ValueError:
        kind = "an integer" if form.number is int else "a number"
        expected = f"to be {family} with {kind} after the colon"
        raise InputError(argument, expected, f"{rest!r} in {text!r}", f"Write {form.example}.") from None
    try:
        return form(value)  # type: ignore[call-arg]
    except InputError as error:
        raise InputError(argument, f"as in {form.example}", repr(text), str(error)) from None
