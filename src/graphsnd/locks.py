"""Locks: one process at a time writes into a folder."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphsnd.errors import InputError
from graphsnd.storage import PARTS, create_whole, parse_json

LOCK = "run.lock"
PROC = Path("/proc")  # of Linux


@contextmanager
def hold_lock(path: Path, *, break_lock: bool = False) -> Iterator[None]:
    """Hold a lock: a file that names host, process and the start of that process. Readers need none.

    A lock whose process is gone is taken over, but only on its own host; elsewhere nothing can be said of it.

    Args:
        path: Of the lock, in a folder that exists.
        break_lock: Take over the lock that is there, whoever holds it.

    Raises:
        InputError: When another process holds it, with its details.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, hold_lock(Path(folder) / LOCK):
        ...     sorted(json.loads((Path(folder) / LOCK).read_text()))
        ['host', 'pid', 'since', 'started']
    """
    me = {"host": platform.node(), "pid": os.getpid(), "started": start_of(os.getpid())}
    mine = json.dumps(me | {"since": time.strftime("%Y-%m-%d %H:%M:%S%z")}) + "\n"
    _take(path, mine, break_lock=break_lock)
    try:
        yield
    finally:
        # Another process may have broken it; then it is not ours to remove.
        with contextlib.suppress(OSError):
            if _read(path) == mine:
                path.unlink()


def remove_parts(folder: Path) -> None:
    """Remove what killed processes have left of files in a folder and the folders in it."""
    for part in folder.rglob(PARTS):
        if start_of(int(part.name.split("-")[1])) is None:
            part.unlink(missing_ok=True)


def _take(path: Path, mine: str, *, break_lock: bool) -> None:
    while not create_whole(path, mine):
        held = _read(path)
        if held is None:  # released in between
            continue
        if not (break_lock or _is_stale(held)):
            raise _refusal(path, held)
        # Of several that find the same dead lock one removes it, and none removes the lock of the one that was first:
        # removing needs a lock of its own, and what was read must still be there. So must what --break-lock was for.
        with hold_lock(path.with_name(path.name + "~")):
            if _read(path) == held:
                path.unlink()
        break_lock = False


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None


def _parse(held: str) -> dict[str, Any]:
    try:
        parsed = parse_json(held)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {}


def _is_stale(held: str) -> bool:
    holder = _parse(held)
    pid, started = holder.get("pid"), holder.get("started")
    if holder.get("host") != platform.node() or not isinstance(pid, int) or pid < 1:
        return False
    now = start_of(pid)
    return now is None or (now != "" and started != "" and now != started)


def _refusal(path: Path, held: str) -> InputError:
    holder = _parse(held)
    who = ", ".join(f"{key} {holder[key]}" for key in ("host", "pid", "since") if key in holder) or "an unreadable lock"
    fix = f"Wait for it. If you know that it is gone, use --break-lock or remove {path}."
    return InputError("folder", "that no other process writes to", f"{str(path.parent)!r}, in use by {who}", fix)


def start_of(pid: int) -> str | None:
    """Return when a process of this host began; None when it is gone, "" where the system does not say."""
    if (PROC / "self" / "stat").exists():
        try:
            text = (PROC / str(pid) / "stat").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return "" if _is_hidden(pid) else None
        state, *numbers = text.rpartition(")")[2].split()  # the name before it may hold anything
        return None if state in "ZX" else numbers[18]  # a zombie writes no more; in ticks since the machine was started
    # On Windows a `ps` is that of Git Bash, which knows only processes of its own: all others would seem to be gone.
    ps = None if sys.platform == "win32" else shutil.which("ps")
    if ps is None:
        return ""
    command, environment = [ps, "-o", "lstart=", "-p", str(pid)], os.environ | {"LC_ALL": "C"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def _is_hidden(pid: int) -> bool:
    """Return whether a process that ``/proc`` does not show is there, as it may be for those of other users."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
