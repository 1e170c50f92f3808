"""Where a result comes from: machine, versions, commit. No host, no user and no path, so it can be shared as it is."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "numpy", "numba", "triton")


def origin(command: str, seed: int | None = None) -> dict[str, Any]:
    """Everything a stored result should say about where it was made, ready for JSON."""
    return {
        "command": command,
        "seed": seed,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **commit(),
        "hardware": hardware(),
        "versions": versions(),
    }


def provenance(command: str, seed: int | None = None) -> list[str]:
    """What made a page: versions, command and seed. No time, so that the same input gives the same page."""
    found = versions()
    items = [f"graphsnd {found['graphsnd']}", f"torch {found['torch']}", f"Python {found['python']}"]
    return [*items, f"command: {command}", *([] if seed is None else [f"seed {seed}"])]


def versions() -> dict[str, str | None]:
    """Versions of Python, graphsnd and what it computes with; None for what is not installed."""
    from graphsnd import __version__

    found: dict[str, str | None] = {"python": platform.python_version(), "graphsnd": __version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def hardware() -> dict[str, Any]:
    """Processor, the threads torch uses, the GPU (None where there is none), and how busy the machine was before."""
    import torch

    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": processor(), "threads": torch.get_num_threads(), "gpu": gpu, "cores": os.cpu_count(), "load": load}


def processor() -> str:
    """The model of the processor as its maker calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> dict[str, Any]:
    """The commit of the checkout that this package runs from, and whether it was changed; None for an installed one."""
    told = os.environ.get("GRAPHSND_COMMIT")  # a copy sent to another machine without its history
    if told:
        return {"commit": told, "dirty": None}
    package = Path(__file__).resolve().parents[1]
    top = _git(package, "rev-parse", "--show-toplevel")
    # A package in somebody's site-packages may lie inside a repository that is not ours.
    if top is None or Path(top).resolve() / "src" / "graphsnd" != package:
        return {"commit": None, "dirty": None}
    return {
        "commit": _git(package, "rev-parse", "--verify", "--quiet", "HEAD"),
        "dirty": _git(package, "--no-optional-locks", "status", "--porcelain", "--untracked-files=no") != "",
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
