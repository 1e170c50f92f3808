"""Everything the benchmark measures, in order, as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.exact import compare, whole_workload
from benchmarks.others import builders, by_sorting
from benchmarks.verdict import verdict
from graphsnd.errors import InputError

EQUATION_1 = (500, 2_048_000)  # agents and observations of the paper's eq. (1)
NOTES = [
    "Times are seconds of one call. All contestants take turns within a round; medians and quartiles are over rounds.",
    "share_timed below 1: that part of the work was timed and the time divided by it. The pair loop runs on a random "
    "part of the pairs, cdist on the first observations.",
    "pairs_per_second of the sampled graphs counts the pairs they look at.",
    "fraction_of_limit: pairs per second of `fused` over those of `limit`, the arithmetic of a pair alone, in the same "
    "rounds.",
    "peak_bytes: memory allocated beside the input, on cuda. On a CPU only the peak of the whole process is known, so "
    "it is null there and input_bytes is all that is reported.",
]


@dataclass(frozen=True)
class Plan:
    """Sizes and patience of a run."""

    agents: tuple[int, ...]
    sorted_agents: tuple[int, ...]
    graph_agents: tuple[int, ...]
    rounds: int  # at least, everywhere
    seconds: float  # time for more rounds, for each team size
    observations: int | None = None  # None: as many as the device does in reasonable time
    slow: float = 1.0  # multiplies the time that the slow contestants get
    equation_1: bool = False  # the full workload of eq. (1), on cuda


DEFAULT = Plan((4, 16, 50, 100, 500, 2000), (1000, 10_000, 100_000), (50, 100, 500, 100_000), 5, 3.0)
FULL = Plan(
    (*DEFAULT.agents, 10_000), (*DEFAULT.sorted_agents, 1_000_000), DEFAULT.graph_agents, 7, 5.0, equation_1=True
)
QUICK = Plan((4, 16, 50), (100, 1000), (50, 100), 2, 0.0, observations=256, slow=0.1)


def measure(
    plan: Plan, device: str, *, seed: int = 0, step: Callable[[str], None] = lambda name: None
) -> dict[str, Any]:
    """Run the benchmark.

    Args:
        plan: What to measure.
        device: ``cpu`` or ``cuda``.
        seed: Of teams and graphs.
        step: Called with the name of each part as it begins; there are :func:`parts` of them.

    Returns:
        The results, ready for JSON.

    Raises:
        InputError: For a device that is not there.
    """
    where = device_of(device)
    timing: dict[str, Any] = {"seed": seed, "rounds": plan.rounds, "seconds": plan.seconds}
    result: dict[str, Any] = {"format": 1, "suite": "speed", "device": where.type, "notes": NOTES, "exact": []}
    for n in plan.agents:
        step(f"exact and sparse SND, n = {n:,}")
        result["exact"].append(compare(n, _observations(plan, n, where), where, slow=plan.slow, **timing))
    if plan.equation_1:
        step("the observations of eq. (1)")
        result["equation_1"] = whole_workload(*EQUATION_1, where, seed=seed, rounds=plan.rounds)
    rates = [row["contestants"]["limit"]["pairs_per_second"] for row in result["exact"] if row["fraction_of_limit"]]
    result["limit_pairs_per_second"] = max(rates, default=None)
    result["verdict"] = verdict(result["exact"])
    result["sorted"] = []
    for n in plan.sorted_agents:
        step(f"exact total-variation SND, n = {n:,}")
        observations = plan.observations or (64 if n < 1_000_000 else 8)
        result["sorted"].append(by_sorting(n, observations, where, **timing))
    result["graphs"] = []
    for n in plan.graph_agents:
        step(f"graphs, n = {n:,}")
        result["graphs"].append(builders(n, where, **timing))
    return result


def parts(plan: Plan) -> int:
    """How often :func:`measure` calls its ``step``."""
    return len(plan.agents) + plan.equation_1 + len(plan.sorted_agents) + len(plan.graph_agents)


def device_of(name: str) -> torch.device:
    """A device by its name, with its number, because torch compares devices literally."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "cpu, or cuda where there is a CUDA device", repr(name))
    if name not in ("cpu", "cuda"):
        raise InputError("--device", "cpu or cuda", repr(name))
    return torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device("cpu")


def _observations(plan: Plan, n: int, device: torch.device) -> int:
    if plan.observations is not None:
        return plan.observations
    if device.type == "cuda" or n <= 500:
        return 4096
    return 256 if n <= 2000 else 64
