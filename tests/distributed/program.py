"""What each of four ranks runs: python -m tests.distributed.program rank folder. Results are written for the tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import graphsnd as gs
from graphsnd.distributed import shards
from tests.distributed import cases

SIZES = (1, 2, 4)
TIMEOUT = 4  # seconds of the groups that lose a rank
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


def count(results: Results, size: int, group: Any) -> None:
    """Count bytes handed to the group for other ranks, and distances, of calls in one round and in several."""
    sent, pairs, rank = [0], [0], dist.get_rank(group)
    exchange, reduce_, totals, edges = (
        dist.all_to_all_single, dist.all_reduce, gs.kernels.pair_totals, gs.kernels.edge_totals
    )  # fmt: skip

    def counted_exchange(out: torch.Tensor, given: torch.Tensor, outs: Any, ins: list[int], group: Any) -> None:
        sent[0] += (sum(ins) - ins[rank]) * given.element_size()
        exchange(out, given, outs, ins, group=group)

    def counted_reduce(given: torch.Tensor, group: Any) -> None:
        sent[0] += given.nbytes * (size > 1)
        reduce_(given, group=group)

    def counted_totals(points: Any, **options: Any) -> torch.Tensor:
        pairs[0] += points.observations * points.agents * (points.agents - 1) // 2
        return totals(points, **options)

    def counted_edges(points: Any, given: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        pairs[0] += points.observations * len(given)
        return edges(points, given, *args, **options)

    dist.all_to_all_single, dist.all_reduce = counted_exchange, counted_reduce
    gs.kernels.pair_totals, gs.kernels.edge_totals = counted_totals, counted_edges
    block = shards.BLOCK
    for shard in ("agents", "observations"):
        for gradient in (False, True):
            for graph in (None, cases.GRAPHS["drawn"]):
                for shards.BLOCK in (block, 80):
                    x = cases.numbers(cases.OBSERVATIONS, cases.AGENTS, 6)
                    own = cases.cut(x, shard, rank, size).requires_grad_(gradient)
                    behavior = cases.FAMILIES["gaussian"](own) if own.numel() else None
                    where = {"shard": shard, "group": group}
                    sent[0] = pairs[0] = 0
                    if graph is None:
                        value = gs.distributed.snd(behavior, **where)
                    else:
                        value = gs.distributed.graph_snd(behavior, graph, **where)
                    key = (size, "count", shard, gradient, graph is not None, shards.BLOCK)
                    results[key] = sent[0], pairs[0], value.detach()
    shards.BLOCK = block
    dist.all_to_all_single, dist.all_reduce = exchange, reduce_
    gs.kernels.pair_totals, gs.kernels.edge_totals = totals, edges


def mistakes(rank: int) -> dict[str, Callable[[], Any]]:
    """Return calls in which rank 1 does something else than the others."""
    odd, d = rank == 1, gs.distributed
    team = gs.Deterministic(cases.numbers(12, 3, 2, seed=rank))
    rows, flipped = team if odd else gs.Deterministic(team.actions.view(4, 3, 3, 2)), torch.zeros(3, 4).long()
    other = gs.graphs.uniform(12, 20, seed=rank if odd else 0)
    return {
        "observations": lambda: d.snd(gs.Deterministic(cases.numbers(12 + odd, 3, 2))),
        "agents": lambda: d.snd(gs.Deterministic(cases.numbers(12, 3 + odd, 2)), shard="observations"),
        "features": lambda: d.snd(gs.Deterministic(cases.numbers(12, 3, 2 + odd))),
        "dtype": lambda: d.snd(gs.Deterministic(cases.numbers(12, 3, 2).to(torch.float32 if odd else torch.float64))),
        "family": lambda: d.snd(gs.Categorical(logits=cases.numbers(12, 3, 2)) if odd else team),
        "kindred": lambda: d.snd(gs.Gaussian(cases.numbers(12, 3, 1), 1.0) if odd else team),
        "distance": lambda: d.snd(
            gs.Categorical(logits=cases.numbers(12, 3, 2)), gs.Hellinger() if odd else gs.TotalVariation()
        ),
        "shard": lambda: d.snd(team, shard="observations" if odd else "agents"),
        "no shard": lambda: d.snd(team, shard="rows" if odd else "agents"),
        "kind": lambda: d.snd("a team" if odd else team),
        "call": lambda: d.pairwise(team) if odd else d.snd(team),
        "nobody": lambda: d.snd(None),
        "one agent": lambda: d.snd(gs.Deterministic(cases.numbers(12, 1, 2)) if rank == 0 else None),
        "graph": lambda: d.graph_snd(team, other),
        "no graph": lambda: d.graph_snd(team, None if odd else other),
        "small graph": lambda: d.graph_snd(team, gs.graphs.complete(5)),
        "merge": lambda: d.merge(gs.SndAccumulator(3 + odd)),
        "accumulate": lambda: d.accumulate(gs.SndAccumulator(13), team),
        "clusters": lambda: d.accumulate(
            gs.SndAccumulator(12), team, torch.zeros(12, dtype=torch.int64) if odd else None
        ),
        "layout of a batch": lambda: d.accumulate(gs.SndAccumulator(12, clusters=True), rows, flipped),
    }


def refuse(results: Results, rank: int) -> None:
    for name, call in mistakes(rank).items():
        try:
            results["refused", name] = call()
        except Exception as error:
            results["refused", name] = f"{type(error).__name__}: {error}"
    # After all these errors the ranks are still in step.
    results["after"] = gs.distributed.snd(gs.Deterministic(cases.numbers(12, 3, 2, seed=rank)))


def lose(results: Results, rank: int, victim: int, what: signal.Signals, group: Any) -> None:
    """Lose a rank in the middle of a call: after the notes, and after points were exchanged."""
    from time import perf_counter

    totals, began = gs.kernels.pair_totals, perf_counter()

    def die(*args: Any, **options: Any) -> torch.Tensor:
        os.kill(os.getpid(), what)
        return totals(*args, **options)

    gs.kernels.pair_totals = die if rank == victim else totals
    try:
        gs.distributed.snd(gs.Deterministic(cases.numbers(12, 3, 2, seed=rank)), group=group)
    except RuntimeError as error:
        results["lost", what.name] = f"{type(error).__name__}: {error}", perf_counter() - began


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=4)
    groups = {size: dist.new_group(list(range(size))) for size in SIZES}
    short = {"timeout": timedelta(seconds=TIMEOUT)}
    doomed = [dist.new_group([0, 1, 2], **short), dist.new_group([0, 1, 3], **short)]
    rest = dist.new_group([0, 1, 3])  # with time to wait for each other
    results: Results = {}
    for size, group in groups.items():
        if rank < size:
            for part in (differentiate, accumulate, count):
                part(results, size, group)
    refuse(results, rank)
    torch.save(results, folder / f"{rank}.pt")
    if rank != 3:
        lose(results, rank, 2, signal.SIGKILL, doomed[0])
    if rank != 2:
        dist.barrier(rest)
        lose(results, rank, 3, signal.SIGSTOP, doomed[1])
    torch.save(results, folder / f"{rank}.pt")
    (folder / f"{rank}.done").touch()
    os._exit(0)  # groups with a lost rank would wait for it once more


if __name__ == "__main__":
    main()
