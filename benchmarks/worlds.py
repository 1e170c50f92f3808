"""How much faster is a batched world than the simulator it follows? One step of all environments, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Clock, Contestant, take_turns
from graphsnd.worlds import Continuous, VmasWorld, World, parse_world

OURS, CAPTURED = "graphsnd", "graphsnd, CUDA graph"
MOMENTS, APART = 6, 10  # states of a random rollout that are stepped in turn, and the steps between them
SAMPLE = 4  # environments of mpe2 that are timed; it has no batch, so the rest would cost the same again
NOTES = [
    "Times are seconds of one step of all environments with random actions. Contestants take turns within a round; "
    "medians and quartiles are over rounds.",
    f"{OURS} steps from {MOMENTS} moments of a random rollout in turn; the simulators go on from where they are.",
    "share_timed below 1: that part of the environments was timed, and the time divided by it.",
    "ratio: median of the simulator over median of the fastest way that graphsnd steps.",
]


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
QUICK = (
    Case("navigation", 4, 4, "vmas"),
    Case("dispersion", 4, 4, "vmas"),
    Case("simple_spread", 3, 8, "mpe2"),
)


def world_suite(
    cases: Sequence[Case] = DEFAULT,
    device: str = "cpu",
    *,
    seed: int = 0,
    rounds: int = 5,
    seconds: float = 5.0,
    step: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Time every case.

    Args:
        cases: What to measure.
        device: ``cpu`` or ``cuda``.
        seed: Of states and actions.
        rounds: Rounds at least.
        seconds: Time for more rounds, for each case.
        step: Called with the name of each case as it begins.

    Returns:
        The results, ready for JSON; simulators that are not installed are left out.
    """
    where = torch.device(device)
    rows = []
    for case in cases:
        step(f"{case.world}, n = {case.agents:,}")
        rows.append(_compare(case, where, seed=seed, rounds=rounds, seconds=seconds))
    return {"format": 1, "device": where.type, "threads": torch.get_num_threads(), "notes": NOTES, "worlds": rows}


def _compare(case: Case, device: torch.device, *, seed: int, rounds: int, seconds: float) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    world = parse_world(case.world, case.agents, case.environments, device=device, horizon=None, **case.options)
    contestants = [_ours(world, generator)]
    if device.type == "cuda":
        contestants.append(_captured(world, generator))
    if case.simulator is not None and find_spec(case.simulator) is not None:
        contestants.append(_simulator(case, device, generator))
    found = take_turns(contestants, Clock(device), rounds=rounds, seconds=seconds)
    best = min(found[name]["median_s"] for name in (OURS, CAPTURED) if name in found)
    other = found.get(case.simulator or "")
    return {
        "world": case.world,
        "agents": case.agents,
        "environments": case.environments,
        "options": case.options,
        "contestants": found,
        "environment_steps_per_second": case.environments / best,
        "ratio": None if other is None else other["median_s"] / best,
    }


def _ours(world: World, generator: torch.Generator) -> Contestant:
    moments = itertools.cycle(_moments(world, generator))
    return Contestant(OURS, lambda: world.step(*next(moments)))


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
    state, found = world.spawn(generator), []
    for k in range(MOMENTS * APART):
        actions = _random(world, world.environments, generator)
        if k % APART == 0:
            found.append((state, actions))
        state, _ = world.step(state, actions)
    return found


def _random(world: World, environments: int, generator: torch.Generator) -> Tensor:
    space, shape = world.actions, (environments, world.agents)
    if isinstance(space, Continuous):
        drawn = torch.rand(*shape, space.features, generator=generator) * (space.high - space.low) + space.low
    else:
        drawn = torch.randint(space.count, shape, generator=generator)
    return drawn.to(world.device)


def _simulator(case: Case, device: torch.device, generator: torch.Generator) -> Contestant:
    """The stock simulator, called as its users call it."""
    if case.simulator == "vmas":
        world = VmasWorld(case.world, case.environments, agents=case.agents, device=device, **case.options)
        env = world.spawn(generator).open()
        moves = list(_random(world, case.environments, generator).unbind(1))
        return Contestant("vmas", lambda: env.step([move.clone() for move in moves]))
    timed = min(SAMPLE, case.environments)
    other = parse_world(f"mpe2:{case.world}_v3", case.agents, timed, max_cycles=10**9)
    envs = other.spawn(generator).open()
    chosen = [
        dict(zip(env.agents, row, strict=True))
        for env, row in zip(envs, _random(other, timed, generator).tolist(), strict=True)
    ]
    calls = list(zip(envs, chosen, strict=True))
    return Contestant("mpe2", lambda: [env.step(dict(row)) for env, row in calls], share=timed / case.environments)
