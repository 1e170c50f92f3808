"""SND of a thousand agents while they learn: how far sampled pairs are off, and what measuring adds to an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch

from benchmarks.designs import SamplingPlan, measure_errors
from benchmarks.training import LARGE
from graphsnd import designs, evaluate, snd
from graphsnd.rl import Task, Trainer
from paper.shared.rollouts import pooled

PLANS = ("bernoulli:0.1", "ring:2", "agents:8")  # a tenth of the pairs, n of them, and 28 among eight agents
WHEN = (1, 10, 25, 50, 100, 200, 300, 400, 500)
OBSERVATIONS, DRAWS = 4096, 20
OFF = 0.05  # largest relative error (root mean square over draws) that is accurate enough to log


@dataclass(frozen=True)
class Moment:
    """One iteration of the training."""

    iteration: int
    iteration_s: float  # seconds without measuring
    snd: float  # over all pairs
    snd_s: float  # seconds for policies and distances
    errors: dict[str, float]  # relative error by design, root mean square over draws


def run_online(
    task: Task = LARGE,
    *,
    when: Sequence[int] = WHEN,
    plans: Sequence[str] = PLANS,
    observations: int = OBSERVATIONS,
    draws: int = DRAWS,
    device: str = "cuda",
) -> list[Moment]:
    """Train independent agents, and measure them at some iterations on observations of their last rollout.

    Args:
        task: A task with one run.
        when: Iterations at which to measure, in order.
        plans: Designs, as :func:`graphsnd.designs.parse` reads them.
        observations: Largest number of observations to measure on.
        draws: Number of draws of each design.
        device: Device that trains and measures.
    """
    trainer, moments = Trainer(task.make_world(device), task.settings, seeds=task.seeds), []
    for iteration in range(1, when[-1] + 1):
        begin = perf_counter()
        trainer.step()
        _wait(device)
        took = perf_counter() - begin
        if iteration in when:
            moments.append(_measure(trainer, iteration, took, plans, observations, draws))
    return moments


@torch.no_grad()
def _measure(
    trainer: Trainer, iteration: int, took: float, plans: Sequence[str], observations: int, draws: int
) -> Moment:
    seen, begin = pooled(trainer.buffer.observations[0], observations, seed=iteration), perf_counter()
    behavior = evaluate(trainer.team(trainer.seeds[0]), seen)
    exact = float(snd(behavior))
    seconds = perf_counter() - begin
    plan = {text: SamplingPlan(designs.parse(text)) for text in plans}
    errors = {text: measure_errors(behavior, one, exact, draws=draws, seed=1000).rmse for text, one in plan.items()}
    return Moment(iteration, took, exact, seconds, errors)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
