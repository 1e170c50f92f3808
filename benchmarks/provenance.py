"""Where a result comes from: machine, versions, commit. It has no host, user or path, so it can be shared as it is."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import graphsnd
from graphsnd.errors import InputError
from graphsnd.files import read_json

PACKAGES = ("torch", "numpy", "scipy", "networkx", "numba", "triton", "vmas", "mpe2", "pykeops")
SOURCES = ("src", "paper", "benchmarks")  # folders of a checkout that results depend on, without their results/
# Endings of all source files.
SUFFIXES = (".py", ".pyi", ".json", ".yaml", ".css", ".md", ".html", ".js", ".mplstyle", ".typed")
PACKAGE = Path(graphsnd.__file__).resolve().parent  # the imported package, which may be another checkout's
MANIFEST = "commit.json"  # at the root of a copy without history: its commit, and the hash of its sources


def collect_provenance(command: str, seed: int | None = None) -> dict[str, Any]:
    """Return everything a stored result should say about where it was made, ready for JSON.

    Args:
        command: Command that made the result.
        seed: Seed of the result.

    Example:
        >>> about = collect_provenance("graphsnd demo", seed=0)
        >>> about["command"], about["seed"], "torch" in about["versions"]
        ('graphsnd demo', 0, True)
    """
    return {
        "command": command,
        "seed": seed,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **find_commit(),
        "hardware": describe_hardware(),
        "versions": find_versions(),
    }


def find_versions() -> dict[str, str | None]:
    """Return versions; None for packages that are not installed. With a GPU, also those of CUDA and the driver."""
    import torch

    versions: dict[str, str | None] = {"python": platform.python_version(), "graphsnd": graphsnd.__version__}
    versions |= {name: metadata.version(name) if find_spec(name) else None for name in PACKAGES}
    if torch.cuda.is_available():
        driver = _run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        versions |= {"cuda": torch.version.cuda, "driver": driver.splitlines()[0] if driver else None}
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
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", about.read_text(encoding="utf-8")) if about.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def find_commit() -> dict[str, Any]:
    """Return the commit this package runs from, whether the sources are other than the commit's, and their hash.

    A checkout asks git. A copy without history compares its sources with the hash that ``make pack`` put beside them
    in ``commit.json``. Elsewhere, as in site-packages, all three are None.
    """
    root = PACKAGE.parents[1]
    # A package in site-packages may lie inside a repository of the user's, which does not track this file.
    if _git("ls-files", "--error-unmatch", "__init__.py") is not None:
        places = [*(f":(top){name}" for name in SOURCES), *(f":(top,exclude){name}/results" for name in SOURCES)]
        changed = _git("--no-optional-locks", "status", "--porcelain", "--", *places) != ""
        commit = _git("rev-parse", "--verify", "--quiet", "HEAD")
        return {"commit": commit, "dirty": changed, "tree": hash_sources(root)}
    if not (root / MANIFEST).is_file():
        return {"commit": None, "dirty": None, "tree": None}
    packed, tree = read_json(root / MANIFEST, MANIFEST), hash_sources(root)
    return {"commit": packed["commit"], "dirty": packed["tree"] != tree, "tree": tree}


def verify_commit(name: str, root: Path) -> None:
    """Raise if the sources that run are not those of a known commit.

    Args:
        name: Name of the result that would be written.
        root: Root of the checkout or copy that the caller lies in, in case the package was imported from another one.

    Raises:
        InputError: For changed sources, and for sources without a known commit.
    """
    about, here = find_commit(), PACKAGE.parents[1]
    if about["commit"] is None or about["dirty"] or here != root.resolve():
        of = f"changed since commit {about['commit']}" if about["dirty"] else "of no commit"
        got = f"sources {of}" if here == root.resolve() else f"graphsnd from {here}"
        fix = "Commit the changes. For a machine without the repository use make pack."
        raise InputError(name, "to be made by the unchanged sources of a commit", got, fix)


def hash_sources(root: Path, suffixes: tuple[str, ...] = SUFFIXES) -> str:
    """Return the SHA-256 of all sources below the root of a checkout, names and bytes."""
    digest = hashlib.sha256()
    names = (path.relative_to(root).as_posix() for folder in SOURCES for path in (root / folder).rglob("*.*"))
    for name in sorted(name for name in names if name.endswith(suffixes) and name.split("/")[1] != "results"):
        content = (root / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _git(*arguments: str) -> str | None:
    """Return the output of git in the folder of the package; None if it fails or is missing."""
    return _run("git", "-C", str(PACKAGE), *arguments)


def _run(*command: str) -> str | None:
    """Return the output of a command; None if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
