"""Files that are whole or absent, whenever the machine stops; and JSON that may be damaged."""

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

from graphsnd.errors import InputError

PARTS = ".graphsnd-*-*.part"  # process and thread; what a killed process may leave behind


def write_whole(target: str | os.PathLike[str], content: str | bytes, *, keep: Path | None = None) -> None:
    """Write a file so that ``target`` holds all of it, or what it held before.

    It is written under another name in the same folder, flushed to the disk, renamed, and the folder is flushed. When
    any of this fails the other name is removed. A link is followed; what is no file (a pipe, a terminal) is written to
    as it is.

    Args:
        target: In a folder that exists.
        content: Text is written as UTF-8, with its line ends as they are.
        keep: A second name in the same folder, for what ``target`` held before. A crash may leave that one alone.

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
    with naming(target):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        with _part_of(path, data) as part:
            if keep is not None and path.exists():
                os.replace(path, keep)
            os.replace(part, path)
        flush_folder(path.parent)


def create_whole(target: Path, content: str) -> bool:
    """Make a file with all of its content at once, and return whether it was absent; one that is there stays."""
    with naming(target), _part_of(target, content.encode()) as part:
        try:
            os.link(part, target)
        except FileExistsError:
            return False
        except OSError:
            # Some drives know no second name of a file. There it is absent, then empty, then whole.
            return _create_in_place(target, content.encode())
        return True


@contextmanager
def naming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors name the file that was asked for; a failed write names none at all."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def read_json(path: Path, name: str) -> Any:
    """Return what a JSON file says.

    Args:
        path: Of the file.
        name: What errors call it.

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


@contextmanager
def _part_of(path: Path, data: bytes) -> Iterator[Path]:
    """Write a file beside ``path`` and flush it; it is gone afterwards, unless it was given another name."""
    # Short, because the target's own name may be as long as names can be; of this thread alone.
    part = path.with_name(f".graphsnd-{os.getpid()}-{threading.get_ident()}.part")
    try:
        _write(part, data, os.O_TRUNC)
        yield part
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _create_in_place(path: Path, data: bytes) -> bool:
    try:
        _write(path, data, os.O_EXCL)
    except FileExistsError:
        return False
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    return True


def _write(path: Path, data: bytes, flag: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flag | getattr(os, "O_BINARY", 0), 0o666)
    try:
        append(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
