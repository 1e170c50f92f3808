from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from graphsnd.designs import Agents, Matching, Pairs, RelabelledDesign, Ring
from graphsnd.estimation.costs import work
from graphsnd.estimation.forecast import Forecast, Tolerance, best_design, forecast, later_looks
from graphsnd.estimation.sample import draw
from graphsnd.estimation.source import BehaviorSource, Workload
from tests.estimation.teams import behavior

SOURCE = BehaviorSource(behavior(observations=400, n=20), None)
PILOT = draw(SOURCE, Agents(8).template(20), torch.arange(200), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("design", [Agents(8), Agents(3), Ring(4), Matching()], ids=str)
def test_a_pilot_forecasts_the_spread_of_other_designs(design) -> None:  # type: ignore[no-untyped-def]
    ahead = forecast(SOURCE, PILOT, Agents(8), design)
    index = torch.arange(400).repeat(20)
    means = draw(SOURCE, design.template(20), index, torch.Generator().manual_seed(1)).means
    assert math.sqrt(ahead.total) == pytest.approx(float(means.std()), rel=0.2)


def test_more_draws_and_less_confidence_are_narrower() -> None:
    ahead = forecast(SOURCE, PILOT, Agents(8), Ring(4))
    for d_max in (None, SOURCE.bound()):
        radii = [ahead.radius(draws, d_max, 0.05) for draws in (20, 100, 400, 800)]
        assert radii == sorted(radii, reverse=True)
        assert ahead.radius(100, d_max, 0.2) < ahead.radius(100, d_max, 0.05)


def test_a_tighter_tolerance_takes_more_draws_until_all_pairs_are_cheaper() -> None:
    ahead = forecast(SOURCE, PILOT, Agents(8), Agents(3))
    draws = [ahead.draws(Tolerance(relative=tol), None, 0.05) for tol in (0.2, 0.05, 0.02)]
    assert draws == sorted(draws)  # type: ignore[type-var]
    assert ahead.draws(Tolerance(relative=1e-9), None, 0.05) is None


@pytest.mark.parametrize("relative", [0.05, 0.005])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_best_design_takes_the_least_work(relative: float, bounded: bool) -> None:
    source, tolerance = BehaviorSource(behavior(observations=60, n=4000), None), Tolerance(relative=relative)
    pilot = draw(source, Agents(8).template(4000), torch.arange(60), torch.Generator().manual_seed(0))
    d_max = source.bound() if bounded else None

    def price(design: RelabelledDesign) -> float:
        draws = forecast(source, pilot, Agents(8), design).draws(tolerance, d_max, 0.05, work)
        return math.inf if draws is None else work(source, design, draws)

    best = best_design(source, pilot, Agents(8), lambda ahead: ahead.work_for(tolerance, d_max, 0.05))
    assert price(best) == min(map(price, [best, Ring(4), Agents(2), Agents(8), Agents(16), Pairs(8), Pairs(128)]))
    # A guarantee needs many draws, and has no use for the many pairs of each.
    assert price(best) < price(Ring(4)) / (10 if bounded else 1)


def test_policies_are_evaluated_for_a_few_agents_and_a_ring_is_left_where_nothing_will_do() -> None:
    costly = Workload(20, 400, SOURCE.features, 1e4, SOURCE.device)
    for source, relative, kind in ((costly, 0.2, Agents), (SOURCE, 1e-9, Ring)):
        tolerance = Tolerance(relative=relative)
        best = best_design(source, PILOT, Agents(8), lambda ahead, t=tolerance: ahead.work_for(t, None, 0.05))  # type: ignore[misc]
        assert isinstance(best, kind)


def test_a_budget_buys_the_closed_form_radius_where_all_distances_are_equal() -> None:
    """Without variance both inequalities depend on the number of draws alone, so the cheapest draw wins."""
    n, observations, delta = 64, 5000, 0.05
    source = BehaviorSource(gs.Deterministic(torch.eye(n).expand(observations, n, n)), None)
    pilot = draw(source, Agents(8).template(n), torch.arange(50), torch.Generator().manual_seed(0))
    d_max = math.sqrt(2)
    most = work(source, Agents(8), 1500)

    def radius(draws: float) -> float:
        return d_max * min(3 * math.log(6 / delta) / draws, math.sqrt(math.log(4 / delta) / (2 * draws)))

    def score(ahead: Forecast) -> float:
        return ahead.radius_within(most, d_max, delta)

    radii = {}
    for design in (Agents(2), Agents(8), Agents(32), Pairs(8), Pairs(32), Ring(4)):
        once, twice = (work(source, design, draws) for draws in (1000, 2000))  # a line
        affordable = 1000 + 1000 * (most - once) / (twice - once)
        assert 50 < affordable < 0.9 * observations
        radii[design] = score(forecast(source, pilot, Agents(8), design))
        assert radius(affordable) <= radii[design] <= radius(affordable / 1.1 - 1)
    best = best_design(source, pilot, Agents(8), score)
    assert score(forecast(source, pilot, Agents(8), best)) <= min(radii.values())
    assert min(radii.values()) < radii[Ring(4)] / 2
    assert (
        forecast(source, pilot, Agents(8), Ring(4)).radius_within(work(source, Ring(4), 49), d_max, delta) == math.inf
    )


def test_looks_grow_and_end_at_the_limit() -> None:
    looks = list(later_looks(10, 60, 1000))
    assert looks == sorted(set(looks))
    assert (looks[0], looks[-1]) == (10, 60)
    assert list(later_looks(None, 2500, 1000))[-1] == 2000  # whole passes
