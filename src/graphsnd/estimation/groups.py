"""Teams whose agents have different spaces: a measurement of each group, and the mean over all pairs within groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from torch import nn

from graphsnd.behavior import Behavior
from graphsnd.behavior.behavior import in_order
from graphsnd.designs.subsets import integer_seed
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate, Interval
from graphsnd.estimation.intervals import check_confidence
from graphsnd.graphs.draws import source
from graphsnd.teams import JointTeam, Team, as_team

P = ParamSpec("P")
GROUPS = (Behavior, Team, Mapping, Sequence, nn.ModuleDict, nn.ModuleList)  # what is not one policy
OPTIONS = ("observations", "design", "positions", "clusters")  # which may be dicts by group
SUMS = ("agents", "observations", "observations_total", "pairs_total", "pairs_used", "policy_evaluations", "distances")


def by_group(measure: Callable[P, Estimate]) -> Callable[P, Estimate]:
    """Let the measurement of one team take a dict of groups."""

    @wraps(measure)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Estimate:
        team = args[0] if args else kwargs.get("team")
        parts = team.values() if isinstance(team, Mapping | nn.ModuleDict) else ()
        if not any(isinstance(part, GROUPS) for part in parts):
            return measure(*args, **kwargs)
        bound = signature(measure).bind(*args, **kwargs)
        bound.apply_defaults()
        return measure_groups(measure, **bound.arguments)

    return wrapper


def measure_groups(
    measure: Callable[..., Estimate], team: Mapping[str, Any], *, confidence: float, seed: Any, **options: Any
) -> Estimate:
    """Measure each group with a seed of its own, and combine.

    The intervals of the groups have failure probabilities that sum to ``1 - confidence``. So they hold together, and
    with them the interval of the total between the weighted means of their ends, whichever way each was made. A
    normal interval from the standard errors would be narrower, but is no guarantee, and groups that stop when they are
    sure enough have no fixed one.
    """
    confidence = check_confidence(confidence)
    if not all(isinstance(group, GROUPS) for group in team.values()):
        raise InputError("team", "of groups, or of policies", "both", "A group of one agent is a list of one policy.")
    if len({str(name) for name in team}) < len(team):
        raise InputError("team", "of groups whose names differ as strings", ", ".join(map(repr, team)))
    generator, _ = source(seed, None, host=True)
    # A TensorDict has a batch: a rollout, of which each team reads its own part.
    dicts = [key for key in OPTIONS if isinstance(options[key], Mapping) and not hasattr(options[key], "batch_size")]
    by_name = {key: in_order(key, options[key], tuple(team)) for key in dicts}
    teams = [group if isinstance(group, Behavior) else as_team(group) for group in team.values()]
    paired = sum(_size(one) != 1 for one in teams)
    each = 1 - (1 - confidence) / max(1, paired)
    groups = {}
    for at, (name, one) in enumerate(zip(team, teams, strict=True)):
        options |= {key: values[at] for key, values in by_name.items()}
        number = integer_seed(generator)
        alone = _size(one) == 1
        groups[str(name)] = _alone(one, each) if alone else measure(one, confidence=each, seed=number, **options)
    return combine(groups, confidence)


def _size(team: Behavior | Team) -> int | None:
    """Return the number of agents; None where only the first answer will tell."""
    return team._agents if isinstance(team, JointTeam) else team.agents


def _alone(team: Behavior | Team, confidence: float) -> Estimate:
    """Return the estimate of one agent, which has no pair: 0 on any observations."""
    zero, observations = (0.0, 0.0), team.observations if isinstance(team, Behavior) else 0
    return Estimate(
        0.0, "SND", 0.0, zero, zero, confidence, "exact: one agent has no pair", 0.0, 1, observations, 0, 0, 0, "none",
        "complete", population_interval=zero, observations_total=observations, names=team._names or (),
    )  # fmt: skip


def combine(groups: Mapping[str, Estimate], confidence: float) -> Estimate:
    r"""Return the mean distance over all pairs within groups.

    .. math:: \mathrm{total} = \sum_g \binom{n_g}{2} \mathrm{SND}_g \Big/ \sum_g \binom{n_g}{2}

    NaN where groups were measured by different distances, which have different units.

    Args:
        groups: Their estimates, whose intervals hold together with this confidence.
        confidence: Of the total's intervals.
    """
    paired = [estimate for estimate in groups.values() if estimate.pairs_total]
    pairs, distances = sum(e.pairs_total for e in paired), list(dict.fromkeys(e.distance for e in paired))
    unit = 1.0 if len(distances) < 2 else math.nan

    def parts(name: str, end: int | None = None) -> list[float]:
        values = (getattr(e, name) if end is None else getattr(e, name)[end] for e in paired)
        return [unit * e.pairs_total / pairs * value for e, value in zip(paired, values, strict=True)]

    def known(name: str) -> bool:
        return all(getattr(e, name) is not None for e in paired)

    def ends(name: str) -> Interval:
        return math.fsum(parts(name, 0)), math.fsum(parts(name, 1))

    value, highest = parts("value"), parts("asymptotic_interval", 1)
    mean, reach = math.fsum(value), math.dist(highest, value)  # groups have other seeds: their errors are independent
    method = "exact: every group is" if paired else "no group has a pair of agents"
    method = method if all(e.exact for e in paired) else "weighted mean of the groups' intervals"
    return Estimate(
        value=mean,
        target="SND within groups" if all(e.target == "SND" for e in paired) else "Graph-SND within groups",
        standard_error=math.hypot(*parts("standard_error")),
        interval=ends("interval"),
        asymptotic_interval=(max(mean - reach, 0.0), mean + reach),
        confidence=confidence,
        method=method if unit == 1 else f"no total: {' and '.join(distances)} have different units",
        # Groups may have been observed together, so their errors over observations may add up.
        observation_error=math.fsum(parts("observation_error")) if known("observation_error") else None,
        distance=", ".join(distances),
        design=", ".join(dict.fromkeys(e.design for e in paired)),
        pair_error=math.hypot(*parts("pair_error")),
        population_interval=ends("population_interval") if known("population_interval") else None,
        met=all(e.met for e in paired) if paired and known("met") else None,
        noise_floor=math.fsum(parts("noise_floor")) if paired and unit == 1 and known("noise_floor") else None,
        looks=max([e.looks for e in paired], default=1),
        seconds=sum(e.seconds for e in paired),
        guaranteed=all(e.guaranteed for e in paired),
        groups=dict(groups),
        **{name: sum(getattr(e, name) for e in groups.values()) for name in SUMS},
    )
