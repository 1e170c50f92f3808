"""Which share of the device's arithmetic limit does exact SND reach, and where does sampling beat it?

A call is `graphsnd.snd(behavior)` of diagonal Gaussians, whose Euclidean distance has two features per action.

features, observations: time of the limit for as many pairs over that of the call; agents against features at one number
of observations, and agents against observations with four features. The limit is the arithmetic of a pair alone: a
subtraction and a multiply-add for each feature, a square root and an addition.

crossover: exact SND against three samples: a tenth of the pairs on a new Bernoulli graph, a new ring of four neighbours
for each observation, and eight random agents for each observation. The last two include their intervals. Four features.

Times are seconds. Contestants take turns within a round. Shares and crossovers use the fastest rounds, because other
programs may use the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

import graphsnd as gs
from benchmarks.calls import Case, example
from benchmarks.timing import Clock, Contestant, Options, make_limit, race

AGENTS = {"cpu": (16, 50, 100, 500), "cuda": (16, 50, 100, 500, 2000)}
FEATURES = (4, 8, 16, 32, 64, 128)
OBSERVATIONS = {"cpu": (1, 16, 256, 4096), "cuda": (1, 16, 256, 4096, 65536)}
USUAL = {"cpu": 256, "cuda": 4096}  # observations where features vary, and at the crossover
CROSSING = {"cpu": (16, 50, 100, 200, 500, 1000, 2000), "cuda": (16, 50, 100, 200, 500, 1000, 2000, 5000)}
SAMPLED = ("tenth of the pairs", "ring:4", "agents:8")
ROUNDS = 7  # few, because there are many cells
LARGEST = {"cpu": 5e9, "cuda": 2e12}  # feature differences of one call, so that a cell takes a second or less


def measure(options: Options) -> dict[str, Any]:
    """Time all cells and the crossover."""
    kind = options.device.type
    sizes: tuple[Sequence[int], ...] = AGENTS[kind], FEATURES, OBSERVATIONS[kind], CROSSING[kind]
    usual = USUAL[kind]
    if options.quick:
        sizes, usual = ((4, 16), (4, 8), (1, 16), (8, 16)), 16
    agents, features, seen, crossing = sizes
    return {
        "features": shares(product(agents, features, [usual]), options),
        "observations": shares(product(agents, [4], seen), options),
        "crossover": options.each("crossover", crossing, lambda n: cross(n, usual, options)),
    }


def shares(cells: Any, options: Options) -> list[dict[str, Any]]:
    """Return the share of the limit for each number of agents, features and observations."""
    rows = []
    for n, features, observations in cells:
        pairs = math.comb(n, 2) * observations
        if pairs * features > LARGEST[options.device.type]:
            continue
        options.step(f"{n:,} agents, {features} features, {observations:,} observations")
        behavior = example(Case(n, features), observations, options.device, options.seed)
        limit = make_limit(options.device, features)
        contestants = [Contestant("snd", lambda b=behavior: gs.snd(b), pairs), *limit]  # type: ignore[misc]
        times = race(contestants, Clock(options.device), 2 if options.quick else ROUNDS)
        whole = [times["limit"]["min_s"] / one.pairs * pairs for one in limit if one.pairs]
        share = whole[0] / times["snd"]["min_s"] if whole else None
        rows.append({"n": n, "features": features, "observations": observations, "share": share, "contestants": times})
    return rows


def cross(n: int, observations: int, options: Options) -> dict[str, Any]:
    """Time exact SND and three ways to sample it."""
    behavior = example(Case(n), observations, options.device, options.seed)
    generator = torch.Generator(options.device).manual_seed(options.seed)
    draw = lambda: gs.graphs.bernoulli(n, 0.1, seed=generator)  # noqa: E731
    contestants = [
        Contestant("exact", lambda: gs.snd(behavior)),
        Contestant("tenth of the pairs", lambda: gs.graph_snd(behavior, draw())),
        *(Contestant(name, lambda d=name: gs.measure(behavior, design=d)) for name in SAMPLED[1:]),  # type: ignore[misc]
    ]
    times = race(contestants, Clock(options.device), 2 if options.quick else ROUNDS)
    return {"n": n, "observations": observations, "contestants": times}


def crossing(result: dict[str, Any], name: str) -> float | None:
    """Return the number of agents from which a way to sample beats exact SND, interpolated between sizes."""
    rows = sorted(result["crossover"], key=lambda row: row["n"])
    logs = [math.log(r["contestants"][name]["min_s"] / r["contestants"]["exact"]["min_s"]) for r in rows]
    last = max((k for k, gap in enumerate(logs) if gap >= 0), default=-1)  # the last size where exact SND wins
    if last == len(rows) - 1:
        return None
    if last < 0:
        return float(rows[0]["n"])
    part = logs[last] / (logs[last] - logs[last + 1])
    return float(rows[last]["n"] * (rows[last + 1]["n"] / rows[last]["n"]) ** part)
