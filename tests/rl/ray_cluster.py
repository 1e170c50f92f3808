"""A Ray cluster of several nodes on this machine, whose nodes are killed while a grid trains."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graphsnd.rl.checkpoint import STACKS
from graphsnd.rl.log import read_rows

ROOT = Path(__file__).parents[2]
# Nodes that are gone are noticed within a second or two, in place of a quarter of a minute.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 4}
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}  # bytes, about the least that Ray takes


@contextlib.contextmanager
def start_cluster(nodes: int) -> Iterator[Any]:
    """Start a head without CPUs, and nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    head = {**NODE, "num_cpus": 0, "include_dashboard": False, "_system_config": QUICK}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            made.add_node(**NODE)
        yield made
    finally:
        made.shutdown()


def begin_command(*words: str) -> subprocess.Popen[str]:
    """Begin ``graphsnd`` in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "graphsnd", *words], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run_command(*words: str) -> None:
    """Run ``graphsnd`` to its end, which must be a good one."""
    process = begin_command(*words)
    said = process.communicate()[0]
    assert process.returncode == 0, said


def kill_nodes(made: Any, out: Path, process: subprocess.Popen[str], moments: Sequence[int], seed: int) -> list[int]:
    """Kill a node as soon as so many iterations are logged, start another one, and go on; return what was logged then.

    Args:
        made: The cluster.
        out: Folder of the grid.
        process: That trains it.
        moments: Numbers of iterations, over all stacks.
        seed: Of the choice of nodes.
    """
    chance, killed = random.Random(seed), list[int]()
    for moment in sorted(moments):
        while process.poll() is None and count_iterations(out) < moment:
            time.sleep(0.02)
        if process.poll() is not None:
            break
        killed.append(count_iterations(out))
        made.remove_node(chance.choice(sorted(made.worker_nodes, key=id)), allow_graceful=False)
        made.add_node(**NODE)
    return killed


def count_iterations(out: Path) -> int:
    """Return the lines of all stacks' logs, without their heads; folders may be renamed meanwhile."""
    count = 0
    for path in (out / STACKS).glob("*/metrics.csv"):
        with contextlib.suppress(FileNotFoundError):
            count += max(0, path.read_bytes().count(b"\n") - 1)
    return count


def numbers(out: Path) -> list[dict[str, str]]:
    """Return the rows of a merged log as its text has them, without the seconds."""
    lines = [line.split(",") for line in (out / "metrics.csv").read_text().splitlines()]
    assert len(read_rows(out)) == len(lines) - 1
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return [{name: cell for name, cell in row.items() if not name.endswith("_seconds")} for row in rows]
