"""Teams that ranks hold in shards and one process holds whole, and what both compute from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import graphsnd as gs

AGENTS, OBSERVATIONS = 9, 11
# Unequal shards, ranks with one agent or observation, and ranks without any.
SHARDS = {1: [9], 2: [1, 8], 4: [5, 0, 1, 3]}
SHARES = {1: [11], 2: [10, 1], 4: [4, 0, 1, 6]}


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def covariances(x: torch.Tensor) -> torch.Tensor:
    root = x.reshape(*x.shape[:-1], 2, 2)
    return root @ root.mT + 0.1 * torch.eye(2, dtype=x.dtype)


# From one tensor [observations, agents, 6] to a behaviour.
FAMILIES: dict[str, Callable[[torch.Tensor], gs.Behavior]] = {
    "gaussian": lambda x: gs.Gaussian(x[..., :2], x[..., 2:4].exp()),
    "line": lambda x: gs.Deterministic(x[..., :1]),
    "categorical": lambda x: gs.Categorical(logits=x),
    "full": lambda x: gs.MultivariateGaussian(x[..., :2], covariances(x[..., 2:])),
    "joint": lambda x: gs.Joint(
        {"move": gs.Deterministic(x[..., :2]), "say": gs.Categorical(logits=x[..., 2:])},
        weights={"move": 1.0, "say": 2.0},
    ),
}
CASES: dict[str, tuple[str, gs.Distance | None, torch.dtype]] = {
    "single": ("gaussian", None, torch.float32),
    **{name: (name, None, torch.float64) for name in FAMILIES},
    "js": ("categorical", gs.JensenShannon(), torch.float64),
}
SMALL = ("single", "gaussian", "categorical")  # what fewer than four ranks are tried with
GRAPHS = {
    "weighted": gs.Graph(AGENTS, gs.graphs.circulant(AGENTS, 4).edges, torch.arange(1.0, 19.0)),
    "drawn": gs.graphs.uniform(AGENTS, 12, seed=3),
    "empty": gs.Graph(AGENTS, torch.empty(0, 2, dtype=torch.int64)),
}


def cut(x: torch.Tensor, shard: str, rank: int, size: int) -> torch.Tensor:
    """Return a rank's part of ``[observations, agents, ...]``."""
    counts, dim = (SHARDS[size], 1) if shard == "agents" else (SHARES[size], 0)
    return x.split(counts, dim=dim)[rank]


def measurements(
    library: Any, behavior: gs.Behavior | None, distance: gs.Distance | None, **where: Any
) -> dict[str, Any]:
    """Return what a library (graphsnd, or graphsnd.distributed) says of a team, differentiable."""
    results = {"snd": library.snd(behavior, distance, **where)}
    for name, graph in GRAPHS.items():
        results[name] = library.graph_snd(behavior, graph, distance, **where)
    return results
