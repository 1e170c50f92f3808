"""The paper's rule for choosing a graph, with the team sizes at which sampling was measured to pay."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphsnd.designs.design import Agents, Bernoulli, Complete, Design, Nearest
from graphsnd.errors import check_agents, check_choice, check_integer
from graphsnd.estimation.redrawn import CHEAP

# Agents from which a way to sample is faster than exact SND of agents that have been evaluated, by
# `python -m benchmarks share` (benchmarks/results/share): a CPU thread with 256 observations, an H200 with 4,096.
CROSSOVERS = {"cpu": {"bernoulli:0.1": 77, "agents:8": 256}, "cuda": {"bernoulli:0.1": 822, "agents:8": 1586}}


@dataclass(frozen=True)
class Advice:
    """A recommended design and the reason for it.

    Example:
        >>> import graphsnd as gs
        >>> print(gs.advise(500, 100_000))
        agents:8: all pairs are 12,475,000,000 distances; with 256 agents or more, a few random agents are faster
          gs.measure(policies, observations, design="agents:8", rel_tol=0.01)
    """

    design: Design
    why: str
    call: str  # Python that does it

    def __str__(self) -> str:
        return f"{self.design}: {self.why}\n  {self.call}"

    def to_dict(self) -> dict[str, str]:
        """Return plain values, ready for JSON."""
        return {"design": str(self.design), "why": self.why, "call": self.call}


def advise(n: int, observations: int, goal: str = "global", *, device: str = "cpu") -> Advice:
    """Recommend which pairs to measure, by the paper's rule.

    Args:
        n: Number of agents.
        observations: Number of observations that they share.
        goal: ``"global"`` for SND of the whole team, ``"proxy"`` for a stand-in at every step of a training,
            ``"local"`` for the diversity among agents that interact.
        device: ``cpu`` or ``cuda``.

    Returns:
        The advice.

    Raises:
        InputError: For numbers out of range and for another goal or device.

    Example:
        >>> advise(16, 4096).design, advise(500, 100_000).design, advise(500, 600, "proxy").design
        (Complete(), Agents(count=8), Bernoulli(p=0.1))
    """
    n = check_agents(n)
    observations = check_integer("observations", observations, "to be an integer, at least 1", low=1)
    check_choice("goal", goal, ("global", "local", "proxy"))
    check_choice("device", device, CROSSOVERS)
    if goal == "local":
        design: Design = Nearest(min(n - 1, max(1, math.ceil(math.log2(n)))))
        why = "a graph of neighbours defines a local measure, which is not an estimate of SND"
        return Advice(design, why, f'gs.measure(policies, observations, design="{design}", positions=positions)')
    distances, crossover = math.comb(n, 2) * observations, CROSSOVERS[device]
    if goal == "proxy" and n >= crossover["bernoulli:0.1"]:
        design = Bernoulli(0.1)
        size = crossover["bernoulli:0.1"]
        why = f"with {size} agents or more, a tenth of the pairs is faster; use a new seed at each step"
        return Advice(design, why, f'gs.measure(policies, observations, design="{design}", seed=step)')
    if goal == "global" and n >= crossover["agents:8"] and distances > CHEAP:
        design, size = Agents(8), crossover["agents:8"]
        why = f"all pairs are {distances:,} distances; with {size} agents or more, a few random agents are faster"
        return Advice(design, why, f'gs.measure(policies, observations, design="{design}", rel_tol=0.01)')
    why = f"all pairs are {distances:,} distances, which is fast, and the number is exact"
    return Advice(Complete(), why, "gs.measure(policies, observations)")
