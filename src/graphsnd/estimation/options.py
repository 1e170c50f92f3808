"""What a design would cost and guarantee in a team that has not been measured yet."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphsnd import bounds, designs
from graphsnd.designs import Complete, Design, GraphDesign, Regular, RelabelledDesign, Uniform
from graphsnd.estimation.advice import Alternative
from graphsnd.estimation.assumptions import Prospect, pilot_draws
from graphsnd.estimation.costs import Cost
from graphsnd.estimation.forecast import NOW, PAIRS, SIZES, Tolerance, forecast
from graphsnd.estimation.intervals import quantile
from graphsnd.estimation.on_graph import LARGE
from graphsnd.estimation.sample import variance

LARGEST = 2000  # agents beyond which templates on the whole team are not considered: a few agents always do better
SMALLEST = 8  # agents below which a graph leaves out too little to be worth drawing
TENTH = 0.1  # of the pairs: what is shown of a graph that cannot reach the tolerance, and the paper's own choice


@dataclass(frozen=True, eq=False)
class Question(Prospect):
    """A team, and what the number is for."""

    tolerance: Tolerance
    confidence: float
    goal: str
    same_pairs: bool  # whether every call must measure the same pairs

    @property
    def n(self) -> int:
        """Number of agents."""
        return self.source.agents

    @property
    def guaranteed(self) -> bool:
        """Whether the tolerance has to be guaranteed; otherwise it has to hold typically."""
        return self.goal == "global" and self.d_max is not None

    def relative(self, radius: float) -> float:
        """Return a radius in units of SND; of identical agents, as it is."""
        return radius / (self.pilot.value() or 1.0)

    def cost(self, design: Design, draws: int) -> Cost:
        """Return what a design takes on that many observations."""
        certified = self.d_max is not None and (self.guaranteed or isinstance(design, RelabelledDesign))
        return Cost.of(self.source, design, draws, bounded=certified and not self.source.policy_cost)


def measure_everything(question: Question) -> Alternative:
    """Return all pairs at all observations."""
    return Alternative("complete", Complete(), 0.0, 0.0, question.cost(Complete(), question.source.observations), True)


def list_sampled(question: Question) -> list[Alternative]:
    """Return all designs that estimate SND from some pairs."""
    kept = [designs.Bernoulli(TENTH), fewest_pairs(question), lowest_degree(question)] if question.n >= SMALLEST else []
    options = [keep_graph(question, design) for design in kept]
    if 3 < question.n <= LARGEST:
        options += [redraw_pairs(question, design) for design in (designs.Matching(), designs.Ring(4))]
    # Not best_design(), which a measurement asks after its pilot: here the pilot is still to be paid for.
    agents: list[RelabelledDesign] = [designs.Agents(size) for size in SIZES if size <= question.n]
    pairs: list[RelabelledDesign] = [designs.Pairs(count) for count in PAIRS if 2 * count <= question.n]
    for sizes in filter(None, (pairs, agents)):
        resized = [redraw_pairs(question, design) for design in sizes]
        options.append(min(resized, key=lambda one: (not one.met, one.cost.work)))
    return options


def redraw_pairs(question: Question, design: RelabelledDesign) -> Alternative:
    """Return redrawn pairs at the observations that the tolerance takes, or at all if it takes too many."""
    observations, delta = question.source.observations, NOW * (1 - question.confidence)
    ahead = forecast(question.source, question.pilot, question.measured, design)
    enough = ahead.draws(question.tolerance, question.d_max if question.guaranteed else None, delta)
    draws = enough or observations
    sure = None if question.d_max is None else question.relative(ahead.radius(draws, question.d_max, delta))
    typical = question.relative(ahead.radius(draws, None, delta))
    cost = question.cost(design, draws + pilot_draws(observations))
    return Alternative(str(design), design, sure, typical, cost, enough is not None)


def keep_graph(question: Question, design: GraphDesign) -> Alternative:
    """Return one random graph for all observations."""
    cost = question.cost(design, question.source.observations)
    typical, sure = (graph_radius(question, design, guaranteed=guaranteed) for guaranteed in (False, True))
    known = None if question.mean_d_max is None else question.relative(sure)
    return Alternative(str(design), design, known, question.relative(typical), cost, reaches(question, design))


def fewest_pairs(question: Question) -> GraphDesign:
    """Return the fewest random pairs that reach the tolerance, or a tenth of them."""
    pairs = math.comb(question.n, 2)
    return _first_enough(question, Uniform, range(1, pairs)) or Uniform(max(1, round(TENTH * pairs)))


def lowest_degree(question: Question) -> GraphDesign:
    """Return the lowest degree that reaches the tolerance, at least the paper's log2 n."""
    n = question.n
    least = max(1, min(math.ceil(math.log2(n)), n - 2))
    degrees = range(least + least * n % 2, n - 1, 1 + n % 2) or range(n - 1, n)
    return _first_enough(question, Regular, degrees) or Regular(degrees[0])


def _first_enough(question: Question, build: Callable[[int], GraphDesign], sizes: Sequence[int]) -> GraphDesign | None:
    """Return the first of designs of ascending sizes that reaches the tolerance."""
    at = bisect_left(sizes, True, key=lambda size: reaches(question, build(size)))
    return build(sizes[at]) if at < len(sizes) else None


def reaches(question: Question, design: GraphDesign) -> bool:
    """Return whether a graph's radius is within the tolerance."""
    width = question.tolerance.width(question.pilot.value())
    return graph_radius(question, design, guaranteed=question.guaranteed) <= width


def graph_radius(question: Question, design: GraphDesign, *, guaranteed: bool) -> float:
    """Return the radius of one random graph, as :func:`graphsnd.measure` reports it; typical where no bound is known.

    Effects of single agents cancel in a random regular graph; all others are simple random samples of the pairs.
    """
    d_max, n, pairs, delta = question.mean_d_max, question.n, math.comb(question.n, 2), 1 - question.confidence
    m, spread = max(1, round(design.pairs(n))), math.sqrt(float(question.lasting[0]))
    if not guaranteed or d_max is None:
        if isinstance(design, Regular):
            meeting = n * math.comb(design.degree, 2)
            return quantile(delta, LARGE) * math.sqrt(variance(question.lasting, n, m, meeting))
        return quantile(delta, LARGE) * spread * math.sqrt((1 - m / pairs) / m)
    if isinstance(design, Regular):
        return bounds.random_regular_bound(d_max, n, design.degree, delta)
    bernstein = bounds.empirical_bernstein(spread, d_max, m, pairs, delta / 2)
    return min(bounds.serfling(d_max, m, pairs, delta / 2), bernstein)
