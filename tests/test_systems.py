"""Nothing in the library needs a system that is like Unix: what other systems lack has a fallback, and it works."""

from __future__ import annotations

import ast
from pathlib import Path

import graphsnd

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
