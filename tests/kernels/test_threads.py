"""Threads that take shares: results in order, one of torch's threads in each, and torch's number left as it was."""

from __future__ import annotations

import threading

import pytest
import torch

from graphsnd.kernels.threads import limit_threads, map_threads


def _number_in_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_order_from_that_many_threads(threads: int) -> None:
    together = threading.Barrier(threads)

    def work(first: int, last: int) -> tuple[int, int, int]:
        together.wait(timeout=60)  # ends only if as many threads work at a time
        return first, last, torch.get_num_threads()

    shares = [(i, i + 2) for i in range(4 * threads)]
    with limit_threads(1):
        assert list(map_threads(work, shares, threads)) == [(*share, 1) for share in shares]


def test_torch_keeps_its_number_of_threads() -> None:
    with limit_threads(2):
        inside = list(map_threads(lambda i, j: torch.get_num_threads(), [(0, 1)] * 8))
        assert inside == [1] * 8
        assert torch.get_num_threads() == 2
        assert _number_in_a_new_thread() == 2
