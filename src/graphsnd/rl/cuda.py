"""Helpers for work on a GPU: CUDA graphs, a clock that does not wait, and rounding of products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import torch
from torch import Tensor

from graphsnd.errors import InputError


class CudaGraph:
    """A function without arguments that reads and writes the same tensors in every call.

    On a GPU it is run once to warm up, then captured in a CUDA graph and replayed: one launch in place of thousands.
    Where that is impossible it is simply called, and ``eager`` says why.

    Args:
        function: Waits for nothing, and leaves its results in tensors that exist before the call.
        changes: The tensors among them that it reads before it writes. They are restored after the warm-up.
        device: Device of the tensors.
        capture: False to call it always.
        warm_up: A shorter function with the same operations; ``function`` when None.
    """

    def __init__(
        self,
        function: Callable[[], None],
        changes: Sequence[Tensor],
        device: torch.device,
        *,
        capture: bool,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        self.function, self.changes, self.device, self.warm_up = function, changes, device, warm_up or function
        self.graph: torch.cuda.CUDAGraph | None = None
        self.eager: str | None = None if capture and device.type == "cuda" else "not asked for"

    def __call__(self) -> None:
        """Run it once."""
        if self.eager is None and self.graph is None:
            self._capture()
        if self.graph is None:
            self.function()
        else:
            self.graph.replay()

    def _capture(self) -> None:
        with restored(self.changes):
            side = torch.cuda.Stream(self.device)
            side.wait_stream(torch.cuda.current_stream(self.device))
            # The first call makes handles and workspaces, which cannot be made during capture.
            with torch.cuda.stream(side):
                self.warm_up()
            torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self.function()
            self.graph = graph
        except RuntimeError as error:
            # A world that reads from the device, or an operation that cannot be captured. Nothing has run yet.
            self.eager = str(error).splitlines()[0]
            torch.cuda.synchronize(self.device)


def check_cuda(device: str) -> None:
    """Raise if a GPU is requested and this machine has none."""
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device", "that this machine has", "cuda", "Use cpu.")


@contextmanager
def restored(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Restore the values of tensors at the end."""
    before = [tensor.clone() for tensor in tensors]
    yield
    with torch.no_grad():
        for tensor, old in zip(tensors, before, strict=True):
            tensor.copy_(old)


class Stopwatch:
    """Adds up seconds by name: from the clock on a CPU, from CUDA events on a GPU, which need no waiting.

    Args:
        device: Device that does the work.

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
        """Count the time spent inside."""
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
        """Return seconds by name; waits for the device once."""
        if self.events:
            torch.cuda.synchronize(self.device)
            for name, start, end in self.events:
                self.seconds[name] += start.elapsed_time(end) / 1000
            self.events.clear()
        return self.seconds


@contextmanager
def matmul_precision(device: torch.device, *, tf32: bool) -> Iterator[None]:
    """Let a GPU round matrix products to TF32 inside, or not, and restore the setting. A CPU is not affected."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
