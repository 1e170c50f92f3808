"""Where a result comes from: machine, versions, commit. No host, no user and no path, so it can be shared as it is."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from graphsnd.arguments import checked

PACKAGES = ("torch", "numpy", "numba", "triton")


@checked
def collect_provenance(command: str, seed: int | None = None) -> dict[str, Any]:
    """Return everything a stored result should say about where it was made, ready for JSON."""
    return {
        "command": command,
        "seed": seed,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **find_commit(),
        "hardware": describe_hardware(),
        "versions": find_versions(PACKAGES),
    }


def footer_lines(command: str, seed: int | None = None) -> list[str]:
    """Return versions, command and seed for the footer of a page. No time: the same input gives the same page."""
    versions = find_versions(("torch",))
    items = [f"graphsnd {versions['graphsnd']}", f"torch {versions['torch']}", f"Python {versions['python']}"]
    return [*items, f"command: {command}", *([] if seed is None else [f"seed {seed}"])]


def find_versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    """Return the versions of Python, graphsnd and ``packages``; None for what is not installed."""
    from graphsnd import __version__

    versions: dict[str, str | None] = {"python": platform.python_version(), "graphsnd": __version__}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def describe_hardware() -> dict[str, Any]:
    """Return processor, torch's threads, the GPU (None where there is none), and how busy the machine was before."""
    import torch

    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    cpu = processor_name()
    return {"cpu": cpu, "threads": torch.get_num_threads(), "gpu": gpu, "cores": os.cpu_count(), "load": load}


def processor_name() -> str:
    """Return the model of the processor as its maker calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def find_commit() -> dict[str, Any]:
    """Return the commit of the checkout this package runs from, and whether it was changed; None when installed."""
    given = os.environ.get("GRAPHSND_COMMIT")  # a copy sent to another machine without its history
    if given:
        return {"commit": given, "dirty": None}
    # A package in site-packages may lie inside a repository of the user's, which does not track this file.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return {"commit": None, "dirty": None}
    return {
        "commit": _git("rev-parse", "--verify", "--quiet", "HEAD"),
        "dirty": _git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no") != "",
    }


def _git(*arguments: str) -> str | None:
    """Return what git prints in this file's folder; None where it fails or is missing."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
