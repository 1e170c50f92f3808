"""Designs beyond the paper: pairs that are redrawn at every observation, on the same teams (Table 3, section 7).

One graph for all observations keeps its error, however many observations there are. Pairs that are redrawn at every
observation cost the same, and their errors average out. A graph, however sparse, also touches every agent, so every
policy is still evaluated on every observation. With a few random agents at each observation only those are evaluated.

Teams are those of the n = 100 run, and untrained ones of navigation and of dispersion with 50 agents, each on pooled
observations of a rollout of its own. Measured errors stand beside the exact ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.designs import SamplingPlan, measure_errors
from graphsnd import graphs
from graphsnd.designs.design import Agents, Bernoulli, Matching, Regular, Ring, Uniform
from graphsnd.metric import pairwise, snd
from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.rl.streams import hashed
from graphsnd.teams import StackedTeam
from paper.designs_figure import Data, Evaluations, Role, Row, TeamRows, draw_designs
from paper.experiment import Experiment, Number, Outcome, Scale
from paper.runner import Cells
from paper.shared.calls import fused_call
from paper.shared.expected import Redrawn, bernoulli_error, regular_error
from paper.shared.rollouts import observe, one_thread, pooled
from paper.shared.stopwatch import take_turns
from paper.training import COMMITTED, STACKS, fingerprint, last_team

P = 0.1
STEPS, ENVIRONMENTS = 64, 16
ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED = 42, 1000, 99


@dataclass(frozen=True)
class Size:
    """The amount of work at one scale."""

    trained: tuple[int, ...]  # seeds of the committed run
    untrained: dict[str, int]  # world and number of agents
    observations: int
    draws: int
    trials: int  # number of timed trials, and of graphs of 100 agents


SIZES = {
    Scale.SMOKE: Size((), {"navigation": 12}, 64, 4, 3),
    Scale.LAPTOP: Size((0,), {"dispersion": 50}, 1024, 200, 7),
    Scale.PAPER: Size((0, 1, 2), {"navigation": 100, "dispersion": 50}, 4096, 200, 21),
}


@dataclass(frozen=True)
class Subject:
    """A team that designs are compared on, and how to make it with its observations."""

    world: str
    trained_seed: int | None
    n: int
    make: Callable[[], tuple[StackedTeam, Tensor]]

    @property
    def cell(self) -> str:
        """The name of its cell."""
        return (
            f"{self.world},n={self.n}" if self.trained_seed is None else f"trained,n={self.n},seed={self.trained_seed}"
        )


def run(scale: Scale, cells: Cells) -> Outcome:
    """Draw every design on every team, and time the policy evaluations that all designs share."""
    size, folder = SIZES[scale], cells.find(COMMITTED)
    subjects = list(make_subjects(size, folder))
    settings: dict[str, Any] = {"observations": size.observations, "steps": STEPS, "environments": ENVIRONMENTS}
    settings["seeds"] = [ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED]
    sources: tuple[str, ...] = ()
    if folder and any(subject.trained_seed is not None for subject in subjects):
        sources = (f"results/{COMMITTED}",)
        settings["teams"] = [fingerprint(folder, seed) for seed in size.trained]
    with one_thread():
        drawn = {**settings, "draws": size.draws}
        teams = [cells.get(one.cell, drawn, partial(measure_team, one, size.draws), TeamRows) for one in subjects]
        timed, first = {**settings, "trials": size.trials}, subjects[0]
        times = cells.get("evaluations", timed, partial(measure_evaluations, first, size.trials), Evaluations)
    data = Data(tuple(teams), times)
    return Outcome(data, summarise(data), (*size.trained, ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED), sources)


def make_subjects(size: Size, folder: Path | None) -> Iterator[Subject]:
    """Yield the teams: trained ones if the committed run exists, then untrained ones."""
    if folder:
        for seed in size.trained:
            yield Subject("navigation", seed, 100, partial(_load_trained, folder, seed, size.observations))
    for world, n in size.untrained.items():
        yield Subject(world, None, n, partial(_make_untrained, world, n, size.observations))


def _load_trained(folder: Path, seed: int, observations: int) -> tuple[StackedTeam, Tensor]:
    team = last_team(folder, seed)
    return team, _roll_out(team, STACKS[COMMITTED], ROLLOUT_SEED + seed, observations)


def _make_untrained(world: str, n: int, observations: int) -> tuple[StackedTeam, Tensor]:
    """Return policies with a last layer initialised like the others, so that differences are not scaled down."""
    options = PRESETS["navigation-100"].options if world == "navigation" else {}
    task = Task(world, n, options, (0,), settings=Settings(actor_gain=1.0))
    team = Trainer(task.make_world("cpu"), task.settings).team(0)
    return team, _roll_out(team, task, ROLLOUT_SEED, observations)


def _roll_out(team: StackedTeam, task: Task, seed: int, observations: int) -> Tensor:
    """Return pooled observations of a rollout."""
    world = replace(task, settings=task.settings.replace(environments=ENVIRONMENTS)).make_world("cpu")
    return pooled(observe(team, world, steps=STEPS, seed=seed), observations, seed=seed)


def choose_designs(distances: Tensor, redrawn: Redrawn) -> Iterator[tuple[Role, SamplingPlan, float]]:
    """Yield the designs with their exact errors.

    They are Bernoulli-0.1, other single graphs with about as many pairs, redrawn pairs with as many or fewer, and the
    cheapest designs that are as accurate as Bernoulli-0.1.

    Args:
        distances: Distances of all pairs, ``[n, n]``.
        redrawn: Redrawn estimates of the same team.
    """
    n, total = len(distances), math.comb(len(distances), 2)
    values = distances[tuple(torch.triu_indices(n, n, offset=1))]
    edges = round(P * total)
    degree = max(1, round(2 * edges / n))
    degree += n * degree % 2  # a regular graph needs an even sum of degrees
    target = bernoulli_error(distances, P)
    yield Role.BERNOULLI, SamplingPlan(Bernoulli(P)), target
    # The Horvitz-Thompson sum has independent terms: its variance is that of each pair's indicator over p.
    weighted = math.sqrt((1 - P) / P * float(values.square().sum())) / total
    yield Role.HORVITZ_THOMPSON, SamplingPlan(Bernoulli(P), "horvitz-thompson"), weighted
    sampled = float(values.std(correction=1)) * math.sqrt((1 - edges / total) / edges)
    yield Role.UNIFORM, SamplingPlan(Uniform(edges)), sampled
    yield Role.REGULAR, SamplingPlan(Regular(degree)), regular_error(distances, degree)
    ring, agents = Ring(max(2, 2 * (edges // n))), Agents(max(2, (1 + math.isqrt(1 + 8 * edges)) // 2))
    yield Role.RING, SamplingPlan(ring), redrawn.error(ring)
    yield Role.MATCHING, SamplingPlan(Matching()), redrawn.error(Matching())
    yield Role.AGENTS, SamplingPlan(agents), redrawn.error(agents)
    few = find_fewest_pairs(redrawn, target)
    yield Role.FEWEST_DISTANCES, SamplingPlan(few), redrawn.error(few)
    subset, count = find_fewest_agents(redrawn, target)
    fewest = SamplingPlan(subset, max_observations=count)
    yield Role.FEWEST_EVALUATIONS, fewest, redrawn.error(subset, count)


def find_fewest_pairs(redrawn: Redrawn, error: float) -> Matching:
    """Return the smallest number of disjoint pairs, redrawn at every observation, whose error is at most ``error``.

    If no smaller number is enough, all agents are in a pair.
    """
    most = redrawn.agents // 2
    return next((d for d in map(Matching, range(1, most)) if redrawn.error(d) <= error), Matching(most))


def find_fewest_agents(redrawn: Redrawn, error: float) -> tuple[Agents, int]:
    """Return the random agents and the number of random observations with the fewest evaluations at this error."""
    best, least = (Agents(redrawn.agents), redrawn.observations), redrawn.agents * redrawn.observations
    for agents in range(2, redrawn.agents):
        count = max(2, redrawn.observations_for(Agents(agents), error))
        if count <= redrawn.observations and count * agents < least:
            best, least = (Agents(agents), count), count * agents
    return best


@torch.no_grad()
def measure_team(subject: Subject, draws: int) -> TeamRows:
    """Return errors and costs of all designs on one team."""
    team, observations = subject.make()
    behavior = team.evaluate(observations)
    truth = float(snd(behavior))
    rows = []
    for role, plan, exact in choose_designs(pairwise(behavior).double(), Redrawn.of(behavior)):
        errors = measure_errors(behavior, plan, truth, draws=draws, seed=DRAW_SEED)
        rows.append(Row(**vars(errors), role=role, exact=exact / truth))
    return TeamRows(subject.world, subject.trained_seed, behavior.agents, len(observations), truth, draws, tuple(rows))


@torch.no_grad()
def measure_evaluations(subject: Subject, trials: int) -> Evaluations:
    """Time all policies on all observations beside all pairs, and count the agents that a sparse graph touches."""
    team, observations = subject.make()
    behavior = team.evaluate(observations)

    def evaluate() -> int:
        team.evaluate(observations)
        return 0

    timings = take_turns({"answers": evaluate, "pairs": fused_call(behavior)}, trials=trials, warm=1)
    drawn = [graphs.bernoulli(100, P, seed=hashed(GRAPH_SEED, k)) for k in range(max(20, trials))]
    touched = [float((graph.degrees() > 0).double().mean()) for graph in drawn]
    seconds = {name: timing.seconds for name, timing in timings.items()}
    return Evaluations(behavior.agents, seconds, touched)


def summarise(data: Data) -> dict[str, Number | None]:
    """Return the numbers of all teams; those that need 100 agents, or trained ones, are None without them."""
    teams, times, mean = data.teams, data.evaluations, statistics.fmean
    scores = [abs(row.bias) / row.bias_error for team in teams for row in team.designs if row.bias_error]
    shares = [a / (a + b) for a, b in zip(times.seconds["answers"], times.seconds["pairs"], strict=True)]
    regular = [team.error_ratio(Role.REGULAR) for team in teams if team.trained_seed is not None]
    distances = [team.share(Role.FEWEST_DISTANCES, "distances") for team in teams]
    evaluations = [team.share(Role.FEWEST_EVALUATIONS, "evaluations") for team in teams]
    return {
        "fresh_over_graph_rmse": Number.range([team.error_ratio(Role.RING) for team in teams], "teams"),
        "distances_needed": Number.range(distances, "teams"),
        "evaluations_needed": Number.range(evaluations, "teams"),
        "largest_design_z": Number(max(scores), kind=f"largest of {len(scores)}"),
        "evaluations_of_graph": Number.range(times.touched, "graphs", pick=mean),
        "evaluation_share": Number.range(shares, "trials", pick=statistics.median) if times.n == 100 else None,
        "regular_over_bernoulli_rmse": Number.range(regular, "teams", pick=mean) if regular else None,
    }


TITLE = "Beyond the paper: pairs and agents redrawn at every observation"
EXPERIMENT = Experiment("designs", TITLE, run, draw_designs, Data)
