"""One hundred agents in training: SND over all pairs and over a Bernoulli-0.1 graph, every 25 iterations (section 6.1).

At paper scale the log of the committed run is read, three seeds on a GPU, and its first and last teams are looked at
again; at the others a shorter training is run here. Beside how closely the two curves run, it is asked how closely they
should: one draw of the graph has a known standard error, exactly.

Policies are compared on the observations of all agents, as equation (1) says. Beside that stands what the paper's log
compared, each policy on its own observations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.errors import InputError
from graphsnd.metric import graph_snd, pairwise, snd
from graphsnd.teams import StackedTeam, Team
from graphsnd.training import Row, Settings, Task, Trainer, preset, read_rows
from graphsnd.training.checkpoint import DESCRIPTION
from graphsnd.training.streams import hashed
from paper.cells import Cells
from paper.experiment import Experiment, Outcome, Scale
from paper.rows import encode
from paper.shared.expected import bernoulli_error
from paper.shared.pairloop import Answers, all_pairs, loop_mean, some_pairs
from paper.shared.rollouts import observe, on_own, one_thread, pooled, train_cell
from paper.shared.stopwatch import Conditions, take_turns
from paper.training.figure import training_figure
from paper.training.numbers import numbers

COMMITTED = "training/navigation-100"
P = 0.1
ROLLOUT_SEED, GRAPH_SEED = 42, 88
MEASURED = ("iteration", "seed", "reward", "snd", "graph_snd", "snd_seconds", "graph_snd_seconds", "behavior_seconds")

_TABLE = preset("navigation").settings


@dataclass(frozen=True)
class Size:
    """A training, and how it is looked at."""

    agents: int
    settings: Settings
    observations: int = 4096
    trials: int = 7  # of the timing, for each seed


SIZES = {
    Scale.SMOKE: Size(
        10, _TABLE.replace(iterations=3, steps=8, environments=4, minibatch=16, diversity_every=1), 64, 3
    ),
    # As many updates of an iteration as the paper has, on a quarter of the samples.
    Scale.LAPTOP: Size(
        100, _TABLE.replace(iterations=100, environments=8, minibatch=128, diversity_every=5), trials=11
    ),
    Scale.PAPER: Size(100, _TABLE),
}


def run(scale: Scale, cells: Cells) -> Outcome[Any, Any]:
    """Train, or read the log of the committed run; then look at the first and the last team of every seed."""
    size = SIZES[scale]
    sources = (f"results/{COMMITTED}",) if scale is Scale.PAPER else ()
    with one_thread():
        if sources:
            folder = cells.results / COMMITTED
            task = committed_task(folder)
        else:
            folder, task = cells.folder("training"), make_task(size)
            train_cell(task, cells, "training")
        ends, times = [], []
        for seed in task.seeds:
            about = {**task.to_dict(), "observations": size.observations, "seeds_here": [ROLLOUT_SEED, GRAPH_SEED]}
            about["team"] = fingerprint(folder, seed)
            ends += cells.get(f"ends,seed={seed}", about, partial(measure_ends, task, seed, folder, size))
            about["trials"] = size.trials
            times.append(cells.get(f"times,seed={seed}", about, partial(measure_times, task, seed, folder, size)))
    data = {**read_log(folder, task), "ends": ends, "times": times}
    return Outcome(data, numbers(data), task.seeds, sources)


def read_log(folder: Path, task: Task) -> dict[str, Any]:
    """What a training wrote down when it measured diversity, and how long it took."""
    rows = read_rows(folder)
    about = folder / "about.json"
    hardware = json.loads(about.read_text(encoding="utf-8"))["hardware"] if about.is_file() else {}
    return {
        "task": task.to_dict(),
        "machine": hardware.get("gpu") or "CPU",
        "probability": task.settings.diversity_probability,
        "log": [{key: getattr(row, key) for key in MEASURED} for row in rows if row.snd is not None],
        "training_seconds": training_seconds(rows),
    }


def fingerprint(folder: Path, seed: int) -> str:
    """Tells a team from that of another training in the same folder."""
    return hashlib.sha256((folder / f"seed-{seed}" / "team.safetensors").read_bytes()).hexdigest()[:16]


def make_task(size: Size) -> Task:
    """The training of a scale, in the paper's world for 100 agents.

    Example:
        >>> make_task(SIZES[Scale.PAPER]).to_dict()["options"]["agent_radius"]
        0.03
    """
    found = preset("navigation")
    return Task(found.world, size.agents, found.options, (0,), size.settings)


def committed_task(folder: Path) -> Task:
    """What the committed run was made from.

    Raises:
        InputError: Where there is no such run.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        raise InputError("results", f"with the run {COMMITTED}", str(folder), "Run another scale, or fetch results/.")
    return Task.from_dict(json.loads(path.read_text(encoding="utf-8")), path)


def training_seconds(rows: Sequence[Row]) -> dict[str, float]:
    """What acting and learning took, and what measuring did; of all stacked runs together."""
    acting = {row.iteration: row.rollout_seconds + row.update_seconds for row in rows}
    measured = [row for row in rows if row.snd is not None]
    return {
        "training": sum(acting.values()),
        "answers": sum(row.behavior_seconds or 0.0 for row in measured),
        "pairs": sum(row.snd_seconds or 0.0 for row in measured),
        "graph": sum(row.graph_snd_seconds or 0.0 for row in measured),
    }


def measure_ends(task: Task, seed: int, folder: Path, size: Size) -> list[dict[str, Any]]:
    """The first and the last team of a seed: SND, the error of one draw, and what policies on their own would give."""
    found = []
    for iteration, team in ((0, _first(task, seed)), (task.settings.iterations, _last(folder, seed))):
        seen = observe(team, task.make_world("cpu"), steps=task.settings.steps, seed=ROLLOUT_SEED + seed)
        with torch.no_grad():
            distances = pairwise(team.evaluate(pooled(seen, size.observations))).double()
        exact = float(distances.sum()) / (len(distances) * (len(distances) - 1))
        own = float(snd(on_own(team, seen, size.observations)))
        about = {"seed": seed, "iteration": iteration, "snd": exact, "own_snd": own}
        found.append({**about, "expected": bernoulli_error(distances, task.settings.diversity_probability) / exact})
    return found


def measure_times(task: Task, seed: int, folder: Path, size: Size) -> dict[str, Any]:
    """Time all pairs and a new graph, in a Python loop and in one fused call, on the last team of a seed."""
    team, device = _last(folder, seed), torch.device("cpu")
    seen = observe(team, task.make_world("cpu"), steps=task.settings.steps, seed=ROLLOUT_SEED + seed)
    with torch.no_grad():
        behavior = team.evaluate(pooled(seen, size.observations))
    if not isinstance(behavior, Gaussian):
        raise InputError("team", "of Gaussian policies", repr(behavior))
    calls = _calls(behavior, task.settings.diversity_probability, seed)
    for call in calls.values():
        call()
    return {
        "seed": seed,
        "conditions": encode(Conditions.now(device)),
        "calls": encode(take_turns(calls, trials=dict.fromkeys(calls, size.trials), device=device)),
    }


def _calls(behavior: Gaussian, p: float, seed: int) -> dict[str, Callable[[], int]]:
    n, answers = behavior.agents, Answers.of(behavior)
    pairs = all_pairs(n)
    everyone = pairs.tolist()
    drawn, generator = np.random.default_rng((GRAPH_SEED, seed)), hashed(GRAPH_SEED, seed)

    def loop_all() -> int:
        loop_mean(answers, everyone)
        return len(everyone)

    def loop_some() -> int:
        edges = some_pairs(pairs, p, drawn)
        loop_mean(answers, edges)
        return len(edges)

    def fused_all() -> int:
        float(snd(behavior))
        return len(everyone)

    def fused_some() -> int:
        graph = graphs.bernoulli(n, p, seed=generator)
        float(graph_snd(behavior, graph))
        return graph.m

    return {"loop, all": loop_all, "loop, graph": loop_some, "fused, all": fused_all, "fused, graph": fused_some}


def _first(task: Task, seed: int) -> StackedTeam:
    """The policies before the first update: weights are drawn on the host, so they are those of any device."""
    return Trainer(task.make_world("cpu"), task.settings, seeds=(seed,)).team(seed)


def _last(folder: Path, seed: int) -> StackedTeam:
    found = Team.load(folder / f"seed-{seed}")
    if not isinstance(found, StackedTeam):
        raise InputError("team", "of stacked policies", repr(found))
    return found


EXPERIMENT = Experiment("training", "One hundred agents in training: sampled against full SND", run, training_figure)
