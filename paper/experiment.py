"""The parts of every experiment of the paper: a run at some scale, typed data, its numbers, and a figure."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from graphsnd.errors import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphsnd.rl import Task
    from paper.runner import Cells

Z95 = 1.96  # half a 95% interval in standard errors
# The paper's experiments in its order, then ours.
NAMES = (
    "recovery", "unbiasedness", "concentration", "training", "timing", "construction", "expanders", "theory", "mpe",
    "dico-10", "dico-50", "designs",
)  # fmt: skip
PICKED = {max: "largest", min: "smallest", statistics.fmean: "mean", statistics.median: "median"}


class Scale(str, Enum):
    """The size of a run."""

    SMOKE = "smoke"  # seconds: every line of code, no conclusion
    LAPTOP = "laptop"  # all experiments in half an hour on two cores
    PAPER = "paper"  # the paper's protocol


@dataclass(frozen=True)
class Number:
    """A measured number that a claim is compared with."""

    value: float
    low: float | None = None  # lower end of its interval or range, None where there is none
    high: float | None = None  # upper end
    unit: str = ""  # "s", "%", "x", or nothing
    kind: str = ""  # meaning of the two ends: "95% t interval, 9 pairs", "largest, range of 12 cells"
    clock: bool = False  # whether it was timed; the two ends then allow for the noise of the machine
    # For a range of times: the range of all lower ends of their intervals, and the range of all upper ends.
    ends: tuple[Number, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Convert counts and NumPy scalars to floats, because JSON cannot store NumPy scalars."""
        for name in ("value", "low", "high"):
            end = getattr(self, name)
            object.__setattr__(self, name, None if end is None else float(end))

    @classmethod
    def range(
        cls, values: Iterable[float], what: str = "cells", *, pick: Callable[[Any], float] = max, unit: str = ""
    ) -> Number:
        """Return one of several values, or their mean or median, with their range.

        Args:
            values: At least one.
            what: Name of what the values are taken over, such as ``"seeds"``.
            pick: ``max``, ``min``, ``statistics.fmean`` or ``statistics.median``.
            unit: Unit of all values.

        Example:
            >>> Number.range([1.0, 3.0, 2.0], "seeds")
            Number(value=3.0, low=1.0, high=3.0, unit='', kind='largest, range of 3 seeds', clock=False)
        """
        kept = [float(value) for value in values]
        kind = f"{PICKED[pick]}, range of {len(kept)} {what}" if len(kept) > 1 else "one value"
        return cls(pick(kept), min(kept), max(kept), unit, kind)

    @classmethod
    def timed(cls, numbers: Iterable[Number], what: str, *, pick: Callable[[Any], float]) -> Number:
        """Return one of several timed numbers, or their mean or median, with the same of both ends.

        Example:
            >>> Number.timed([Number(1.0, 0.9, 1.2, "x"), Number(1.1, 0.8, 1.4, "x")], "steps", pick=max)
            Number(value=1.1, low=0.9, high=1.4, unit='x', kind='largest of 2 steps, and of both ends', clock=True)
        """
        kept = list(numbers)
        value, low, high = map(pick, _split(kept))
        kind = f"{PICKED[pick]} of {len(kept)} {what}, and of both ends"
        return cls(value, low, high, kept[0].unit, kind, clock=True)

    @classmethod
    def timed_range(cls, numbers: Iterable[Number], what: str, *, pick: Callable[[Any], float] = max) -> Number:
        """Return :meth:`range` of several timed numbers, and the same of both ends.

        Example:
            >>> number = Number.timed_range([Number(1.0, 0.9, 1.2), Number(3.0, 2.8, 3.1)], "sizes")
            >>> number.value, number.low, number.high, number.kind
            (3.0, 1.0, 3.0, 'largest, range of 2 sizes; intervals from 0.9 to 3.1')
            >>> [(end.low, end.high) for end in number.ends]
            [(0.9, 2.8), (1.2, 3.1)]
        """
        kept = list(numbers)
        number, *ends = (cls.range(each, what, pick=pick, unit=kept[0].unit) for each in _split(kept))
        kind = f"{number.kind}; intervals from {ends[0].low:.4g} to {ends[1].high:.4g}"
        return replace(number, kind=kind, clock=True, ends=tuple(ends))

    @classmethod
    def around(cls, value: float, half: float, kind: str, *, unit: str = "") -> Number:
        """Return a value in the middle of its interval.

        Example:
            >>> Number.around(1.0, 0.25, "95% interval")
            Number(value=1.0, low=0.75, high=1.25, unit='', kind='95% interval', clock=False)
        """
        return cls(value, value - half, value + half, unit, kind)


def _split(numbers: Sequence[Number]) -> tuple[list[float], list[float], list[float]]:
    """Return values, lower ends and upper ends; a number without an interval is its own ends."""
    lows = [one.value if one.low is None else one.low for one in numbers]
    return [one.value for one in numbers], lows, [one.value if one.high is None else one.high for one in numbers]


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    data: Any  # the figure's data, a dataclass
    numbers: Mapping[str, Number | None]  # by the names of claims.yaml; None or missing if this scale cannot tell
    seeds: Sequence[int] = ()  # seeds that were used
    sources: Sequence[str] = ()  # committed results that were read in place of a run, such as results/control/n50


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Args:
        name: Name for the command line, and of the folder in ``results/``.
        title: Text for headings.
        run: Function that runs it, cell by cell.
        figure: Function that draws the data of a run.
        data: Dataclass of the data, as :func:`~paper.rows.decode` reads it.
        stacks: Trainings whose logs it reads at paper scale, by their folders in ``results/``.
        on_gpu: Data fields that only a machine with a GPU can fill; other machines keep the last result's.
    """

    name: str
    title: str
    run: Callable[[Scale, Cells], Outcome]
    figure: Callable[[Any], Figure]
    data: type
    stacks: Mapping[str, Task] = field(default_factory=dict)
    on_gpu: Sequence[str] = ()


def find(name: str) -> Experiment:
    """Return one experiment; this imports its module.

    Args:
        name: One of :data:`NAMES`.

    Raises:
        InputError: For an unknown name.
    """
    check_choice("name", name, NAMES)
    experiment: Experiment = importlib.import_module(f"paper.{name.replace('-', '_')}").EXPERIMENT
    return experiment
