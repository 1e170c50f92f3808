"""Load: 4 processes of 16 threads measure at once; every answer must have the bits of one thread alone.

A case is a second. Each process keeps to itself what it finds wrong and writes it down at the end: answers with other
bits, errors, a random state, warning filters or modules that are not as they were, memory that grows.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic

import numpy as np
import torch

import graphsnd as gs
from tests.campaign import Outcome
from tests.test_threads import CALLS, bits

FULL = 120
PROCESSES, THREADS = 4, 16
FEW = 10  # seconds below which 2 processes of 4 threads have to do
# After a first round of all calls in all threads, memory may grow by what the allocators of 16 threads keep of calls
# that meet for the first time: a few temporaries of about 1 MB each. A leak of 1 kB per call would be far more.
GROWTH = 64 << 20


def run(seed: int, cases: int) -> Outcome:
    """Measure for ``cases`` seconds."""
    processes, threads = (PROCESSES, THREADS) if cases > FEW else (2, 4)
    for call in jobs(seed).values():
        call()  # so that kernels are compiled here, once, and not in each process
    command = [sys.executable, "-m", "tests.campaign.load", str(cases), str(threads)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen([*command, str(processes * seed + k)], env=environment, stdout=subprocess.PIPE, text=True)
        for k in range(processes)
    ]
    outcome = Outcome()
    for number, process in enumerate(started):
        said, _ = process.communicate()
        if process.returncode:
            outcome.fail(f"a process ended with {process.returncode}", f"process {number} of seed {seed}")
            continue
        report = json.loads(said.splitlines()[-1])
        outcome.cases += report["calls"]
        for kind, count in report["failures"].items():
            outcome.failures[kind] += count
            outcome.examples.setdefault(kind, f"process {number} of seed {seed}")
    return outcome


def jobs(seed: int) -> dict[str, Callable[[], object]]:
    """Calls without arguments, by name: all of the thread tests on a small team, and shared policies."""
    generator = torch.Generator().manual_seed(seed)
    # Above the size from which compiled kernels and several threads are used.
    behavior = gs.Deterministic(torch.randn(100, 24, 4, generator=generator, dtype=torch.float64))
    module = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    policies = [module, *(torch.nn.Linear(5, 2) for _ in range(5)), lambda x: x[:, :2].tanh()]
    observations = torch.randn(200, 5, generator=generator)
    array = np.random.default_rng(seed).normal(size=(40, 6, 2))
    array.flags.writeable = False  # torch warns about these, and the warning is held back

    calls = {name: (lambda call=call: call(behavior)) for name, call in CALLS.items() if name != "distortion"}
    calls["policies"] = lambda: gs.measure(policies, observations)
    calls["read-only array"] = lambda: gs.snd(gs.Deterministic(array))
    calls["module"] = lambda: module.training
    return calls


def work(seconds: float, count: int, seed: int) -> dict[str, object]:
    """Return what ``count`` threads of this process found in that time."""
    torch.set_num_threads(1)
    calls = jobs(seed)
    alone = {name: bits(call()) for name, call in calls.items()}
    mode = calls.pop("module")
    random, filters, before = torch.get_rng_state(), list(warnings.filters), 0
    failures: Counter[str] = Counter()
    counts = [0] * count
    warm = threading.Barrier(count + 1)
    end = float("inf")

    def measure(name: str) -> None:
        try:
            if bits(calls[name]()) != alone[name]:
                failures[f"other bits from {name}"] += 1
        except Exception as error:
            failures[f"{type(error).__name__} from {name}: {error}"[:200]] += 1

    def thread(index: int) -> None:
        torch.set_num_threads(1 + index % 3)
        order = Random(seed * count + index)
        for name in order.sample(sorted(calls), len(calls)):
            measure(name)
        warm.wait()
        warm.wait()
        while monotonic() < end:
            measure(order.choice(sorted(calls)))
            counts[index] += 1

    threads = [threading.Thread(target=thread, args=(index,)) for index in range(count)]
    for each in threads:
        each.start()
    warm.wait()
    gc.collect()
    before, end = resident(), monotonic() + seconds
    warm.wait()
    for each in threads:
        each.join()
    gc.collect()
    grown = resident() - before
    if grown > GROWTH:
        failures["memory grew"] += 1
    if not torch.equal(torch.get_rng_state(), random):
        failures["the global random state changed"] += 1
    if list(warnings.filters) != filters:
        failures["warning filters changed"] += 1
    if bits(mode()) != alone["module"]:
        failures["a module was left in another mode"] += 1
    return {"calls": sum(counts), "grown": grown, "failures": dict(failures)}


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(work(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
