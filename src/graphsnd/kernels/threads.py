"""Threads over shares of a work, each of which works alone: what they compute does not depend on their number."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Within it torch uses ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def split_range(count: int, least: int = 1, shares: int | None = None) -> list[tuple[int, int]]:
    """Split a range into shares, by default a few per thread; their size is a multiple of ``least``."""
    shares = max(1, min(shares or 4 * torch.get_num_threads(), count // least))
    step = -(-count // shares)
    step += -step % least
    return [(i, min(i + step, count)) for i in range(0, count, step)]


def run_threads(kernel: Callable[[int, int], None], shares: Sequence[tuple[int, int]]) -> None:
    """Run a kernel that releases the interpreter lock on all shares, in torch's number of threads."""
    for _ in map_threads(kernel, shares):
        pass


def map_threads(
    kernel: Callable[[int, int], Result], shares: Sequence[tuple[int, int]], threads: int | None = None
) -> Iterator[Result]:
    """Yield the kernel's results in the order of the shares, while later ones are computed.

    Args:
        kernel: Called with each of the shares.
        shares: Ranges, or any pairs of integers.
        threads: Number of threads; torch's when None. Inside each of them torch uses one.
    """
    threads = threads or torch.get_num_threads()
    if len(shares) == 1 or threads == 1:
        return itertools.starmap(kernel, shares)
    # Numba's own thread pool and torch's would fight over the cores, and does not survive a fork.
    return _pool(os.getpid(), threads).map(kernel, *zip(*shares, strict=True))


@lru_cache(maxsize=1)
def _pool(pid: int, threads: int) -> ThreadPoolExecutor:
    """Return threads in which torch uses no further ones."""
    pool, all_here = ThreadPoolExecutor(threads, thread_name_prefix="graphsnd"), threading.Barrier(threads)
    before = torch.get_num_threads()

    def work_alone() -> None:
        torch.get_num_threads()  # or torch would set it later, to the number of new threads
        torch.set_num_threads(1)
        all_here.wait()

    wait([pool.submit(work_alone) for _ in range(threads)])
    torch.set_num_threads(before)  # torch's number for new threads is the last that any thread has set
    return pool
