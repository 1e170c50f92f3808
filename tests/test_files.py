from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphsnd.errors import InputError
from graphsnd.files import LOCK, hold_lock, remove_parts, write_whole


def test_text_and_bytes_arrive_as_they_are(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "ä\r\n")
    assert (tmp_path / "text").read_bytes() == "ä\r\n".encode()
    write_whole(tmp_path / "text", b"\x00" * 100_000)
    assert (tmp_path / "text").read_bytes() == b"\x00" * 100_000
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failure_leaves_the_old_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    target = tmp_path / "kept"
    target.write_text("old")

    def fail(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="kept") as caught:
        write_whole(target, "new")
    monkeypatch.undo()
    assert (caught.value.errno, caught.value.filename) == (code, str(target))
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_links_are_followed_and_pipes_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "file")
    write_whole(link, "through")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_text() == "through"
    write_whole("/dev/null", "gone")
    assert not Path("/dev/null").is_file()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "elsewhere", "a folder")


def test_a_held_lock_is_refused_at_once_and_says_so_in_one_line(tmp_path: Path) -> None:
    with hold_lock(tmp_path / LOCK):
        start = time.perf_counter()
        with pytest.raises(InputError, match="no other process writes to") as error, hold_lock(tmp_path / LOCK):
            pass
        assert time.perf_counter() - start < 1
        assert "\n" not in str(error.value)
        with ThreadPoolExecutor(1) as threads, pytest.raises(InputError):
            threads.submit(hold_lock(tmp_path / LOCK).__enter__).result()
    with hold_lock(tmp_path / LOCK):  # free again
        pass


def test_a_killed_process_leaves_nothing_that_stops_the_next_one(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, time; from graphsnd.files import hold_lock\n"
        "with hold_lock(pathlib.Path(sys.argv[1])): print(1, flush=True); time.sleep(100)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path / LOCK], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    with pytest.raises(InputError), hold_lock(tmp_path / LOCK):
        pass
    child.kill()
    child.wait()
    child.stdout.close()
    with hold_lock(tmp_path / LOCK):
        pass


def test_what_killed_processes_left_of_files_is_removed(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / ".graphsnd-1-7.part").write_text("half")
    (tmp_path / "inside" / "whole").write_text("whole")
    remove_parts(tmp_path)
    assert [path.name for path in (tmp_path / "inside").iterdir()] == ["whole"]
