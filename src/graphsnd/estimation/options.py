"""What a design would cost and guarantee in a team that has not been measured yet."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphsnd import bounds
from graphsnd.designs import (
    Agents,
    Bernoulli,
    Complete,
    Design,
    GraphDesign,
    Matching,
    Regular,
    RelabelledDesign,
    Ring,
    Uniform,
)
from graphsnd.estimation.advice import Alternative
from graphsnd.estimation.assumptions import Prospect, pilot_draws
from graphsnd.estimation.costs import Cost
from graphsnd.estimation.forecast import NOW, SIZES, Tolerance, forecast
from graphsnd.estimation.intervals import quantile
from graphsnd.estimation.on_graph import LARGE
from graphsnd.estimation.sample import variance

LARGEST = 2000  # agents beyond which templates on the whole team are not considered: a few agents always do better
SMALLEST = 8  # agents below which a graph leaves out too little to be worth drawing
TENTH = 0.1  # of the pairs: what is shown of a graph that cannot reach the tolerance, and the paper's own choice


@dataclass(frozen=True, eq=False)
class Question(Prospect):
    """A team, the tolerance, and whether it has to be guaranteed."""

    tolerance: Tolerance
    confidence: float
    guaranteed: bool

    @property
    def n(self) -> int:
        """Number of agents."""
        return self.source.agents

    @property
    def pairs(self) -> int:
        """Number of pairs of agents."""
        return math.comb(self.n, 2)

    @property
    def width(self) -> float:
        """The half-width to reach."""
        return self.tolerance.width(self.value)

    def relative(self, radius: float) -> float:
        """A radius in units of SND; of identical agents, as it is."""
        return radius / (self.value or 1.0)

    def cost(self, design: Design, draws: int) -> Cost:
        """Return what a design takes on that many observations."""
        certified = self.d_max is not None and (self.guaranteed or isinstance(design, RelabelledDesign))
        return Cost.of(self.source, design, draws, bounded=certified and not self.source.policy_cost)


def everything(question: Question) -> Alternative:
    """Return all pairs at all observations."""
    cost = question.cost(Complete(), question.source.observations)
    return Alternative("complete", Complete(), 0.0, 0.0, cost, True, "")


def sampled(question: Question) -> list[Alternative]:
    """Return all designs that estimate SND from some pairs."""
    options = [bernoulli(question), uniform(question), regular(question)] if question.n >= SMALLEST else []
    if 3 < question.n <= LARGEST:
        options += [redrawn(question, Matching()), redrawn(question, Ring(4))]
    return [*options, best_subset(question)]


def redrawn(question: Question, design: RelabelledDesign) -> Alternative:
    """Return redrawn pairs at the observations that the tolerance takes, or at all if it takes too many."""
    observations, delta = question.source.observations, NOW * (1 - question.confidence)
    bound = question.d_max if question.guaranteed else None
    ahead = forecast(question.source, question.pilot, question.measured, design)
    enough = ahead.draws(question.tolerance, bound, delta)
    met, draws = enough is not None, enough or observations
    sure = None if question.d_max is None else ahead.radius(draws, question.d_max, delta)
    typical = ahead.radius(draws, None, delta)
    cost = question.cost(design, draws + pilot_draws(observations))
    guarantee = None if sure is None else question.relative(sure)
    return Alternative(str(design), design, guarantee, question.relative(typical), cost, met, "")


def best_subset(question: Question) -> Alternative:
    """Return the number of random agents that takes the least work."""
    # Not best_size(), which a measurement asks after its pilot: here the pilot is still to be paid for.
    subsets = [redrawn(question, Agents(size)) for size in SIZES if size <= question.n]
    return min(subsets, key=lambda one: (not one.met, one.cost.work))


def bernoulli(question: Question) -> Alternative:
    """Return the paper's own choice, a tenth of the pairs."""
    return _kept(question, Bernoulli(TENTH), _simple(question))


def uniform(question: Question) -> Alternative:
    """Return the fewest random pairs that reach the tolerance."""
    reach = _simple(question)
    edges = _fewest(range(1, question.pairs), reach, question)
    edges = max(1, round(TENTH * question.pairs)) if edges is None else edges
    return _kept(question, Uniform(edges), reach)


def regular(question: Question) -> Alternative:
    """Return the smallest degree that reaches the tolerance, at least the paper's log2 n."""
    n, reach = question.n, _regular(question)
    least = max(1, min(math.ceil(math.log2(n)), n - 2))
    degrees = range(least + least * n % 2, n - 1, 1 + n % 2) or range(n - 1, n)
    edges = _fewest([n * d // 2 for d in degrees], reach, question)
    degree = degrees[0] if edges is None else 2 * edges // n
    return _kept(question, Regular(degree), reach)


Reach = Callable[[int, bool], float]  # from edges, and whether it is guaranteed, to a radius


def _kept(question: Question, design: GraphDesign, reach: Reach) -> Alternative:
    cost = question.cost(design, question.source.observations)
    m = max(1, round(design.pairs(question.n)))
    radius = None if question.mean_d_max is None else question.relative(reach(m, True))
    met = reach(m, question.guaranteed) <= question.width
    return Alternative(str(design), design, radius, question.relative(reach(m, False)), cost, met, "")


def _fewest(edges: Sequence[int], reach: Reach, question: Question) -> int | None:
    """Return the first of ascending numbers of edges whose radius is small enough."""
    at = bisect_left(edges, True, key=lambda m: reach(m, question.guaranteed) <= question.width)
    return edges[at] if at < len(edges) else None


def _simple(question: Question) -> Reach:
    """Return radii of a simple random sample of pairs, as :func:`graphsnd.measure` reports them."""
    d_max, spread, delta = question.mean_d_max, question.lasting_spread, 1 - question.confidence

    def reach(m: int, guaranteed: bool) -> float:
        if not guaranteed or d_max is None:
            return quantile(delta, LARGE) * spread * math.sqrt((1 - m / question.pairs) / m)
        bernstein = bounds.empirical_bernstein(spread, d_max, m, question.pairs, delta / 2)
        return min(bounds.serfling(d_max, m, question.pairs, delta / 2), bernstein)

    return reach


def _regular(question: Question) -> Reach:
    """Return radii of a random regular graph, in which effects of single agents cancel."""
    d_max, n, delta = question.mean_d_max, question.n, 1 - question.confidence

    def reach(m: int, guaranteed: bool) -> float:
        degree = 2 * m // n
        if not guaranteed or d_max is None:
            return quantile(delta, LARGE) * math.sqrt(variance(question.lasting, n, m, n * math.comb(degree, 2)))
        return bounds.random_regular_bound(d_max, n, degree, delta)

    return reach
