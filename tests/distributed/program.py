"""What each of four ranks runs: python -m tests.distributed.program rank folder. Results are written for the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import graphsnd as gs
from graphsnd.distributed import shards
from tests.distributed import cases

SIZES = (1, 2, 4)
Results = dict[Any, Any]


def differentiate(results: Results, size: int, group: Any) -> None:
    rank = dist.get_rank(group)
    for case in cases.CASES if size == 4 else cases.SMALL:
        family, distance, dtype = cases.CASES[case]
        x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6, dtype=dtype)
        for shard in ("agents", "observations"):
            own = cases.cut(x, shard, rank, size).clone().requires_grad_()
            behavior = cases.FAMILIES[family](own) if own.numel() else None
            values = cases.measurements(gs.distributed, behavior, distance, shard=shard, group=group)
            for name, value in values.items():
                # All ranks may call backward, those without agents too.
                slopes = torch.autograd.grad(value, own, retain_graph=True)[0] if behavior else value.backward()
                results[size, case, shard, name] = value.detach(), slopes


def accumulate(results: Results, size: int, group: Any) -> None:
    rank = dist.get_rank(group)
    batches = [cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6, seed=seed) for seed in range(3)]
    for name in ("all", "weighted", "drawn"):
        graph = cases.GRAPHS.get(name)
        for shard in ("agents", "observations"):
            mine = gs.SndAccumulator(cases.AGENTS, graph=graph, clusters=True)
            for at, x in enumerate(batches):
                own, ids = cases.cut(x, shard, rank, size), torch.arange(cases.OBSERVATIONS) // 3 + at
                behavior = cases.FAMILIES["gaussian"](own) if own.numel() else None
                if shard == "agents":
                    gs.distributed.accumulate(mine, behavior, ids, group=group)
                elif behavior is not None:
                    mine.update(behavior, cases.cut(ids[:, None], shard, rank, size)[:, 0])
            merged = gs.distributed.merge(mine, group=group)
            results[size, "accumulator", shard, name] = merged.state(), merged.compute().to_dict()


def in_rounds(results: Results, size: int, group: Any) -> None:
    """Exchange shards in blocks of a few observations."""
    block, shards.BLOCK = shards.BLOCK, 80
    x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6)
    own = cases.cut(x, "agents", dist.get_rank(group), size).clone().requires_grad_()
    value = gs.distributed.snd(cases.FAMILIES["gaussian"](own) if own.numel() else None, group=group)
    value.backward()
    results[size, "rounds"] = value.detach(), own.grad
    shards.BLOCK = block


def mistakes(rank: int) -> dict[str, Callable[[], Any]]:
    """Return calls in which rank 1 does something else than the others."""
    odd, d = rank == 1, gs.distributed
    team = gs.Deterministic(cases.numbers(12, 3, 2, seed=rank))
    discrete = gs.Categorical(logits=cases.numbers(12, 3, 2))
    other, ids = gs.graphs.uniform(12, 20, seed=rank if odd else 0), torch.arange(12) // (2 + odd)
    return {
        "observations": lambda: d.snd(gs.Deterministic(cases.numbers(12 + odd, 3, 2))),
        "agents": lambda: d.snd(gs.Deterministic(cases.numbers(12, 3 + odd, 2)), shard="observations"),
        "points": lambda: d.snd(gs.Deterministic(cases.numbers(12, 3, 2 + odd))),
        "points of another dtype": lambda: d.snd(
            gs.Deterministic(cases.numbers(12, 3, 2).to(torch.float32 if odd else torch.float64))
        ),
        "family": lambda: d.snd(discrete if odd else team),
        "family of the same features": lambda: d.snd(gs.Gaussian(cases.numbers(12, 3, 1), 1.0) if odd else team),
        "distance": lambda: d.snd(discrete, gs.Hellinger() if odd else gs.TotalVariation()),
        "shard": lambda: d.snd(team, shard="observations" if odd else "agents"),
        "call": lambda: d.graph_snd(team, other) if odd else d.snd(team),
        "behavior of nobody": lambda: d.snd(None),
        "behavior of one agent": lambda: d.snd(gs.Deterministic(cases.numbers(12, 1, 2)) if rank == 0 else None),
        "graph": lambda: d.graph_snd(team, other),
        "graph on fewer agents": lambda: d.graph_snd(team, gs.graphs.complete(5)),
        "two": lambda: d.merge(gs.SndAccumulator(3 + odd)),
        "behavior of other agents": lambda: d.accumulate(gs.SndAccumulator(13), team),
        "clusters": lambda: d.accumulate(gs.SndAccumulator(12, clusters=True), team, ids),
    }


def refuse(results: Results, rank: int) -> None:
    for name, call in mistakes(rank).items():
        try:
            results["refused", name] = call()
        except gs.InputError as error:
            results["refused", name] = str(error)
    # After all these errors the ranks are still in step.
    results["after"] = gs.distributed.snd(gs.Deterministic(cases.numbers(12, 3, 2, seed=rank)))


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=4)
    groups = {size: dist.new_group(list(range(size))) for size in SIZES}
    results: Results = {}
    for size, group in groups.items():
        if rank < size:
            for part in (differentiate, accumulate, in_rounds):
                part(results, size, group)
    refuse(results, rank)
    torch.save(results, folder / f"{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
