"""``graphsnd doctor``: what this machine can run."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from graphsnd.plots.facts import Facts

PACKAGES = ("torch", "numpy", "scipy", "numba", "triton", "safetensors", "matplotlib", "torchrl", "torchmetrics")


def doctor() -> None:
    """Say which versions, devices and kernel backends there are.

    Paste its output into a bug report.
    """
    from rich.console import Console

    from graphsnd.plots.tables import facts_table

    Console().print(facts_table(findings()))


def findings() -> Facts:
    """What there is, as names and sentences."""
    import torch

    from graphsnd import __version__

    lines = [("graphsnd", __version__)]
    lines.append(("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"))
    lines += [(name, _version(name)) for name in PACKAGES]
    cuda = ", ".join(torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count()))
    lines.append(("CUDA device", cuda or "none"))
    lines.append(("CPU threads", str(torch.get_num_threads())))
    return [*lines, *_kernels()]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _kernels() -> Facts:
    from graphsnd import kernels

    able = kernels.available()
    lines = [(f"kernels: {name}", "can run" if why is None else f"cannot run: {why}") for name, why in able.items()]
    return [*lines, ("kernel cache", _cache() if able.get("cpu", "") is None else "not used")]


def _cache() -> str:
    """How many compiled functions numba finds on disk; the first call of each of the others compiles it."""
    from numba.core.dispatcher import Dispatcher

    from graphsnd.kernels.cpu import loops

    folders = {Path(str(d.stats.cache_path)) for d in vars(loops).values() if isinstance(d, Dispatcher)}
    stored = [file for folder in folders for file in folder.glob("loops.*.nbc")]
    if not stored:
        return "empty: the first measurement compiles for some seconds"
    return f"{len(stored)} compiled functions, {sum(file.stat().st_size for file in stored) / 2**20:.1f} MiB"
