"""Nothing in the library needs a system that is like Unix: what other systems lack has a fallback, and it works."""

from __future__ import annotations

import ast
import os
import signal
from pathlib import Path

import pytest

import graphsnd
from benchmarks.provenance import describe_hardware
from graphsnd.files import LOCK, hold_lock, write_whole
from graphsnd.rl.loop import interruptible

# Modules and names that Windows does not have; os.rename is there, but does not replace files.
MODULES = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}
NAMES = {"os.fork", "os.getuid", "os.rename", "os.sched_getaffinity", "os.uname", "os.O_NOFOLLOW", "os.mkfifo"}
NAMES |= {"signal.SIGHUP", "signal.SIGKILL", "signal.SIGUSR1", "signal.alarm", "signal.pause", "os.killpg", "os.setsid"}
SOURCES = sorted(Path(graphsnd.__file__).parent.rglob("*.py"))


def test_no_module_uses_what_windows_lacks() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not MODULES & set(names), f"{path}:{node.lineno}"
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in NAMES, f"{path}:{node.lineno}"


def test_texts_are_read_and_written_as_utf_8() -> None:
    """Windows has another encoding by default."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                text = node.func.attr in ("read_text", "write_text")
                assert not text or "encoding" in {word.arg for word in node.keywords}, f"{path}:{node.lineno}"


def test_fallbacks_without_the_calls_of_unix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY", raising=False)
    monkeypatch.delattr(os, "getloadavg", raising=False)
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    write_whole(tmp_path / "file", "one")
    write_whole(tmp_path / "file", "two")
    assert (tmp_path / "file").read_text() == "two"
    assert describe_hardware()["load"] is None
    with interruptible() as stopped:
        signal.raise_signal(signal.SIGTERM)
        assert stopped() == signal.SIGTERM
    refused = pytest.raises(graphsnd.InputError, match="no other process")
    with hold_lock(tmp_path / LOCK), refused, hold_lock(tmp_path / LOCK):
        pass
