"""Where strings become graphs and distances; the only such place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import DISTANCES, Distance
from graphsnd.errors import InputError
from graphsnd.graphs import Graph


@dataclass(frozen=True)
class Form:
    """One way to write a graph."""

    example: str
    meaning: str
    number: type[int] | type[float] | None  # what follows the colon
    build: Callable[[int, Tensor | None, float, int], Graph | None]  # agents, positions, number, seed
    positions: bool = False  # whether it needs to know where the agents are


def _at(positions: Tensor | None) -> Tensor:
    assert positions is not None  # GraphSpec.build has checked
    return positions


FORMS: dict[str, Form] = {
    "complete": Form("complete", "all pairs, SND itself", None, lambda _n, _x, _v, _s: None),
    "bernoulli": Form(
        "bernoulli:0.1", "every pair with probability 0.1", float, lambda n, _x, p, s: graphs.bernoulli(n, p, seed=s)
    ),
    "uniform": Form("uniform:500", "500 pairs", int, lambda n, _x, m, s: graphs.uniform(n, int(m), seed=s)),
    "regular": Form(
        "regular:8", "8 random partners each", int, lambda n, _x, d, s: graphs.random_regular(n, int(d), seed=s)
    ),
    "knn": Form(
        "knn:5", "the 5 nearest in `positions`", int, lambda _n, x, k, _s: graphs.knn(_at(x), int(k)), positions=True
    ),
    "radius": Form(
        "radius:0.5", "all within 0.5 in `positions`", float, lambda _n, x, r, _s: graphs.radius(_at(x), r), True
    ),
}


@dataclass(frozen=True)
class GraphSpec:
    """A graph that is described but not yet built, because the number of agents is in the file."""

    text: str
    form: Form
    number: float

    def build(self, agents: int, positions: Tensor | None, seed: int) -> Graph | None:
        """Build it; None stands for all pairs, whose list would be longer than the measurement needs.

        Args:
            agents: Number of agents.
            positions: ``[agents, f]``, or None when the file has none.
            seed: For the random families.

        Raises:
            InputError: For missing positions, and whatever the builder does not accept.
        """
        if self.form.positions:
            if positions is None:
                fix = "Add the key with shape (agents, f), or use a graph that needs none, such as regular:8."
                raise InputError("positions", f"in the file for the graph {self.text}", "no such key", fix)
            if positions.dim() != 2 or len(positions) != agents:
                shape = tuple(positions.shape)
                raise InputError("positions", f"with shape ({agents}, f), a row for each agent", f"shape {shape}")
        return self.form.build(agents, positions, self.number, seed)


def parse_graph(text: str) -> GraphSpec:
    """Read ``family`` or ``family:number``.

    Raises:
        InputError: With all forms, for anything else.

    Example:
        >>> parse_graph("bernoulli:0.1").number
        0.1
    """
    name, colon, rest = text.strip().lower().partition(":")
    form = FORMS.get(name)
    known = ", ".join(form.example for form in FORMS.values())
    if form is None:
        raise InputError("--graph", f"to be one of {known}", repr(text))
    if form.number is None:
        if colon:
            raise InputError("--graph", f"{name} without a number", repr(text), f"Write {form.example}.")
        return GraphSpec(name, form, 0.0)
    try:
        return GraphSpec(f"{name}:{rest}", form, form.number(rest))
    except ValueError:
        kind = "an integer" if form.number is int else "a number"
        expected = f"{name} with {kind} after the colon"
        raise InputError("--graph", expected, repr(text), f"Write {form.example}.") from None


def parse_distance(text: str | None) -> Distance | None:
    """Find a distance by its name; None stays None, the default of the behaviour.

    Raises:
        InputError: With all names, for anything else.

    Example:
        >>> parse_distance("hellinger")
        Hellinger()
    """
    if text is None:
        return None
    if text.lower() not in DISTANCES:
        raise InputError("--distance", f"to be one of {', '.join(DISTANCES)}", repr(text))
    return DISTANCES[text.lower()]
