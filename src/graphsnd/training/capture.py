"""Programs of tensors, recorded once on a GPU and played back without the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class Program:
    """A function without arguments that reads and writes the same tensors in every call.

    On a GPU it is run once to warm up, then captured in a CUDA graph and replayed: one launch in place of thousands.
    Where that is impossible it is simply called, and ``eager`` says why.

    Args:
        function: Waits for nothing, and leaves its results in tensors that exist before the call.
        changes: The tensors among them that it reads before it writes. The warm-up must not count, so they are put
            back after it.
        device: Where the tensors are.
        capture: False to call it always.
    """

    def __init__(
        self, function: Callable[[], None], changes: Sequence[Tensor], device: torch.device, *, capture: bool
    ) -> None:
        self.function, self.changes, self.device = function, changes, device
        self.graph: torch.cuda.CUDAGraph | None = None
        self.eager: str | None = None if capture and device.type == "cuda" else "not asked for"

    def __call__(self) -> None:
        """Run it once."""
        if self.eager is None and self.graph is None:
            self._record()
        if self.graph is None:
            self.function()
        else:
            self.graph.replay()

    def _record(self) -> None:
        before = [tensor.clone() for tensor in self.changes]
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        # The first call makes handles and workspaces, which cannot be made while recording.
        with torch.cuda.stream(side):
            self.function()
        torch.cuda.current_stream(self.device).wait_stream(side)
        self._restore(before)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self.function()
            self.graph = graph
        except RuntimeError as error:
            # A world that reads from the device, or an operation that cannot be recorded. Nothing has run yet.
            self.eager = str(error).splitlines()[0]
            torch.cuda.synchronize(self.device)

    def _restore(self, before: Sequence[Tensor]) -> None:
        with torch.no_grad():
            for tensor, old in zip(self.changes, before, strict=True):
                tensor.copy_(old)
