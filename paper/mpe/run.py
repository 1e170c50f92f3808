"""Does the graph layer carry over to discrete actions? Ten agents of simple_spread, total variation (Appendix B).

Independent PPO with the constants of the preset ``simple_spread``: 20 rollouts of 25 cycles an iteration, hidden layers
64-64 with ReLU and the initialisation of ``torch.nn.Linear``, Adam at 3e-4, 4 epochs, minibatches of 256 of the 500
samples of an agent, discount 0.99, lambda 0.95, clip 0.2, entropy bonus 0.01, gradient norm 0.5 for each agent. All
agents learn from the same 20 rollouts, and no reward of them is lost.

Policies are compared on the observations of a rollout of their own, those of all agents pooled, as equation (1) says.
Beside that stands the protocol behind the paper's table, in which the only "observation" is a vector of standard normal
noise that no agent ever sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import Categorical
from graphsnd.errors import InputError
from graphsnd.metric import edge_distances
from graphsnd.teams import StackedTeam
from graphsnd.training import Task, Trainer, preset, read_rows
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.experiment import Experiment, Outcome, Scale
from paper.mpe.figure import mpe_figure
from paper.mpe.numbers import numbers
from paper.mpe.panel import DRAW_SEED, ESTIMATORS, disconnected, draw, summarise
from paper.mpe.times import GRAPH_SEED, measure_times
from paper.rows import encode
from paper.shared.rollouts import observe, one_thread, pooled, train_cell
from paper.shared.stopwatch import Conditions

AGENTS = 10
REGIMES, PROTOCOLS = ("trained", "random-init"), ("rollout", "noise")
ROLLOUT_SEED, NOISE_SEED = 42, 66


@dataclass(frozen=True)
class Size:
    """How much is done."""

    iterations: int
    environments: int  # rollouts of an iteration
    seeds: tuple[int, ...]
    draws: int
    trials: int  # of the timing


SIZES = {
    Scale.SMOKE: Size(iterations=2, environments=4, seeds=(0,), draws=100, trials=5),
    Scale.LAPTOP: Size(iterations=200, environments=20, seeds=(0, 1, 2), draws=2000, trials=200),
    Scale.PAPER: Size(iterations=500, environments=20, seeds=(0, 1, 2), draws=2000, trials=500),
}


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Train, look at what policies do, draw graphs, and time them."""
    size, task = SIZES[scale], make_task(SIZES[scale])
    looked = {**task.to_dict(), "seeds_of_rollout_and_noise": [ROLLOUT_SEED, NOISE_SEED]}
    with one_thread():
        teams = cells.get("teams", looked, partial(measure_teams, task, cells))
        drawn = {**looked, "draws": size.draws, "draw_seed": DRAW_SEED}
        panel = []
        for seed in size.seeds:
            panel += cells.get(f"panel,seed={seed}", drawn, partial(measure_seed, teams["teams"], seed, size.draws))
        timed = {**looked, "trials": size.trials, "graph_seed": GRAPH_SEED}
        times = cells.get("times", timed, partial(_times, task, cells, size.trials))
    data = {"size": asdict(size), "agents": AGENTS, **teams, "panel": panel, "times": times}
    return Outcome(data, numbers(data), size.seeds)


def make_task(size: Size) -> Task:
    """The training of a scale.

    Example:
        >>> make_task(SIZES[Scale.PAPER]).settings.samples
        500
    """
    found = preset("simple_spread")
    settings = found.settings.replace(iterations=size.iterations, environments=size.environments)
    return Task(found.world, AGENTS, found.options, size.seeds, settings)


def measure_teams(task: Task, cells: Cells) -> dict[str, Any]:
    """Train, and take the distances of all teams, before and after, on both kinds of observations."""
    fresh, learner = (
        Trainer(task.make_world("cpu"), task.settings, seeds=task.seeds),
        train_cell(task, cells, "training"),
    )
    rows = []
    for regime, trainer in zip(REGIMES, (learner, fresh), strict=True):
        for seed in task.seeds:
            for protocol in PROTOCOLS:
                behavior = answers(trainer, seed, protocol)
                distances = edge_distances(behavior, graphs.complete(AGENTS)).double()
                about = {"regime": regime, "seed": seed, "protocol": protocol, "observations": behavior.observations}
                rows.append({**about, "snd": float(distances.mean()), "distances": distances.tolist()})
    return {"teams": rows, "curve": _curve(cells)}


def answers(trainer: Trainer, seed: int, protocol: str) -> Categorical:
    """What the policies of a seed do on the observations of a protocol.

    Args:
        trainer: Before or after training.
        seed: Which of its runs.
        protocol: ``"rollout"``, all observations of all agents in as many episodes as training has in an iteration, or
            ``"noise"``, one vector of standard normal numbers.
    """
    team, world = trainer.team(seed), trainer.world
    if protocol == "rollout":
        seen = observe(team, world, steps=trainer.settings.steps, seed=ROLLOUT_SEED + seed)
        return _answers(team, pooled(seen, seen.numel()))
    return _answers(team, torch.randn(1, world.observation_features, generator=hashed(NOISE_SEED, seed)))


@torch.no_grad()
def _answers(team: StackedTeam, observations: Tensor) -> Categorical:
    found = team.evaluate(observations)
    if not isinstance(found, Categorical):
        raise InputError("team", "of categorical policies", repr(found))
    return found


def measure_seed(teams: Sequence[dict[str, Any]], seed: int, draws: int) -> list[dict[str, Any]]:
    """All estimators on the teams of a seed, on the same graphs."""
    rows = []
    for estimator in ESTIMATORS:
        chosen = draw(estimator, AGENTS, draws, seed)
        apart = disconnected(chosen)
        for team in teams:
            if team["seed"] == seed:
                about = {key: team[key] for key in ("regime", "seed", "protocol", "snd")}
                distances = torch.tensor(team["distances"], dtype=torch.float64)
                rows.append({**about, "disconnected": apart, **summarise(estimator, chosen, distances)})
    return rows


def _curve(cells: Cells) -> list[dict[str, Any]]:
    """Reward and SND over training."""
    rows = read_rows(cells.folder("training"))
    keys = ("iteration", "seed", "reward", "entropy", "snd", "graph_snd", "solved")
    return [{key: getattr(row, key) for key in keys} for row in rows if row.snd is not None]


def _times(task: Task, cells: Cells, trials: int) -> dict[str, Any]:
    """On the trained team of the first seed, on both kinds of observations."""
    learner = train_cell(task, cells, "training")
    found = {name: measure_times(answers(learner, task.seeds[0], name), trials) for name in PROTOCOLS}
    return {**found, "conditions": encode(Conditions.now(torch.device("cpu")))}


EXPERIMENT = Experiment("mpe", "Ten agents with discrete actions: simple_spread and total variation", run, mpe_figure)
