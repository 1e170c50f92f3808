"""The runs of the study of levels, as stacks that take a GPU less than ten minutes each, and their estimated times.

Three tasks at eight levels with five seeds: dispersion, where roles should pay; navigation, where each agent sees its
own goal, so that one shared policy is the best and forced diversity must cost reward; and simple spread, which may go
either way. One stack trains all levels of a task with all pairs of agents, and searches for the best level. Another one
trains the same levels with a tenth of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from typing import Any

from graphsnd.files import read_json
from graphsnd.rl import PRESETS, Task
from graphsnd.rl.log import Row, read_rows
from paper.control.logs import group_by
from paper.runner import RESULTS, Stacks

SEEDS = (0, 1, 2, 3, 4)
ALL, TENTH = "complete", "bernoulli:0.1"
ITERATIONS = 167  # as in the paper's study
PAPER = PRESETS["dispersion-10"].settings  # 600 environments
FEW = PAPER.replace(environments=120)
TIMED = RESULTS.parents[1] / "benchmarks" / "results" / "training" / "h200.json"


@dataclass(frozen=True)
class Studied:
    """A task of the study."""

    world: str
    agents: int
    levels: tuple[float, ...]  # between 0 and unconstrained
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def sought(self) -> str:
        """The range in which the level is sought, as a target."""
        return f"seek:{self.levels[0]:g}:{self.levels[-1]:g}"

    def task(self, design: str = ALL, *, seeds: tuple[int, ...] = SEEDS, environments: int = 120) -> Task:
        """Return the runs with one design; with all pairs also the levels that need none, and the one that is sought.

        Args:
            design: Which pairs the controller measures.
            seeds: Seeds; each gives one run of every level.
            environments: Number of environments; with the paper's number every second level, and none is searched for.
        """
        targets: tuple[float | str, ...] = self.levels
        if environments != FEW.environments:
            targets = ("homogeneous", *self.levels[1::2], "unconstrained")
        elif design == ALL:
            targets = ("homogeneous", *self.levels, "unconstrained", self.sought)
        settings = FEW.replace(environments=environments, iterations=ITERATIONS)
        return Task(self.world, self.agents, self.options, seeds, targets, (design,), settings)


# Unconstrained teams of ten reach an SND of 0.9 to 1 in dispersion (results/control); for the others see RULES.md.
STUDIED = {
    "dispersion": Studied("dispersion", 10, (0.05, 0.1, 0.2, 0.4, 0.6, 0.9), PRESETS["dispersion-10"].options),
    "simple_spread": Studied("simple_spread", 6, (0.1, 0.25, 0.5, 1.0, 2.0, 4.0), {"horizon": 25}),
    "navigation": Studied("navigation", 4, (0.05, 0.1, 0.2, 0.4, 0.6, 0.9), {"shared_rew": False, "horizon": 100}),
}
STACKS: dict[str, Task] = {
    f"beyond/{name}/{design.partition(':')[0]}": studied.task(design)
    for name, studied in STUDIED.items()
    for design in (ALL, TENTH)
}
# Does the answer depend on the number of frames? The paper's 600 environments, one stack per seed.
STACKS |= {
    f"beyond/dispersion-600/seed-{seed}": STUDIED["dispersion"].task(seeds=(seed,), environments=600)
    for seed in SEEDS[:3]
}
# How well DiCo holds larger teams, with all pairs, a tenth of them, and eight random agents at each observation.
LARGE: Stacks = {
    f"beyond/large/{agents}": Task(
        "dispersion", agents, PRESETS["dispersion-50"].options, (0, 1), (0.12,), (ALL, TENTH, "agents:8"),
        FEW.replace(iterations=iterations),
    )
    for agents, iterations in ((100, 100), (200, 60))
}  # fmt: skip


@lru_cache(maxsize=1)
def fit_cost() -> tuple[float, float]:
    """Return the seconds of a gradient step of one stacked run: the constant part, and the part for each agent.

    The line is through twelve runs of 10 agents (``benchmarks/results/training/h200.json``) and nine of 50
    (``results/control/n50``), both with 2,048 observations on an H200.
    """
    timed = read_json(TIMED, TIMED.name)["controlled"]
    small = next(case for case in timed if case["observations"] == FEW.observations)
    rows = read_rows(RESULTS / "control" / "n50")
    runs = len({(row.arm, row.target, row.seed) for row in rows})
    seconds = [each / runs / FEW.optimiser_steps for each in iteration_seconds(rows)]
    less = small["per_run_s"] / small["gradient_steps"]
    each: float = (median(seconds[len(seconds) // 2 :]) - less) / (50 - small["agents"])
    return less - each * small["agents"], each


def iteration_seconds(rows: Iterable[Row]) -> list[float]:
    """Return what each iteration of a stack took, from its log."""
    seconds = []
    for same in group_by(rows, lambda row: row.iteration).values():
        arms = {row.arm: (row.policy_seconds or 0.0) + (row.distance_seconds or 0.0) for row in same}
        shared = same[0].rollout_seconds + same[0].update_seconds + (same[0].audit_seconds or 0.0)
        seconds.append(shared + sum(arms.values()))
    return seconds


def estimate_minutes(task: Task) -> float:
    """Return the minutes that a stack should take on an H200."""
    base, each = fit_cost()
    steps = task.settings.iterations * task.settings.optimiser_steps
    return len(task.runs()) * steps * (base + each * (task.agents or 0)) / 60
