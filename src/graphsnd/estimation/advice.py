"""The result of asking for advice: what to measure, what it costs, and why not the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from graphsnd.designs import Design
from graphsnd.estimation.costs import Cost
from graphsnd.estimation.estimate import finite


@dataclass(frozen=True)
class Alternative:
    """One way to get the number."""

    name: str
    design: Design | None  # None for a graph that only the user can build
    radius: float | None  # relative to SND, holds for every team; None where no bound on the distances is known
    typical: float  # relative to SND, for large samples
    cost: Cost
    met: bool  # whether the radius that decides is within the tolerance
    why: str = ""  # it was chosen, or not


@dataclass(frozen=True, repr=False)
class Advice:
    """A recommended design and the reasons for it.

    Example:
        >>> import graphsnd as gs
        >>> advice = gs.advise(500, 100_000, policy_cost=11_000)
        >>> str(advice.design), advice.call
        ('agents:3', 'gs.measure(behavior, design="agents:3", rel_tol=0.01)')
        >>> [one.name for one in advice.rejected][:2]
        ['complete', 'bernoulli:0.1']
    """

    goal: str  # global, local or proxy
    recommended: Alternative  # what to use
    guarantee: str  # what its interval promises
    rejected: tuple[Alternative, ...]  # other designs, each with the reason
    assumptions: tuple[str, ...]  # what the recommendation rests on
    call: str  # Python that does it, for a behaviour: what all agents would do on all observations
    call_policies: str  # the same for policies, and observations to show them

    @property
    def design(self) -> Design:
        """The recommended design."""
        assert self.recommended.design is not None  # what is recommended can be built
        return self.recommended.design

    @property
    def cost(self) -> Cost:
        """What the recommended design takes."""
        return self.recommended.cost

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; designs as they are written."""
        return asdict(self, dict_factory=_plain)

    def __repr__(self) -> str:
        return f"Advice({self.recommended.name}, goal={self.goal!r}, rejected={[one.name for one in self.rejected]})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import advice_html

        return advice_html(self)

    def __str__(self) -> str:
        lines = [self.recommended.name, f"  guarantee: {self.guarantee}", f"  cost: {spending(self.cost)}"]
        lines += [f"  because {self.recommended.why}"]
        lines += [f"  not {a.name}: {a.why} ({spending(a.cost)})" for a in self.rejected]
        lines += [f"  assuming that {assumption}" for assumption in self.assumptions]
        return "\n".join([*lines, f"  run: {self.call}", f"  or, with policies: {self.call_policies}"])


def spending(cost: Cost) -> str:
    """A cost in words.

    Example:
        >>> spending(Cost(100, 2800, 800, 1.2e7))
        '2,800 distances, 800 policy evaluations, work of 1.2e+07 multiply-adds'
    """
    evaluated = f", {cost.evaluations:,} policy evaluations" if cost.evaluations else ""
    return f"{cost.distances:,} distances{evaluated}, work of {cost.work:.2g} multiply-adds"


def percent(share: float | None) -> str:
    """A relative radius.

    Example:
        >>> percent(0.01), percent(0.0), percent(None), percent(1.234)
        ('1%', 'exact', 'unknown', '123%')
    """
    if share is None:
        return "unknown"
    return "exact" if share == 0 else f"{100 * share:.{2 if share < 1 else 3}g}%"


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Leave designs to their names, and infinite numbers out."""
    return {key: finite(value) for key, value in items if key != "design"}
