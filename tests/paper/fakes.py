"""An experiment of two cells, and claims about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from graphsnd.plots.style import new_figure
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.judging.claims import Claim, Kind
from paper.judging.rules import Rule
from paper.runner import Cells

SIZES = {Scale.SMOKE: (2,), Scale.LAPTOP: (2, 3), Scale.PAPER: (2, 3, 4)}


@dataclass(frozen=True)
class Square:
    n: int
    square: int


@dataclass(frozen=True)
class Data:
    rows: tuple[Square, ...]


def draw(data: Data) -> Figure:
    figure = new_figure(4, 2)
    figure.subplots().plot([row.n for row in data.rows], [row.square for row in data.rows])
    return figure


def squares(
    name: str = "recovery", *, made: list[int] | None = None, before: Callable[[int], None] = lambda n: None
) -> Experiment:
    """Squares of small numbers; ``made`` collects those that were computed, ``before`` may interrupt."""

    def cell(n: int) -> Square:
        before(n)
        if made is not None:
            made.append(n)
        return Square(n, n * n)

    def run(scale: Scale, cells: Cells) -> Outcome:
        rows = tuple(cells.get(f"n={n}", {"n": n}, partial(cell, n), Square) for n in SIZES[scale])
        largest = max(row.square for row in rows)
        return Outcome(Data(rows), {"largest": Number.around(largest, 1, "range of <cells>", unit="x")}, (0, 1))

    return Experiment(name, f"Squares in {name}", run, draw, Data)


def claim(id: str = "nine", rule: dict[str, Any] | None = None, **changes: Any) -> Claim:
    """The largest square is nine."""
    fields: dict[str, Any] = {
        "kind": Kind.MEASUREMENT,
        "place": "Section 1",
        "says": "Three squared is nine.",
        "paper": "9",
        "experiment": "recovery",
        "number": "largest",
        "measured": "multiplying",
        "scales": (Scale.PAPER, Scale.LAPTOP, Scale.SMOKE),
        "note": "Arithmetic.",
    }
    return Claim(id=id, rule=Rule.parse(rule or {"between": [9, 9]}), **fields | changes)
