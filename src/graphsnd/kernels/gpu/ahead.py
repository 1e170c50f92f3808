"""Launching Triton programs, or compiling all that some work will launch, on all cores, before its first run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import triton
from torch import Tensor

_found: list[Callable[[], Any]] | None = None  # how to compile what would have been launched


def launch(program: Any, grid: Sequence[int], *arguments: Any, **options: Any) -> None:
    """Launch a program, or inside :func:`compile_ahead` only note it."""
    if _found is None:
        program[tuple(grid)](*arguments, **options)
    else:
        types = [part.dtype if isinstance(part, Tensor) else part for part in arguments]
        _found.append(partial(program.warmup, *types, grid=tuple(grid), **options))


def compile_ahead(work: Callable[[], None]) -> None:
    """Call ``work`` without the programs that it launches here, and compile and load these side by side.

    One after the other, as they are first launched, the programs of a training step take twenty seconds. What they
    would have written stays as it was allocated, so ``work`` must not take indices from it.
    """
    global _found
    _found = []
    try:
        work()
    finally:
        found, _found = _found, None
    with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="graphsnd-compile") as pool:
        with triton.AsyncCompileMode(pool):
            programs = [compile_() for compile_ in found]
        # Then have launchers built, and load them.
        list(pool.map(lambda program: getattr(program, "result", lambda: program)().run, programs))
