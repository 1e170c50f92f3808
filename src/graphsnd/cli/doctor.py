"""``graphsnd doctor``: what this machine can run."""

from __future__ import annotations

import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import graphsnd
from graphsnd.errors import plural

if TYPE_CHECKING:
    from graphsnd.plots.tables import Lines

PACKAGES = ("torch", "numpy", "scipy", "numba", "triton", "safetensors", "matplotlib", "torchrl", "torchmetrics")


def doctor() -> None:
    """Show versions, devices and kernel backends.

    Paste the output into a bug report.
    """
    from rich.console import Console

    from graphsnd.plots.tables import lines_table

    Console().print(lines_table(describe_machine()))


def describe_machine() -> Lines:
    """Return versions, devices and kernel backends, as names and sentences."""
    import torch

    from graphsnd.kernels.dispatch import available

    python = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    lines = [("graphsnd", graphsnd.__version__), ("python", python)]
    lines += [(name, version(name) if find_spec(name) else "not installed") for name in PACKAGES]
    cuda = ", ".join(torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count()))
    lines += [("CUDA device", cuda or "none"), ("CPU threads", str(torch.get_num_threads()))]
    able = available()
    lines += [(f"kernels: {name}", "can run" if why is None else f"cannot run: {why}") for name, why in able.items()]
    return [*lines, ("kernel cache", _describe_cache() if able.get("cpu", "") is None else "not used")]


def _describe_cache() -> str:
    """Return how many compiled functions numba has on disk; the first call of any other compiles it."""
    from numba.core.dispatcher import Dispatcher

    from graphsnd.kernels.cpu import loops

    folders = {Path(str(d.stats.cache_path)) for d in vars(loops).values() if isinstance(d, Dispatcher)}
    stored = [file for folder in folders for file in folder.glob("loops.*.nbc")]
    if not stored:
        return "empty: the first measurement compiles for some seconds"
    functions, size = plural("function", len(stored)), sum(file.stat().st_size for file in stored) / 2**20
    return f"{len(stored)} compiled {functions}, {size:.1f} MiB"
