r"""What a design would cost and guarantee in a team that has not been measured yet.

How much the distances of the team vary is assumed, or measured on a pilot. Forecasts need second moments only. With x
the distances of an observation relative to their mean, S^2 their variance over the pairs and h the share of it that is
due to single agents (:mod:`graphsnd.bounds.relabelling`), the products of two distances have the means

.. math:: q = S^2, \qquad a = \frac{((n-2) h - 2)\, N q}{2\, n \binom{n-1}{2}}, \qquad
    b = -\frac{N q + 2 n \binom{n-1}{2} a}{2 B_N}

over pairs with themselves, over those that share an agent and over the B_N disjoint ones: the row sums have squares
(n-2) h N q in all, and all distances together sum to 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphsnd import bounds, designs, graphs
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.distances import check_unpooled
from graphsnd.designs import Agents, Complete, Design, GraphDesign, Regular, RelabelledDesign, Uniform
from graphsnd.estimation.advice import Alternative
from graphsnd.estimation.costs import Cost
from graphsnd.estimation.forecast import NOW, PAIRS, PILOT, SIZES, Tolerance, forecast
from graphsnd.estimation.intervals import quantile
from graphsnd.estimation.on_graph import LARGE
from graphsnd.estimation.sample import Sample, measure_draws, variance
from graphsnd.estimation.source import BehaviorSource, Workload
from graphsnd.metric.pair_distances import edge_means
from graphsnd.sums import mean, sample_variance

LARGEST = 2000  # agents beyond which templates on the whole team are not considered: a few agents always do better
ENOUGH = 1 << 12  # draws of a pilot that was given: about 100,000 Euclidean distances, for two digits
SMALLEST = 8  # agents below which a graph leaves out too little to be worth drawing
TENTH = 0.1  # of the pairs: what is shown of a graph that cannot reach the tolerance, and the paper's own choice


@dataclass(frozen=True, eq=False)
class Prospect:
    """What forecasts for a team start from."""

    source: Workload  # sizes and costs
    pilot: Sample  # draws of ``measured``, measured or assumed
    measured: Agents
    d_max: float | None  # bound on every distance at every observation; None for asymptotic radii only
    lasting: Tensor  # float64 [3], mean products of the distances averaged over observations
    mean_d_max: float | None  # bound on every distance averaged over observations
    assumptions: tuple[str, ...]


def pilot_draws(observations: int) -> int:
    """Return the even number of draws that a measurement with a tolerance spends on its own pilot."""
    return min(PILOT, max(2, observations // 4 // 2 * 2))


def assume_spreads(
    source: Workload, distance_spread: float, observation_spread: float, effect_share: float, d_max_ratio: float | None
) -> Prospect:
    """Return a team with SND 1 and these spreads, as if a pilot had measured them.

    Args:
        source: Sizes and costs.
        distance_spread: Standard deviation of the distances over the pairs of an observation, relative to SND.
        observation_spread: That of the diversities of single observations, relative to SND.
        effect_share: Share of the squared distance spread that is due to single agents.
        d_max_ratio: The largest distance at any observation, relative to SND; None where no bound is known.
    """
    n, measured = source.agents, Agents(min(8, source.agents))
    products = moments(n, distance_spread**2, effect_share)
    template = measured.template(n)
    pairs = variance(products, n, template.m, template.meeting())
    inside = max(0.0, float(products[0]) - pairs) * template.m / max(1, template.m - 1)
    # Values at equal distances on both sides of 1 have exactly the mean and the variance that are asked for.
    count = pilot_draws(source.observations)
    offset = math.sqrt((observation_spread**2 + pairs) * (count - 1) / count)
    means = torch.tensor([1 - offset, 1 + offset], dtype=torch.float64).repeat(count // 2)
    spreads = torch.full((count,), inside, dtype=torch.float64)
    pilot = Sample(means, spreads, products.view(1, 3), torch.arange(count))
    said = (
        f"distances vary by {distance_spread:.0%} of SND over pairs, {effect_share:.0%} of the variance due to single "
        "agents, and keep doing so at every observation",
        f"the diversity of single observations varies by {observation_spread:.0%} of SND",
        "no bound on the distances is known" if d_max_ratio is None else f"no distance exceeds {d_max_ratio:g} x SND",
    )
    return Prospect(source, pilot, measured, d_max_ratio, products, d_max_ratio, said)


def measure_spreads(source: Workload, behavior: Behavior, distance: Distance | None, *, bounded: bool) -> Prospect:
    """Measure spreads on a pilot: random agents at random observations, and a few pairs over many of them.

    Args:
        source: Sizes and costs of the whole team; those of a distance are the pilot's.
        behavior: The pilot: all agents, at some observations.
        distance: Between them; the behaviour's default when None.
        bounded: Whether to bound the distances from the pilot too.
    """
    n, known = source.agents, BehaviorSource(behavior, distance)
    check_unpooled(known.distance, "leaves one to draw from")
    source = replace(source, features=known.features, slowness=known.slowness)
    measured, generator = Agents(min(8, n)), torch.Generator().manual_seed(0)
    most = max(PILOT, int(ENOUGH / known.slowness))
    passes = max(1, most // known.observations) if n > measured.count else 1  # again only with other agents
    order = torch.cat([torch.randperm(known.observations, generator=generator) for _ in range(passes)])[:most]
    with torch.no_grad():
        pilot = measure_draws(known, measured.template(n), order, generator)  # spreads too where these are all pairs
        lasting = _lasting(known, order[: min(PILOT, known.observations)])
        d_max = known.bound() if bounded else None
        mean_d_max = bounds.diameter(behavior, distance) if bounded else None
    if not len(pilot.moments):  # teams of two or three: no two of their pairs are disjoint
        squares = 0.0 if n == 2 else float(mean(pilot.spreads)) * 2 / 3
        pilot = Sample(pilot.means, pilot.spreads, moments(n, squares, 1.0).view(1, 3), pilot.index)
    value = pilot.value() or 1.0
    said = [
        f"SND is about {pilot.value():.3g} and mean distances vary by {math.sqrt(float(lasting[0])) / value:.0%} of it "
        f"over pairs, measured on a pilot of {min(most, known.observations):,} of {known.observations:,} observations",
        f"the observations to come are like the pilot's ({known.distance.name} distance)",
    ]
    said += [] if d_max is None else [f"no distance exceeds the pilot's bound, {d_max / value:.3g} x SND"]
    return Prospect(source, pilot, measured, d_max, lasting, mean_d_max, tuple(said))


def moments(n: int, squares: float, effect_share: float) -> Tensor:
    """Return mean products of centred distances of a team with this variance over pairs, float64 ``[3]``.

    Example:
        >>> moments(3, 1.0, 1.0).tolist()  # three distances that sum to 0
        [1.0, -0.5, 0.0]
    """
    pairs, touching = math.comb(n, 2), n * math.comb(n - 1, 2)
    apart = math.comb(pairs, 2) - touching
    if n == 2:
        return torch.zeros(3, dtype=torch.float64)
    share = 1.0 if n == 3 else effect_share  # three numbers are sums of effects, whatever they are
    a = ((n - 2) * share - 2) * pairs * squares / (2 * touching)
    b = -(pairs * squares + 2 * touching * a) / (2 * apart) if apart else 0.0
    return torch.tensor([squares, a, b], dtype=torch.float64)


def _lasting(known: BehaviorSource, order: Tensor) -> Tensor:
    """Return moments of the distances averaged over observations, from a regular graph kept for all of them."""
    n = known.agents
    graph = graphs.random_regular(n, 8, seed=0) if n > 9 else graphs.complete(n)
    rows = order.to(known.device)
    points = replace(known.points, values=known.points.values[rows])
    distances = edge_means(points, graph.to(known.device)).cpu()
    squares = float(sample_variance(distances)) if graph.m > 1 else 0.0
    explained = bounds.agent_effects(distances, graph).explained if n > 3 and squares else 1.0
    return moments(n, squares, min(1.0, max(0.0, explained)))


@dataclass(frozen=True, eq=False)
class Question(Prospect):
    """A team, and what the number is for."""

    tolerance: Tolerance
    confidence: float
    goal: str
    same_pairs: bool  # whether every call must measure the same pairs
    distance: Distance | None = None  # that was asked for

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
        rings = [designs.Ring(4)] if question.n > 5 else []  # of five agents it has all pairs
        options += [redraw_pairs(question, design) for design in (designs.Matching(), *rings)]
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
