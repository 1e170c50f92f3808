"""The calls that the timing experiment compares, and one team size of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from graphsnd import graphs
from graphsnd.behavior import Gaussian
from graphsnd.errors import InputError
from graphsnd.metric import graph_snd, snd
from paper.expanders import initial_team
from paper.rows import encode
from paper.shared.pairloop import Answers, all_pairs, loop_mean, some_pairs
from paper.shared.rollouts import one_thread
from paper.shared.stopwatch import Conditions, take_turns

GRAPH_SEED = 44
WARM_CALLS, WARM_PAIRS = 3, 50
FEW, FEW_UP_TO = 64, 64  # observations with which the loop has next to nothing to compute; agents up to which it is run

Calls = dict[str, Callable[[], int]]


@dataclass(frozen=True)
class Size:
    """A team size and how it is timed."""

    n: int
    observations: int = 4096
    trials: int = 20
    chances: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 1.0)  # of a pair
    once: Sequence[float] = ()  # more of them, for which the loop is timed once
    fused_trials: int = 20  # where more, the fused calls go on alone

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def measure(size: Size, device: torch.device) -> dict[str, Any]:
    """Time all calls at one size.

    Args:
        size: Of the team, and how often.
        device: A CPU, of which one thread is used, or a GPU.

    Returns:
        The size, the conditions ``before`` and ``after``, and ``calls``: for each of ``"loop, all pairs"``,
        ``"loop, p=0.1"``, ``"fused, all pairs"`` and so on what
        :func:`~paper.shared.stopwatch.take_turns` gives.
        ``"loop, 64 observations"`` is the loop over all pairs with next to no arithmetic in it.

    Example:
        >>> found = measure(Size(4, 16, 2, (0.5,)), torch.device("cpu"))
        >>> list(found["calls"])[:2], found["calls"]["loop, all pairs"]["pairs"]
        (['loop, all pairs', 'loop, p=0.5'], [6, 6])
    """
    team = _team(size, device)
    loops, fused = loop_calls(team, size), fused_calls(team, size)
    with one_thread() if device.type == "cpu" else nullcontext():
        before = encode(Conditions.now(device))
        _warm(team, fused)
        trials = dict.fromkeys(loops, size.trials) | dict.fromkeys(fused, size.fused_trials)
        trials |= {f"loop, p={p:g}": 1 for p in size.once}
        found = encode(take_turns(loops | fused, trials=trials, device=device))
        return {**size.to_dict(), "before": before, "after": encode(Conditions.now(device)), "calls": found}


def loop_calls(team: Gaussian, size: Size) -> Calls:
    """The paper's setting: a Python loop over all pairs, or over those of a graph that is drawn first."""
    answers, pairs = Answers.of(team), all_pairs(size.n)
    everyone = pairs.tolist()
    generator = np.random.default_rng(GRAPH_SEED)

    def full(which: Answers) -> int:
        loop_mean(which, everyone)
        return len(everyone)

    def sampled(p: float) -> int:
        edges = some_pairs(pairs, p, generator)
        loop_mean(answers, edges)
        return len(edges)

    calls: Calls = {"loop, all pairs": partial(full, answers)}
    calls |= {f"loop, p={p:g}": partial(sampled, p) for p in (*size.chances, *size.once)}
    if size.n <= FEW_UP_TO:
        few = Answers(answers.loc[:, :FEW].contiguous(), answers.scale[:, :FEW].contiguous())
        calls[f"loop, {FEW} observations"] = partial(full, few)
    return calls


def fused_calls(team: Gaussian, size: Size) -> Calls:
    """The library's own calls, with the graph drawn where the team is."""
    generator = torch.Generator(team.loc.device).manual_seed(GRAPH_SEED)

    def full() -> int:
        float(snd(team))
        return size.n * (size.n - 1) // 2

    def sampled(p: float) -> int:
        graph = graphs.bernoulli(size.n, p, seed=generator)
        float(graph_snd(team, graph))
        return graph.m

    calls: Calls = {"fused, all pairs": full}
    return calls | {f"fused, p={p:g}": partial(sampled, p) for p in (*size.chances, *size.once)}


def _team(size: Size, device: torch.device) -> Gaussian:
    team = initial_team(size.n, observations=size.observations)
    if not isinstance(team, Gaussian):
        raise InputError("team", "of Gaussian policies", repr(team))
    return Gaussian(team.loc.to(device).contiguous(), team.scale.to(device).contiguous())


def _warm(team: Gaussian, fused: Calls) -> None:
    """Compile and fill caches: the fused calls as they are, the loop on its first pairs, which are like the others."""
    answers, first = Answers.of(team), all_pairs(team.agents)[:WARM_PAIRS].tolist()
    for _ in range(WARM_CALLS):
        loop_mean(answers, first)
        for call in fused.values():
            call()
