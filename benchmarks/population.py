"""What does 1% cost on a population on disk, over its size: time, bytes read, and memory?

Networks of 18-64-64-4 with random weights, in shards of 10,000, about 23 kB each. Each measurement is
`graphsnd.measure(Team.load(folder), observations, rel_tol=0.01)` in a process of its own, which draws from 4,096
observations. cold: after the system was asked to forget the files; warm: again. seconds: of the call, opening included.
read_bytes: that the disk was asked for, by the system's count. anonymous_bytes: memory of the process at its peak,
less what it had before the call; mapped_bytes: pages of the files in memory at the end, which the system may drop.
write_s: making weights, files and the index of bounds, once; None where the folder was there from another run, below
the system's folder for temporary files.

Linux only, which counts bytes. CPU only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any

import torch

import graphsnd as gs
from benchmarks.timing import Options, Tables
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam, Team, save_population

SHARD, SIZES = 10_000, (18, 64, 64, 4)
COLUMNS = ("agents", "state", "seconds", "read_bytes", "anonymous_bytes", "mapped_bytes", "evaluations", "guaranteed")


def measure(options: Options) -> dict[str, Any]:
    """Measure 10^4 and 10^5 policies; with ``full`` 10^6 too, which take 23 GB."""
    counts = (200,) if options.quick else (10**4, 10**5, 10**6) if options.full else (10**4, 10**5)
    rows = []
    for n in counts:
        options.step(f"n = {n:,}")
        folder, begin, seconds = Path(tempfile.gettempdir()) / f"graphsnd-population-{n}", perf_counter(), None
        if not (folder / "population.json").is_file():
            save_population(make_shards(n), folder)
            seconds = perf_counter() - begin
        for state in ("cold", "warm"):
            if state == "cold":
                forget(folder)
            command = [sys.executable, "-m", "benchmarks.population", str(folder), str(options.seed)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append({"agents": n, "state": state, "write_s": seconds} | json.loads(done.stdout))
    return {"population": rows}


def make_shards(n: int) -> Iterator[StackedTeam]:
    """Draw the policies, one shard at a time."""
    for shard, begin in enumerate(range(0, n, SHARD)):
        batch, generator = (min(SHARD, n - begin),), torch.Generator().manual_seed(shard)
        network = StackedMLP.create(batch, SIZES, generator=generator, init="linear")
        yield StackedTeam(network, GaussianHead(2, scale="network"))


def forget(folder: Path) -> None:
    """Ask the system to drop the files from its cache."""
    os.sync()
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_counter(file: str, name: str) -> int:
    """Return a line of one of the system's files about this process, in bytes."""
    line = next(line for line in Path("/proc/self", file).read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * (1024 if line.endswith("kB") else 1)


def measure_once(folder: Path, seed: int) -> dict[str, Any]:
    """Measure one population in this process, and watch its memory."""
    observations = torch.randn(4096, SIZES[0], generator=torch.Generator().manual_seed(seed))
    before, peaks, done = (read_counter("status", "RssAnon"), read_counter("io", "read_bytes")), [0], Event()

    def watch() -> None:
        while not done.wait(0.005):
            peaks[0] = max(peaks[0], read_counter("status", "RssAnon"))

    watcher, begin = Thread(target=watch), perf_counter()
    watcher.start()
    estimate = gs.measure(Team.load(folder), observations, rel_tol=0.01, seed=seed)
    seconds = perf_counter() - begin
    done.set()
    watcher.join()
    return {
        "seconds": seconds,
        "read_bytes": read_counter("io", "read_bytes") - before[1],
        "anonymous_bytes": peaks[0] - before[0],
        "mapped_bytes": read_counter("status", "RssFile"),
        "evaluations": estimate.policy_evaluations,
        "distances": estimate.distances,
        "value": estimate.value,
        "interval": estimate.interval,
        "guaranteed": estimate.guaranteed,
        "design": estimate.design,
    }


def tables(result: dict[str, Any]) -> Tables:
    """Return the costs by size."""
    return {"1% of SND, from a population on disk": (result["population"], COLUMNS)}


if __name__ == "__main__":
    print(json.dumps(measure_once(Path(sys.argv[1]), int(sys.argv[2]))))
