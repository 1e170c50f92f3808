"""Seconds of the parts of an iteration, without waiting for the device between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch


class Stopwatch:
    """Adds up time by name: the clock's on a CPU, that of events in the stream on a GPU.

    Args:
        device: Where the work is done.

    Example:
        >>> watch = Stopwatch(torch.device("cpu"))
        >>> with watch("sums"):
        ...     _ = torch.ones(10).sum()
        >>> watch.read()["sums"] > 0
        True
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, defaultdict[str, float](float)
        self.events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count what is done inside."""
        if self.device.type != "cuda":
            start = perf_counter()
            yield
            self.seconds[name] += perf_counter() - start
            return
        ends = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        ends[0].record()
        yield
        ends[1].record()
        self.events.append((name, *ends))

    def read(self) -> defaultdict[str, float]:
        """Seconds by name; waits for the device once."""
        if self.events:
            torch.cuda.synchronize(self.device)
            for name, start, end in self.events:
                self.seconds[name] += start.elapsed_time(end) / 1000
            self.events.clear()
        return self.seconds
