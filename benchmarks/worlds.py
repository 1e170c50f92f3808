"""How much faster is a step of a batched world than one of the simulator it follows?

Times are seconds of one step of all environments with random actions. Contestants take turns within a round; medians
and quartiles are over rounds.

graphsnd steps from 6 states of a random rollout in turn; the simulators continue from their current state.

share_timed below 1: only that part of the environments was timed, and the time was divided by it.

ratio: median of the simulator over median of the fastest way that graphsnd steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Clock, Contestant, Options, race
from graphsnd.rl.worlds import World, parse_world
from graphsnd.rl.worlds.world import Continuous

OURS, CAPTURED = "graphsnd", "graphsnd, CUDA graph"
MOMENTS, APART = 6, 10  # states of a random rollout that are stepped in turn, and the steps between them
SAMPLE = 4  # environments of mpe2 that are timed; it has no batch, so the rest would cost the same again


@dataclass(frozen=True)
class Case:
    """One world at one size."""

    world: str
    agents: int
    environments: int
    simulator: str | None = None  # vmas or mpe2; None for what it cannot do in reasonable time
    options: dict[str, Any] = field(default_factory=dict)


def _room(half: float, radius: float) -> dict[str, Any]:
    return {"world_spawning_x": half, "world_spawning_y": half, "agent_radius": radius}


DEFAULT = (
    Case("navigation", 100, 32, "vmas", _room(3.0, 0.04)),
    Case("dispersion", 50, 120, "vmas"),
    Case("simple_spread", 10, 256, "mpe2"),
    Case("navigation", 1000, 32, None, _room(9.0, 0.04)),
)
QUICK = (Case("navigation", 4, 4, "vmas"), Case("dispersion", 4, 4, "vmas"), Case("simple_spread", 3, 8, "mpe2"))


def measure(options: Options) -> dict[str, Any]:
    """Time a step of each world; simulators that are not installed are left out."""
    rows = []
    for case in QUICK if options.quick else DEFAULT:
        options.step(f"{case.world}, n = {case.agents:,}")
        rows.append(compare(case, options))
    return {"worlds": rows}


def compare(case: Case, options: Options) -> dict[str, Any]:
    """Time a step of one world and of the simulator it follows."""
    device, generator = options.device, torch.Generator().manual_seed(options.seed)
    world = parse_world(case.world, case.agents, case.environments, device=device, horizon=None, **case.options)
    moments = itertools.cycle(_moments(world, generator))
    contestants = [Contestant(OURS, lambda: world.step(*next(moments)))]
    if device.type == "cuda":
        contestants.append(_captured(world, generator))
    if case.simulator is not None and find_spec(case.simulator) is not None:
        contestants.append(_simulator(case, world, generator))
    times = race(contestants, Clock(device), options.rounds)
    best = min(times[name]["median_s"] for name in (OURS, CAPTURED) if name in times)
    other = times.get(case.simulator or "")
    return {
        "world": case.world,
        "agents": case.agents,
        "environments": case.environments,
        "options": case.options,
        "contestants": times,
        "ratio": None if other is None else other["median_s"] / best,
    }


def _captured(world: World, generator: torch.Generator) -> Contestant:
    state, actions = _moments(world, generator)[-1]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = world.step(state, actions)

    def replay(kept: object = (state, actions, result)) -> None:  # the graph reads and writes their memory
        graph.replay()

    return Contestant(CAPTURED, replay)


def _moments(world: World, generator: torch.Generator) -> list[tuple[Any, Tensor]]:
    state, moments = world.spawn(generator), []
    for k in range(MOMENTS * APART):
        actions = _random_actions(world, world.environments, generator)
        if k % APART == 0:
            moments.append((state, actions))
        state, _ = world.step(state, actions)
    return moments


def _random_actions(world: World, environments: int, generator: torch.Generator) -> Tensor:
    space, shape = world.actions, (environments, world.agents)
    if isinstance(space, Continuous):
        drawn = torch.rand(*shape, space.features, generator=generator) * 2 - 1
    else:
        drawn = torch.randint(space.count, shape, generator=generator)
    return drawn.to(world.device)


def _simulator(case: Case, world: World, generator: torch.Generator) -> Contestant:
    """Return the original simulator, called as its users call it."""
    seed = int(torch.randint(2**31, (), generator=generator))
    if case.simulator == "vmas":
        import vmas

        size = {"num_envs": case.environments, "n_agents": case.agents}
        env = vmas.make_env(
            case.world, **size, device=world.device, seed=seed, clamp_actions=True, terminated_truncated=True,
            **case.options,
        )  # fmt: skip
        moves = list(_random_actions(world, case.environments, generator).unbind(1))
        return Contestant("vmas", lambda: env.step([move.clone() for move in moves]))
    from mpe2 import simple_spread_v3

    timed = min(SAMPLE, case.environments)
    envs = [simple_spread_v3.parallel_env(N=case.agents, max_cycles=10**9) for _ in range(timed)]
    for place, each in enumerate(envs):
        each.reset(seed=seed + place)
    rows = _random_actions(world, timed, generator).tolist()
    calls = [(each, dict(zip(each.agents, row, strict=True))) for each, row in zip(envs, rows, strict=True)]
    return Contestant("mpe2", lambda: [each.step(dict(move)) for each, move in calls], share=timed / case.environments)
