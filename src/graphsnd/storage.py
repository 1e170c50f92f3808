"""Files that are whole or absent, whenever the machine stops."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path

PARTS = ".graphsnd-*.part"  # what a killed process may leave behind


def write_whole(target: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that ``target`` holds all of it, or what it held before.

    It is written under another name in the same folder, flushed to the disk, renamed, and the folder is flushed. When
    any of this fails the other name is removed. A link is followed; what is no file (a pipe, a terminal) is written to
    as it is.

    Args:
        target: In a folder that exists.
        content: Text is written as UTF-8, with its line ends as they are.

    Raises:
        OSError: With the name of ``target``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder) / "a.txt", "whole")
        ...     [path.name for path in Path(folder).iterdir()]
        ['a.txt']
    """
    path = Path(os.path.realpath(target))
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        # Short, because the target's own name may be as long as names can be; of this thread alone.
        part = path.with_name(PARTS.replace("*", f"{os.getpid()}-{threading.get_ident()}"))
        try:
            _write(part, data)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
        flush_folder(path.parent)
    except OSError as error:
        # The name of the file that was asked for; a failed write has none at all.
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def append(descriptor: int, data: bytes) -> None:
    """Write all of ``data``; the system may take less of it at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def flush_folder(folder: Path) -> None:
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


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        append(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
