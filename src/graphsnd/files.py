"""Files: written whole or not at all, JSON that may be damaged, and one writer per folder."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from graphsnd.errors import InputError

LOCK = "run.lock"
PARTS = ".graphsnd-*-*.part"  # process and thread; what a killed process may leave behind


def write_whole(target: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that ``target`` holds all of it, or what it held before.

    It is written under another name in the same folder, flushed to the disk, renamed, and the folder is flushed. When
    any of this fails the other name is removed. A link is followed; what is no file (a pipe, a terminal) is written to
    as it is.

    Args:
        target: A path in a folder that exists.
        content: Text is written as UTF-8, with its line ends as they are.

    Raises:
        OSError: The error names ``target``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder) / "a.txt", "whole")
        ...     [path.name for path in Path(folder).iterdir()]
        ['a.txt']
    """
    path = Path(os.path.realpath(target))
    data = content.encode() if isinstance(content, str) else content
    with naming(target):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        # Short, because the target's own name may be as long as names can be; of this thread alone.
        part = path.with_name(f".graphsnd-{os.getpid()}-{threading.get_ident()}.part")
        try:
            _write(part, data)
            os.replace(part, path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
        _flush_folder(path.parent)


@contextmanager
def naming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors name the file that was asked for; a failed write names none at all."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def append(descriptor: int, data: bytes) -> None:
    """Write all of ``data``; the system may take less of it at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_json(path: Path, name: str) -> Any:
    """Return what a JSON file says.

    Args:
        path: The file.
        name: Argument name for the message.

    Raises:
        InputError: For a file that is missing, cut, or something else.
    """
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(name, "to be a whole JSON file", f"{str(path)!r} ({error})") from None


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says, or raise ValueError, for brackets that are nested too deep too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock of the operating system, which frees it when the process ends in any way. Readers need none.

    Args:
        path: The lock's file, in a folder that exists. It stays there, and means nothing once no process holds it.

    Raises:
        InputError: If another process or thread holds it. The call does not wait.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, hold_lock(Path(folder) / LOCK):
        ...     with hold_lock(Path(folder) / LOCK):
        ...         pass
        Traceback (most recent call last):
        graphsnd.errors.InputError: Expected `folder` that no other process writes to, got ... Wait until it has ended.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        got = f"{str(path.parent)!r}, whose {path.name} is held by another"
        raise InputError("folder", "that no other process writes to", got, "Wait until it has ended.") from None
    try:
        yield
    finally:
        lock.release()


def remove_parts(folder: Path) -> None:
    """Remove what killed processes have left of files in a folder and the folders in it; call it with the lock held."""
    for part in folder.rglob(PARTS):
        part.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        append(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a file system that has no such thing
            raise
    finally:
        os.close(descriptor)
