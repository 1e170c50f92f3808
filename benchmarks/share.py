"""Which share of the device's arithmetic limit does exact SND reach, where does sampling beat it, what does each cost?

A call is `graphsnd.snd(behavior)` of diagonal Gaussians, whose Euclidean distance has two features per action.

features, observations: time of the limit for as many pairs over that of the call; agents against features at one number
of observations, and agents against observations with four features. The limit is the arithmetic of a pair alone: a
subtraction and a multiply-add for each feature, a square root and an addition.

crossover: exact SND against a tenth of the pairs on a new Bernoulli graph, and a new ring of four neighbours or eight
random agents for each observation; these two with their intervals. Four features.

rates: the costs by which `graphsnd.advise` compares designs, see `graphsnd.estimation.costs`, derived from the times in
`parts`. `python -m benchmarks --costs FILE ...` puts those of these files into the package.

Times are seconds. Contestants take turns within a round. Shares, crossovers and rates are of the fastest rounds: others
may use the machine.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import torch

import graphsnd as gs
from benchmarks.calls import Case, example
from benchmarks.timing import Clock, Contestant, Options, Tables, make_limit, take_turns
from graphsnd.behavior.behavior import AgentsAxisWarning
from graphsnd.estimation import costs
from graphsnd.estimation.source import largest_distance
from graphsnd.storage import write_whole
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

AGENTS = {"cpu": (16, 50, 100, 500), "cuda": (16, 50, 100, 500, 2000)}
FEATURES = (4, 8, 16, 32, 64, 128)
OBSERVATIONS = {"cpu": (1, 16, 256, 4096), "cuda": (1, 16, 256, 4096, 65536)}
USUAL = {"cpu": 256, "cuda": 4096}  # observations where features vary, and at the crossover
CROSSING = {"cpu": (16, 50, 100, 200, 500, 1000, 2000), "cuda": (16, 50, 100, 200, 500, 1000, 2000, 5000)}
SAMPLED = ("tenth of the pairs", "ring:4", "agents:8")
COSTS = {"cpu": (500, 2048), "cuda": (500, 65536)}  # agents and observations
LARGEST = {"cpu": 5e9, "cuda": 2e12}  # feature differences of one call, so that a cell takes a second or less


def measure(options: Options) -> dict[str, Any]:
    """Time all cells, the crossover and the parts of the costs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AgentsAxisWarning)  # large teams on few observations are meant here
        kind = options.device.type
        sizes: tuple[Sequence[int], ...] = AGENTS[kind], FEATURES, OBSERVATIONS[kind], CROSSING[kind]
        usual, priced = USUAL[kind], COSTS[kind]
        if options.quick:
            sizes, usual, priced = ((4, 16), (4, 8), (1, 16), (8, 16)), 16, (20, 64)
        agents, features, seen, crossing = sizes
        return {
            "features": shares(product(agents, features, [usual]), options),
            "observations": shares(product(agents, [4], seen), options),
            "crossover": options.each("crossover", crossing, lambda n: cross(n, usual, options)),
            **rates(*priced, options),
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
        times = take_turns(contestants, Clock(options.device), **patience(options))
        whole = [times["limit"]["min_s"] / one.pairs * pairs for one in limit if one.pairs]
        share = whole[0] / times["snd"]["min_s"] if whole else None
        rows.append({"n": n, "features": features, "observations": observations, "share": share, "contestants": times})
    return rows


def patience(options: Options) -> dict[str, Any]:
    """Return rounds of :func:`take_turns`: few, because there are many cells."""
    return {"rounds": 2 if options.quick else 7, "seconds": 0.0}


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
    times = take_turns(contestants, Clock(options.device), **patience(options))
    return {"n": n, "observations": observations, "contestants": times}


def rates(n: int, observations: int, options: Options) -> dict[str, Any]:
    """Return the rates of :mod:`graphsnd.estimation.costs`, and the times they come from."""
    options.step("what designs cost")
    device, features = options.device, 4
    behavior = example(Case(n, features), observations, device, options.seed)
    tiny = example(Case(8, features), 8, device, options.seed)
    points = gs.behavior.embed(behavior, None)
    graph = gs.graphs.bernoulli(n, 0.1, seed=options.seed)
    network = StackedMLP.create((n,), (18, 64, 64, 4), generator=torch.Generator().manual_seed(options.seed))
    team = StackedTeam(network, GaussianHead(4, batch=(n,))).to(device)
    rows = min(observations, 2048)
    shown, some = torch.randn(rows, 18, device=device), torch.randint(n, (rows, 8), device=device)
    few = n // 8  # pairs of a design; n // 4 agents
    calls = {
        "exact": lambda: gs.snd(behavior),
        "graph": lambda: gs.graph_snd(behavior, graph),
        "bound": lambda: largest_distance(points),
        "tiny": lambda: gs.measure(tiny, design="agents:2"),
        "one pair": lambda: gs.measure(behavior, design="pairs:1"),
        "few pairs": lambda: gs.measure(behavior, design=f"pairs:{few}"),
        "their agents": lambda: gs.measure(behavior, design=f"agents:{2 * few}"),
        "policies": torch.no_grad()(lambda: team.evaluate(shown)),
        "some policies": torch.no_grad()(lambda: team.partial(shown, some)),
    }
    times = take_turns([Contestant(*one) for one in calls.items()], Clock(device), **patience(options))
    took = {name: times[name]["min_s"] for name in calls}
    unit = took["exact"] / (math.comb(n, 2) * observations)  # seconds of a distance in the sweep
    drawn = {name: (took[name] - took["bound"]) / observations for name in ("one pair", "few pairs", "their agents")}
    pair = max(0.0, drawn["their agents"] - drawn["few pairs"]) / (math.comb(2 * few, 2) - few)
    agent = max(0.0, (drawn["few pairs"] - drawn["one pair"] - (few - 1) * pair) / (2 * few - 2))
    multiply_add, each = unit / (2 * features), took["policies"] / (rows * n * network.cost)
    rate = costs.Rate(
        second=1 / multiply_add,
        policy=each / multiply_add,
        partial=max(1.0, took["some policies"] / some.numel() / (took["policies"] / (rows * n))),
        call=took["tiny"] / unit,
        point=took["bound"] / (n * observations) / unit,
        draw=max(0.0, drawn["one pair"] - 2 * agent - pair - took["tiny"] / observations) / unit,
        agent=agent / unit,
        pair=pair / unit,
        edge=took["graph"] / (graph.m * observations) / unit,
    )
    return {"n": n, "observations_of_costs": observations, "rates": asdict(rate), "parts": times}


def write_costs(results: Sequence[dict[str, Any]]) -> None:
    """Put the rates of results into the package's table, which keeps those of other devices."""
    table = json.loads(costs.FILE.read_text())
    for result in results:
        source = {key: result[key] for key in ("command", "commit", "date", "hardware")}
        table[result["device"]] = {"rates": {k: float(f"{v:.3g}") for k, v in result["rates"].items()}, **source}
    write_whole(costs.FILE, json.dumps(table, indent=1) + "\n")


def crossing(result: dict[str, Any], name: str) -> float | None:
    """Return the number of agents from which a way to sample is faster than exact SND, between sizes by logarithms."""
    rows = sorted(result["crossover"], key=lambda row: row["n"])
    logs = [math.log(r["contestants"][name]["min_s"] / r["contestants"]["exact"]["min_s"]) for r in rows]
    last = max((k for k, gap in enumerate(logs) if gap >= 0), default=-1)  # the last size where exact SND wins
    if last == len(rows) - 1:
        return None
    if last < 0:
        return float(rows[0]["n"])
    part = logs[last] / (logs[last] - logs[last + 1])
    return float(rows[last]["n"] * (rows[last + 1]["n"] / rows[last]["n"]) ** part)


def tables(result: dict[str, Any]) -> Tables:
    """Return the shares, the crossover and the rates."""
    times = ("n", "observations", "contestants.exact", *(f"contestants.{name}" for name in SAMPLED))
    cells = ("n", "features", "observations", "contestants.snd", "share")
    return {
        "Share of the limit": (result["features"] + result["observations"], cells),
        "Exact and sampled": (result["crossover"], times),
        "Costs, in distances of the sweep over all pairs": ([result["rates"]], tuple(result["rates"])),
    }
