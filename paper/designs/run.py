"""What the paper does not have: pairs that are redrawn at every observation, on the same teams (Table 3, section 7).

A graph that is kept for all observations keeps its error, however many observations there are. Pairs that are drawn
anew at every observation cost the same and average it away. And a graph, however sparse, touches every agent, so every
policy is still evaluated on every observation; a few random agents at each observation are not.

Teams are those of the n = 100 run, and untrained ones of navigation and of dispersion with 50 agents, each on pooled
observations of a rollout of its own. Measured errors stand beside the exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.design_errors import design_name, measure_errors
from graphsnd import graphs
from graphsnd.estimation import (
    AgentSubset,
    Design,
    FixedGraph,
    FreshCirculant,
    FreshDesign,
    FreshMatching,
    ObservationSubset,
    Weighting,
)
from graphsnd.metric import pairwise, snd
from graphsnd.teams import StackedTeam, Team
from graphsnd.training import Settings, Task, Trainer, preset
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.designs.benchmarks import read_benchmarks
from paper.designs.figure import designs_figure
from paper.designs.numbers import numbers
from paper.experiment import Experiment, Outcome, Scale
from paper.rows import encode
from paper.shared.expected import Redrawn, bernoulli_error, regular_error
from paper.shared.rollouts import observe, one_thread, pooled
from paper.shared.stopwatch import Conditions, take_turns
from paper.training.run import COMMITTED, committed_task, fingerprint

Make = Callable[[], tuple[StackedTeam, Tensor]]

P = 0.1
STEPS, ENVIRONMENTS = 64, 16
ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED = 42, 1000, 99


@dataclass(frozen=True)
class Size:
    """How much is done."""

    trained: tuple[int, ...]  # seeds of the committed run
    untrained: dict[str, int]  # world and number of agents
    observations: int
    draws: int
    trials: int  # of the timing, and of graphs of 100 agents


SIZES = {
    Scale.SMOKE: Size((), {"navigation": 12}, 64, 4, 3),
    Scale.LAPTOP: Size((0,), {"dispersion": 50}, 1024, 200, 7),
    Scale.PAPER: Size((0, 1, 2), {"navigation": 100, "dispersion": 50}, 4096, 200, 21),
}


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Draw every design on every team, and time what all of them have in common."""
    size = SIZES[scale]
    jobs, sources = make_jobs(size, cells)
    settings: dict[str, Any] = {"observations": size.observations, "steps": STEPS, "environments": ENVIRONMENTS}
    settings["seeds"] = [ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED]
    if sources:
        settings["teams"] = [fingerprint(cells.results / COMMITTED, seed) for seed in size.trained]
    with one_thread():
        drawn = {**settings, "draws": size.draws}
        teams = [cells.get(label, drawn, partial(measure, label, make, size)) for label, make in jobs.items()]
        timed, first = {**settings, "trials": size.trials}, next(iter(jobs.values()))
        times = cells.get("evaluations", timed, partial(measure_evaluations, first, size.trials))
    data = {"size": asdict(size), "probability": P, "teams": teams, "evaluations": times, "benchmarks": []}
    if scale is Scale.PAPER:
        data["benchmarks"], read = read_benchmarks(cells.results)
        sources += read
    return Outcome(data, numbers(data), (*size.trained, ROLLOUT_SEED, DRAW_SEED, GRAPH_SEED), tuple(sources))


def make_jobs(size: Size, cells: Cells) -> tuple[dict[str, Make], list[str]]:
    """How to make every team, by name; and the committed results that it takes."""
    jobs: dict[str, Make] = {}
    folder, sources = cells.results / COMMITTED, []
    if size.trained and folder.is_dir():
        sources.append(f"results/{COMMITTED}")
        for seed in size.trained:
            jobs[f"trained,n=100,seed={seed}"] = partial(_trained, folder, seed, size.observations)
    for world, n in size.untrained.items():
        jobs[f"{world},n={n}"] = partial(_untrained, world, n, size.observations)
    return jobs, sources


def designs(n: int) -> list[Design]:
    """Bernoulli-0.1, other single graphs of about as many pairs, and redrawn pairs of as many or fewer.

    Example:
        >>> [(design.name, design.pairs(100)) for design in designs(100)][3:5]
        [('fixed regular:10', 500.0), ('fresh circulant of degree 8', 400)]
    """
    edges = round(P * math.comb(n, 2))
    degree = max(1, round(2 * edges / n))
    return [
        FixedGraph.bernoulli(P),
        FixedGraph.bernoulli(P, Weighting.HORVITZ_THOMPSON),
        FixedGraph.uniform(edges),
        FixedGraph.regular(degree + n * degree % 2),
        FreshCirculant(max(2, 2 * (edges // n))),
        FreshMatching(),
        AgentSubset(max(2, (1 + math.isqrt(1 + 8 * edges)) // 2)),
    ]


@torch.no_grad()
def measure(label: str, make: Make, size: Size) -> dict[str, Any]:
    """Errors and costs of all designs on one team, and of the cheapest that are as good as Bernoulli-0.1."""
    team, observations = make()
    behavior = team.evaluate(observations)
    n, truth = behavior.agents, float(snd(behavior))
    redrawn, distances = Redrawn.of(behavior), pairwise(behavior).double()
    target = bernoulli_error(distances, P)
    contest: list[tuple[str, Design]] = [("", design) for design in designs(n)]
    contest += [
        ("fewest distances", fewest_pairs(redrawn, target)),
        ("fewest evaluations", fewest_agents(redrawn, target)),
    ]
    rows = []
    for role, design in contest:
        found = asdict(measure_errors(behavior, design, truth, draws=size.draws, seed=DRAW_SEED))
        found["observations_total"] = len(observations)
        expected = _expected(design, distances, redrawn)
        rows.append({**found, "role": role, "exact": None if expected is None else expected / truth})
    return {
        "team": label,
        "n": n,
        "observations": len(observations),
        "snd": truth,
        "draws": size.draws,
        "designs": rows,
    }


def fewest_pairs(redrawn: Redrawn, error: float) -> FreshMatching:
    """The smallest number of disjoint pairs, redrawn at every observation, whose error is at most ``error``.

    Everybody in a pair where no smaller number will do.
    """
    most = redrawn.agents // 2
    return next((d for d in map(FreshMatching, range(1, most)) if redrawn.error(d) <= error), FreshMatching(most))


def fewest_agents(redrawn: Redrawn, error: float) -> ObservationSubset:
    """So many random agents at so many random observations that evaluations are fewest at an error of ``error``."""
    best = ObservationSubset(redrawn.observations, AgentSubset(redrawn.agents))
    for agents in range(2, redrawn.agents):
        count = max(2, redrawn.observations_for(AgentSubset(agents), error))
        if count <= redrawn.observations and count * agents < best.count * best.evaluations(redrawn.agents):
            best = ObservationSubset(count, AgentSubset(agents))
    return best


def _expected(design: Design, distances: Tensor, redrawn: Redrawn) -> float | None:
    n, total = len(distances), math.comb(len(distances), 2)
    if isinstance(design, ObservationSubset) and isinstance(design.design, FreshDesign):
        return redrawn.error(design.design, design.count)
    if isinstance(design, FreshDesign):
        return redrawn.error(design)
    values = distances[tuple(torch.triu_indices(n, n, offset=1))]
    kind, _, number = design.name.partition(":")
    if design_name(design).endswith("HT"):
        return math.sqrt((1 - P) / P * float(values.square().sum())) / total
    if kind == "fixed bernoulli":
        return bernoulli_error(distances, P)
    if kind == "fixed uniform":
        return float(values.std(correction=1)) * math.sqrt((1 - int(number) / total) / int(number))
    return regular_error(distances, int(number)) if kind == "fixed regular" else None


@torch.no_grad()
def measure_evaluations(make: Make, trials: int) -> dict[str, Any]:
    """Time of all policies on all observations beside that of all pairs; and whom a sparse graph leaves out."""
    team, observations = make()
    device, behavior = torch.device("cpu"), team.evaluate(observations)

    def answer() -> int:
        team.evaluate(observations)
        return 0

    def count() -> int:
        float(snd(behavior))
        return math.comb(behavior.agents, 2)

    answer()
    count()
    calls = {"answers": answer, "pairs": count}
    found = encode(take_turns(calls, trials=dict.fromkeys(calls, trials), device=device))
    return {
        "n": behavior.agents,
        "observations": len(observations),
        "conditions": encode(Conditions.now(device)),
        "seconds": {key: one["seconds"] for key, one in found.items()},
        "touched": [_touched(hashed(GRAPH_SEED, k)) for k in range(max(20, trials))],
    }


def _touched(generator: torch.Generator) -> float:
    """The share of 100 agents that have an edge in a Bernoulli-0.1 graph."""
    return float((graphs.bernoulli(100, P, seed=generator).degrees() > 0).double().mean())


def _trained(folder: Path, seed: int, observations: int) -> tuple[StackedTeam, Tensor]:
    team = Team.load(folder / f"seed-{seed}")
    assert isinstance(team, StackedTeam)  # what training saves
    return team, _look(team, committed_task(folder), ROLLOUT_SEED + seed, observations)


def _untrained(world: str, n: int, observations: int) -> tuple[StackedTeam, Tensor]:
    """Policies whose last layer is as large as the others, so that they differ as much as drawing them makes them."""
    options = preset("navigation").options if world == "navigation" else {}
    task = Task(world, n, options, (0,), Settings(actor_gain=1.0))
    team = Trainer(task.make_world("cpu"), task.settings).team(0)
    return team, _look(team, task, ROLLOUT_SEED, observations)


def _look(team: StackedTeam, task: Task, seed: int, observations: int) -> Tensor:
    """Pooled observations of a rollout."""
    world = replace(task, settings=task.settings.replace(environments=ENVIRONMENTS)).make_world("cpu")
    return pooled(observe(team, world, steps=STEPS, seed=seed), observations, seed=seed)


EXPERIMENT = Experiment(
    "designs", "Beyond the paper: pairs and agents redrawn at every observation", run, designs_figure
)
