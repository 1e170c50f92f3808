"""How long is the SND of a list of torch modules, against calling the modules?

Times are seconds without gradients, of 18-64-64-2 networks. calls: every module on all observations, and nothing else.
measured: `graphsnd.snd(graphsnd.evaluate(modules, observations))`. first: the same for newly created modules, including
their creation and the trial of each on a few rows. Contestants take turns within a round.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import graphsnd as gs
from benchmarks.timing import Clock, Contestant, Options, race


def measure(options: Options) -> dict[str, Any]:
    """Time 100 modules on many and on few observations."""
    agents, sizes = (5, (64,)) if options.quick else (100, (256, 4096))
    return {"modules": options.each("modules, observations", sizes, lambda count: compare(agents, count, options))}


@torch.no_grad()
def compare(agents: int, observations: int, options: Options) -> dict[str, Any]:
    """Time the contestants on one team."""
    device = options.device
    torch.manual_seed(options.seed)
    shown = torch.randn(observations, 18, device=device)
    modules = make_modules(agents, device)
    contestants = [
        Contestant("calls", lambda: [module(shown) for module in modules]),
        Contestant("measured", lambda: gs.snd(gs.evaluate(modules, shown))),
        Contestant("first", lambda: gs.snd(gs.evaluate(make_modules(agents, device), shown)), alone=True),
    ]
    times = race(contestants, Clock(device), options.rounds)
    ratio = times["measured"]["median_s"] / times["calls"]["median_s"]
    return {"agents": agents, "observations": observations, "measured_over_calls": ratio, "contestants": times}


def make_modules(agents: int, device: torch.device) -> list[nn.Module]:
    """Return networks of two hidden layers."""
    layers = lambda: [nn.Linear(18, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)]  # noqa: E731
    return [nn.Sequential(*layers()).to(device) for _ in range(agents)]
