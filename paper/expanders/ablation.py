r"""The paper's ablation of graph families at equal numbers of edges, as a function of any teams.

Sizes 50, 100, 200, 500; three degrees; five seeds; random regular, Bernoulli, uniform and k-nearest-neighbour graphs,
and beside them two more regular families. Distances are those of equation (1): all policies on the same observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.metric import pairwise
from paper.expanders.families import SEEDS, SIZES, Family, build, degrees
from paper.expanders.ratios import Distances, Row, compare
from paper.expanders.teams import initial_team, mean_actions


def ablation(
    behaviors: Mapping[int, Behavior] | Callable[[int], Behavior] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    seeds: Sequence[int] = SEEDS,
    families: Sequence[Family] = tuple(Family),
    forwarding: bool = True,
    seconds: float | None = 10.0,
    step: Callable[[str], None] = lambda name: None,
) -> list[Row]:
    """Compare Graph-SND with SND for every size, degree, family and seed.

    Without forwarding indices the full protocol takes less than a minute on a core, with them about half an hour: half
    a second a graph at n = 50, one at n = 100, and with the default limit up to 20 at n = 500. ``graphsnd reproduce
    expanders --scale paper`` is the same in cells that survive being stopped.

    Args:
        behaviors: A team for every size, or a function that makes one; :func:`initial_team` when None.
        sizes: Numbers of agents.
        seeds: Of the graphs.
        families: Of graphs.
        forwarding: Whether to compute forwarding indices, which takes most of the time.
        seconds: Time limit of each search: for the flow, and again for the paths. The bounds are certified whenever it
            stops. None for no limit, a minute or more a graph at n = 500.
        step: Called with a name as every size and degree begins.

    Returns:
        Rows in that order. A k-nearest-neighbour graph is not drawn and has one row for each size and degree.

    Raises:
        InputError: For a size without a team or a team of another size.

    Example:
        >>> rows = ablation(sizes=(12,), seeds=(0,), forwarding=False)
        >>> [(row.degree, row.edges) for row in rows if row.family == "uniform"]
        [(4, 24), (8, 48)]
    """
    rows: list[Row] = []
    for n in sizes:
        behavior = _team(behaviors, n)
        with torch.no_grad():
            distances = Distances.of(pairwise(behavior).double().cpu())
            positions = mean_actions(behavior).cpu()
        for asked, degree in degrees(n):
            step(f"n = {n}, degree {degree}")
            for family, seed in _draws(families, seeds):
                row = compare(
                    distances,
                    build(family, n, degree, seed or 0, positions),
                    family=family.value,
                    degree=degree,
                    asked_degree=asked,
                    seed=seed,
                    forwarding=forwarding,
                    seconds=seconds,
                )
                rows.append(row)
    return rows


def _draws(families: Sequence[Family], seeds: Sequence[int]) -> Iterator[tuple[Family, int | None]]:
    for family in families:
        for seed in seeds if family.drawn else (None,):
            yield family, seed


def _team(behaviors: Mapping[int, Behavior] | Callable[[int], Behavior] | None, n: int) -> Behavior:
    if behaviors is None:
        return initial_team(n)
    if isinstance(behaviors, Mapping):
        if n not in behaviors:
            raise InputError("behaviors", f"with a team of {n} agents", f"teams of {sorted(behaviors)}")
        behavior = behaviors[n]
    else:
        behavior = behaviors(n)
    if behavior.agents != n:
        raise InputError("behaviors", f"with {n} agents for size {n}", repr(behavior))
    return behavior
