r"""The ablation of graph families as an experiment: sizes, degrees and teams in cells, so a stopped run resumes.

Fresh and trained policies (the 100 agents of the committed training) are compared on the same graphs, in two ways: on
shared observations, as in equation (1), and each policy on observations of its own, as in the paper's code. For trained
policies the shared observations are those of a rollout in their world; their own are uniform noise, as in the paper.

Forwarding indices do not depend on the team, so each drawn graph is routed once. A search that reaches its time limit
leaves wider certified bounds, and they may differ on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.metric import pairwise
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from paper.expanders.comparison import (
    Data,
    Distances,
    GraphSummary,
    Row,
    SmallGraphs,
    TeamRows,
    compare,
    measure_small_graphs,
    summarise_graph,
)
from paper.expanders.families import SEEDS, SIZES, Family, build, degrees
from paper.expanders.figure import draw_expanders
from paper.expanders.numbers import summarise
from paper.experiment import Experiment, Outcome, Scale
from paper.runner import Cells
from paper.shared.rollouts import as_gaussian, on_own, pooled
from paper.training import COMMITTED, ROLLOUT_SEED, STACKS, fingerprint, last_team, roll_out

TRAINED_AGENTS = 100
DIGITS = 7  # digits of the published values; numbers are computed before rounding
POLICY_SEED, OBSERVATION_SEED, NOISE_SEED, OBSERVATIONS = 42, 43, 44, 4096
FEATURES, HIDDEN, ACTIONS = 18, 64, 2
HEAD_GAIN = 0.01  # gain of the last layer of a fresh PPO actor


def initial_team(n: int, *, observations: int = OBSERVATIONS, own: bool = False) -> Behavior:
    """Return freshly initialised policies 18-64-64-2 on observations uniform in [-1, 1]^18.

    Orthogonal weights, tanh, means squashed to [-1, 1], a standard deviation of exp(-0.5) for all agents.

    Args:
        n: Number of agents.
        observations: Number of observations, shared by all agents.
        own: Show each policy observations of its own instead, the same number of them. That is the paper's protocol
            and not equation (1): see :func:`paper.shared.rollouts.on_own`.

    Example:
        >>> initial_team(5, observations=16)
        Gaussian(agents=5, observations=16)
    """
    generator = torch.Generator().manual_seed(POLICY_SEED)
    sizes = (FEATURES, HIDDEN, HIDDEN, ACTIONS)
    network = StackedMLP.create((n,), sizes, generator=generator, head_gain=HEAD_GAIN)
    team = StackedTeam(network, GaussianHead(ACTIONS, batch=(n,)))
    if own:
        return on_own(team, _uniform((observations, 1, n, FEATURES), OBSERVATION_SEED), observations)
    with torch.no_grad():
        return team.evaluate(_uniform((observations, FEATURES), OBSERVATION_SEED))


def trained_team(training: Path, seed: int, *, observations: int = OBSERVATIONS, own: bool = False) -> Behavior:
    """Return a trained team on observations pooled over all its agents, of a rollout in its world.

    Args:
        training: Folder of the training.
        seed: Seed of the run.
        observations: Number of observations, picked at random from those of all agents and steps.
        own: Show each policy uniform noise of its own instead, as the paper's panel of trained policies does.
    """
    team = last_team(training, seed)
    if own:
        return on_own(team, _uniform((observations, 1, team.agents, FEATURES), NOISE_SEED), observations)
    seen = roll_out(replace(STACKS[COMMITTED], agents=team.agents), team, seed)
    with torch.no_grad():
        return team.evaluate(pooled(seen, observations, seed=seed))


def mean_actions(behavior: Behavior) -> Tensor:
    """Return the mean action of every agent over the observations, ``[n, actions]``."""
    return as_gaussian(behavior).loc.detach().flatten(0, -3).double().mean(dim=0)


def _uniform(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


@dataclass(frozen=True)
class Plan:
    """The size of the ablation at one scale."""

    sizes: Sequence[int]
    seeds: Sequence[int]
    observations: int
    routed: Mapping[int, int]  # number of seeds per family whose forwarding index is computed, by size
    seconds: float  # time limit of each search for it
    trained: Sequence[int]  # seeds of the training runs


PLANS: dict[Scale, Plan] = {
    Scale.SMOKE: Plan((12,), (0, 1), 64, {12: 1}, 0.2, (0,)),
    Scale.LAPTOP: Plan(SIZES, SEEDS, OBSERVATIONS, {50: 5, 100: 2, 200: 1, 500: 1}, 1.0, (0, 1, 2)),
    Scale.PAPER: Plan(SIZES, SEEDS, OBSERVATIONS, dict.fromkeys(SIZES, 5), 20.0, (0, 1, 2)),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A team to be compared, evaluated only where a cell is missing."""

    n: int
    trained: bool
    own: bool
    seed: int | None
    settings: dict[str, Any]  # everything that its behaviour depends on
    make: Callable[[], Behavior]

    @property
    def label(self) -> str:
        """The name of its cells."""
        name = f"{'trained' if self.trained else 'initial'}{'-own' * self.own}"
        return name if self.seed is None else f"{name}-{self.seed}"

    @cached_property
    def measured(self) -> tuple[Distances, Tensor]:
        """Its distances, and the mean action of every agent."""
        with torch.no_grad():
            behavior = self.make()
            return Distances.of(pairwise(behavior).double().cpu()), mean_actions(behavior).cpu()


def run(scale: Scale, cells: Cells) -> Outcome:
    """Summarise every graph, then compare every team on every graph."""
    plan = PLANS[scale]
    small = cells.get("small", {"version": 1}, measure_small_graphs, SmallGraphs)
    rows: dict[tuple[bool, bool, int | None], list[Row]] = {}
    for subject in subjects(plan, cells.find(COMMITTED)):
        mine, n = rows.setdefault((subject.trained, subject.own, subject.seed), []), subject.n
        for degree in degrees(n):
            settings = _settings(plan, n, degree)
            drawn = {}
            for family in filter(lambda family: family.drawn, Family):
                name, about = f"graphs,n={n},d={degree},{family.name.lower()}", {"family": family.value, **settings}
                make = partial(summarise_drawn, plan, family, n, degree)
                drawn[family] = cells.get(name, about, make, list[GraphSummary])
            settings |= {**subject.settings, "families": [family.value for family in Family]}
            compared = partial(compare_team, plan, subject, degree, drawn)
            mine += cells.get(f"team={subject.label},n={n},d={degree}", settings, compared, list[Row])
    teams = tuple(TeamRows(*key, tuple(mine)) for key, mine in rows.items())
    data = Data(teams, small, plan.observations)
    published = tuple(replace(team, rows=tuple(map(_round, team.rows))) for team in data.teams)
    sources = (f"results/{COMMITTED}",) if any(team.trained for team in data.teams) else ()
    return Outcome(replace(data, teams=published), summarise(data), plan.seeds, sources)


def subjects(plan: Plan, training: Path | None) -> Iterator[Subject]:
    """Yield the teams, one for each size; trained teams only if the folder of their training is given."""
    for own in (False, True):
        settings: dict[str, Any] = {"observations": plan.observations, "own": own}
        for n in plan.sizes:
            yield Subject(n, False, own, None, settings, partial(initial_team, n, **settings))
        for seed in plan.trained:
            if training and (training / f"seed-{seed}").is_dir():
                about = {**settings, "team": fingerprint(training, seed), "rollout": ROLLOUT_SEED + seed}
                yield Subject(TRAINED_AGENTS, True, own, seed, about, partial(trained_team, training, seed, **settings))


def summarise_drawn(plan: Plan, family: Family, n: int, degree: int) -> list[GraphSummary]:
    """Return the graphs of one family that do not depend on a team."""
    summaries = []
    for place, seed in enumerate(plan.seeds):
        graph, routed = build(family, n, degree, seed, torch.empty(0)), place < plan.routed.get(n, 0)
        options: dict[str, Any] = {"seed": seed, "forwarding": routed, "seconds": plan.seconds}
        summaries.append(summarise_graph(graph, family.value, degree, **options))
    return summaries


def compare_team(
    plan: Plan, subject: Subject, degree: int, drawn: Mapping[Family, Sequence[GraphSummary]]
) -> list[Row]:
    """Return one team on the graphs of one degree; nearest-neighbour graphs are its own and are routed here."""
    distances, positions = subject.measured
    # On its own observations a team has different neighbours, but no claim is about the index of those graphs.
    forwarding = subject.n in plan.routed and not subject.own
    rows = []
    for family in Family:
        for known in drawn.get(family, [None]):
            graph = build(family, subject.n, degree, known.seed or 0 if known else 0, positions)
            summary = known or summarise_graph(graph, family.value, degree, forwarding=forwarding, seconds=plan.seconds)
            rows.append(compare(distances, graph, summary))
    return rows


def _settings(plan: Plan, n: int, degree: int) -> dict[str, Any]:
    routed = plan.routed.get(n, 0)
    about = {"n": n, "degree": degree, "seeds": list(plan.seeds), "routed": routed}
    return {**about, "seconds": plan.seconds if routed else None}


def _round(row: Row) -> Row:
    values: dict[str, Any] = {k: float(f"{v:.{DIGITS}g}") for k, v in vars(row).items() if isinstance(v, float)}
    return replace(row, **values)


EXPERIMENT = Experiment("expanders", "Graph families at equal numbers of edges", run, draw_expanders, Data)
