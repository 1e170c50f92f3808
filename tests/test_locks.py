from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError
from graphsnd.locks import LOCK, hold_lock, remove_parts, start_of
from graphsnd.storage import PARTS


def lock_of(folder: Path, **changes: Any) -> Path:
    """Return the lock that this process would have written, with some changes."""
    with hold_lock(folder / LOCK):
        mine = json.loads((folder / LOCK).read_text())
    (folder / LOCK).write_text(json.dumps(mine | changes))
    return folder / LOCK


def gone() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_lock_names_its_process_and_is_removed_on_every_way_out(tmp_path: Path) -> None:
    for error in (None, RuntimeError, KeyboardInterrupt, SystemExit):
        try:
            with hold_lock(tmp_path / LOCK):
                held = json.loads((tmp_path / LOCK).read_text())
                assert (held["host"], held["pid"]) == (os.uname().nodename, os.getpid())
                if error is not None:
                    raise error
        except (RuntimeError, KeyboardInterrupt, SystemExit):
            pass
        assert list(tmp_path.iterdir()) == []


def test_the_start_of_a_process_is_what_the_system_says() -> None:
    fields = Path(f"/proc/{os.getpid()}/stat").read_text().split(")")[-1].split()
    assert start_of(os.getpid()) == fields[19]  # field 22, counted from 1 with the two before
    assert start_of(gone()) is None
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    # A zombie: a process that ended and was not waited for.
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(child.pid) is None
    child.wait()


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps")
def test_systems_without_proc_ask_ps_or_do_not_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("graphsnd.locks.PROC", tmp_path)
    year = time.strftime("%Y")
    assert start_of(os.getpid()) == start_of(os.getpid())
    assert str(start_of(os.getpid())).endswith(year)
    assert start_of(gone()) is None
    test_a_held_lock_is_refused_with_its_details(tmp_path)
    test_a_lock_of_a_process_that_is_gone_is_taken_over(tmp_path, {"pid": None})
    with monkeypatch.context() as windows:
        windows.setattr("sys.platform", "win32")
        assert start_of(os.getpid()) == start_of(gone()) == ""  # a `ps` that is there is not asked
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert start_of(gone()) == ""
    with pytest.raises(InputError, match="break-lock"), hold_lock(lock_of(tmp_path, pid=gone())):
        pass


def test_a_held_lock_is_refused_with_its_details(tmp_path: Path) -> None:
    with hold_lock(tmp_path / LOCK):
        before = (tmp_path / LOCK).read_text()
        with pytest.raises(InputError, match=f"pid {os.getpid()}, since .* --break-lock"), hold_lock(tmp_path / LOCK):
            pass
        assert (tmp_path / LOCK).read_text() == before


@pytest.mark.parametrize("changes", [{"pid": None}, {"started": "1"}])
def test_a_lock_of_a_process_that_is_gone_is_taken_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    # Another process may have the number by now: it began at another time.
    lock = lock_of(tmp_path, **{key: value if value else gone() for key, value in changes.items()})
    with hold_lock(lock):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00", b"[]", b'{"host": "?", "pid": "one"}', pytest.param(b"[" * 100_000, id="nested")]
)
def test_a_lock_of_another_host_or_without_sense_is_refused_until_broken(tmp_path: Path, content: bytes) -> None:
    lock_of(tmp_path, host="elsewhere", pid=gone())
    for described in ("host elsewhere", "lock"):
        with pytest.raises(InputError, match=described), hold_lock(tmp_path / LOCK):
            pass
        (tmp_path / LOCK).write_bytes(content)
    with hold_lock(tmp_path / LOCK, break_lock=True):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_a_broken_lock_is_left_to_the_process_that_broke_it(tmp_path: Path) -> None:
    with hold_lock(tmp_path / LOCK):
        (tmp_path / LOCK).write_text("of another")
    assert (tmp_path / LOCK).read_text() == "of another"


def _race(path: Path, start: Any, done: Any, answers: Any) -> None:
    start.wait()
    try:
        with hold_lock(path):
            answers.put(True)
            done.wait()
    except InputError:
        answers.put(False)


def race(folder: Path) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(8):
        lock = lock_of(folder, pid=gone())
        start, done, answers = context.Event(), context.Event(), context.SimpleQueue()
        arguments = (lock, start, done, answers)
        children = [context.Process(target=_race, args=arguments, daemon=True) for _ in range(8)]
        for child in children:
            child.start()
        start.set()
        assert sorted(answers.get() for _ in children) == [False] * 7 + [True]
        done.set()
        for child in children:
            child.join()
        assert list(folder.iterdir()) == []


def test_one_of_many_that_find_a_dead_lock_gets_it(tmp_path: Path) -> None:
    # In a process without threads: what the threads of other tests hold at a fork stays held in its children.
    code = "import sys, pathlib, tests.test_locks as locks; locks.race(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=Path(__file__).parents[1], check=True, timeout=100)


def test_two_threads_are_two(tmp_path: Path) -> None:
    refused = []

    def work() -> None:
        try:
            with hold_lock(tmp_path / LOCK):
                pass
        except InputError as error:
            refused.append(error)

    with hold_lock(tmp_path / LOCK):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_drives_without_second_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    test_a_held_lock_is_refused_with_its_details(tmp_path)
    test_a_lock_of_a_process_that_is_gone_is_taken_over(tmp_path, {"pid": None})


def test_only_parts_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    names = [PARTS.replace("*", str(pid), 1).replace("*", "7") for pid in (gone(), os.getpid())]
    for name in names:
        (tmp_path / "inside").mkdir(exist_ok=True)
        (tmp_path / "inside" / name).write_text("half")
    remove_parts(tmp_path)
    assert [path.name for path in (tmp_path / "inside").iterdir()] == names[1:]
