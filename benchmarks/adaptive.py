"""How much smaller is the error of SND when pairs are chosen by what is known about the team?

rmse: root mean square relative error at 4,096 observations, from the mean squared error at single observations.

gain: squared error of a fresh ring over that of the row, at as many distances and policy evaluations: a gain of 2
halves the distances for the same error. after_belief: the same, with the distances behind the belief counted too.

agents: random agents, as many as an agent of the ring has partners and one more, in passes that make evaluations and
distances equal.

worst_factor: what the design states: the largest squared error over that of as many random pairs, for any team.

factor: the measured one for this team. Beliefs of another team are wrong on purpose.

training: the belief is the distances of the team before the last iteration, on 16 of its observations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks.timing import Options, Tables
from graphsnd import kernels
from graphsnd.analysis import roles
from graphsnd.behavior import Behavior, Deterministic, Points, embed
from graphsnd.designs import Adaptive, Agents, Design, Ring, adapt
from graphsnd.plots.team import example_team
from graphsnd.teams import Team, evaluate
from graphsnd.teams.files import OBSERVATIONS
from graphsnd.training import Settings, Task
from graphsnd.training.diversity import pool_observations

ALL = 4096  # observations that errors are stated for
DEGREES = (2, 4, 8, 16)


def measure(options: Options) -> dict[str, Any]:
    """Compare adaptive designs on teams with roles, on trained teams, and during training."""
    degrees, draws = ((4,), 2) if options.quick else (DEGREES, 10)
    rows, trained = [], [*_trained(options)]
    for name, team in [*_synthetic(options), *trained]:
        options.step(f"adaptive designs, {name}")
        others = [other for label, other in trained if label != name and other.agents == team.agents]
        for degree in degrees:
            rows += compare(name, team, degree, others[:1], draws=draws, seed=options.seed)
    sizes = ((8, 2, 2),) if options.quick else ((24, 30, 4), (64, 12, 8))
    return {"adaptive": rows, "training": [row for size in sizes for row in follow_training(*size, options)]}


def compare(
    name: str, team: Behavior, degree: int, others: list[Behavior], *, draws: int, seed: int
) -> list[dict[str, Any]]:
    """Return the errors of a ring, of random agents and of adaptive designs with as many pairs."""
    n, m = team.agents, team.agents * degree // 2
    # Beliefs come from observations that are not measured.
    points = embed(team).detach()
    held = min(64, points.observations // 4)
    known, measured = points.slice(0, held), points.slice(held, points.observations)
    beliefs = {f"{k} observations": (_shown(known.slice(0, k)), k) for k in (16, 64) if k <= held}
    believed, _ = beliefs["16 observations"]
    passes = n / (degree + 1)
    designs: list[tuple[str, Design, float, int]] = [
        ("ring", Ring(degree), 1.0, 0),
        ("agents", Agents(degree + 1), passes, 0),
        *((f"adaptive, {label}", adapt(shown, m), 1.0, k) for label, (shown, k) in beliefs.items()),
        ("adaptive, by size", Adaptive(m, adapt(believed, m).labels), 1.0, 16),
        *(("adaptive, another team", adapt(_shown(embed(other).slice(0, 16)), m), 1.0, 0) for other in others),
    ]
    labels = roles(believed).labels
    if int(labels.max()) > 0:
        designs.append(("adaptive, roles", adapt(believed, m, labels=labels), 1.0, 16))
    exact = kernels.pair_totals(measured) / math.comb(n, 2)
    spread = _pair_variance(measured)
    rows: list[dict[str, Any]] = []
    for label, design, repeats, held_for in designs:
        error = _squared_error(measured, exact, design, draws, seed) / repeats
        ring = rows[0]["squared_error"] if rows else error
        share = held_for * math.comb(n, 2) / (ALL * m)
        row = {"team": name, "n": n, "pairs": m, "design": label, "squared_error": error}
        row |= {"rmse": math.sqrt(error / ALL) / float(exact.mean()), "gain": ring / error}
        row |= {"after_belief": ring / error / (1 + share), "factor": error / (spread * (1 / m - 1 / math.comb(n, 2)))}
        if isinstance(design, Adaptive):
            row |= {"groups": len(set(design.labels)), "worst_factor": design.worst_factor(n)}
        rows.append(row)
    return rows


def follow_training(agents: int, iterations: int, degree: int, options: Options) -> list[dict[str, Any]]:
    """Train a team on the CPU, and adapt to what it was before each iteration."""
    settings = Settings(iterations=iterations, environments=16, steps=100, epochs=4, minibatch=400, learning_rate=1e-3)
    spawn = {"world_spawning_x": 3.0, "world_spawning_y": 3.0, "agent_radius": 0.03, "horizon": 200}
    trainer = Task("navigation", agents, spawn, (options.seed,), settings).make_trainer()
    options.step(f"adaptive designs while {agents} agents learn")
    rows, belief = [], None
    for iteration in range(1, iterations + 1):
        trainer.step(measure=False)
        with torch.no_grad():
            seen = pool_observations(trainer.buffer.observations[0], 512)
            behavior = trainer.team(options.seed).evaluate(seen)
            points, m = embed(behavior), agents * degree // 2
            exact = kernels.pair_totals(points) / math.comb(agents, 2)
            if belief is not None:
                design, seed = adapt(belief, m), options.seed + iteration
                errors = [_squared_error(points, exact, one, 4, seed) for one in (Ring(degree), design)]
                row = {"n": agents, "pairs": m, "iteration": iteration, "snd": float(exact.mean())}
                rows.append(row | {"groups": len(set(design.labels)), "gain": errors[0] / errors[1]})
            belief = _shown(points.slice(0, 16))
    return rows


def _squared_error(points: Points, exact: Tensor, design: Design, draws: int, seed: int) -> float:
    """Return the mean over observations and draws of the squared error at a single observation."""
    generator, errors = torch.Generator().manual_seed(seed), []
    for _ in range(draws):
        chosen = design.select(points.observations, points.agents, generator, device=points.values.device)
        part = Points(chosen.take(points.values), points.norm, points.dtype)
        assert isinstance(chosen.edges, Tensor)
        distances = kernels.observation_edges(part, chosen.edges)
        weights = torch.ones_like(distances[0]) if chosen.weights is None else chosen.weights
        errors.append(((distances @ weights) / weights.sum() - exact).square().mean())
    return float(torch.stack(errors).mean())


def _pair_variance(points: Points) -> float:
    """Return the variance of the distances of an observation, the mean over observations: S^2 of random pairs."""
    pairs, values = torch.triu_indices(points.agents, points.agents, 1).T, []
    for at in range(0, points.observations, 64):
        part = points.slice(at, at + 64)
        distances = kernels.observation_edges(part, pairs.expand(part.observations, -1, -1))
        values.append(distances.var(dim=1))
    return float(torch.cat(values).mean())


def _shown(points: Points) -> Behavior:
    """Return a behaviour with the same distances as these points, which are Euclidean for all teams here."""
    return Deterministic(points.values.detach())


def _synthetic(options: Options) -> Iterator[tuple[str, Behavior]]:
    n, observations = (20, 80) if options.quick else (100, 1024)
    yield "demo, four roles", example_team(n, observations, options.seed).behavior
    generator = torch.Generator().manual_seed(options.seed)
    centres = torch.randn(observations, 4, 2, generator=generator)
    noise = torch.randn(observations, n, 2, generator=generator)
    yield "four tight roles", Deterministic(centres[:, torch.arange(n) % 4] + 0.1 * noise)
    yield "no structure", Deterministic(noise)


def _trained(options: Options) -> Iterator[tuple[str, Behavior]]:
    for folder in options.teams:
        inputs = load_file(folder / OBSERVATIONS)["observations"][:: 16 if options.quick else 4]
        with torch.no_grad():
            yield f"{folder.parent.name}, {folder.name}", evaluate(Team.load(folder), inputs)


def tables(result: dict[str, Any]) -> Tables:
    """Return errors by design, and gains during training."""
    columns = ("team", "pairs", "design", "rmse", "gain", "after_belief", "factor", "worst_factor")
    rows = [{"worst_factor": None} | row for row in result["adaptive"]]
    return {
        "Pairs chosen by what is known, against a fresh ring": (rows, columns),
        "While a team learns": (result["training"], ("n", "pairs", "iteration", "snd", "groups", "gain")),
    }
