"""What every experiment of the paper is: a run at some scale, and a figure of what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paper.cells import Cells


class Scale(Enum):
    """How much is run."""

    SMOKE = "smoke"  # seconds: every line of code, no conclusion
    LAPTOP = "laptop"  # all experiments in half an hour on two cores
    PAPER = "paper"  # the paper's protocol


@dataclass(frozen=True)
class Number:
    """A measured number that claims are held against.

    Args:
        value: What was measured.
        low: Lower end of its interval or range, None where there is none.
        high: Upper end.
        unit: ``"s"``, ``"%"``, ``"x"``, or nothing.
        kind: What the two ends are, such as ``"95% t interval, 9 pairs"`` or ``"range of 12 cells"``.
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a run gives back.

    Args:
        data: Ready for JSON; all that the figure needs.
        numbers: By the names that ``claims.yaml`` refers to.
        seeds: That were used.
        sources: Committed results that were read in place of a run, such as ``results/control/n50``.
    """

    data: dict[str, Any]
    numbers: dict[str, Number]
    seeds: Sequence[int] = ()
    sources: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Args:
        name: As the command line and the folder in ``results/`` have it.
        title: For headings.
        run: Runs it, cell by cell.
        figure: Draws what :attr:`Outcome.data` holds, after it has been through JSON.
    """

    name: str
    title: str
    run: Callable[[Scale, Cells], Outcome]
    figure: Callable[[dict[str, Any]], Figure]
