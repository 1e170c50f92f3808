from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import graphsnd as gs
from benchmarks import provenance
from benchmarks.provenance import collect_provenance, find_commit, processor_name, verify_commit
from graphsnd.errors import InputError


def test_origin_is_json_and_says_nothing_private() -> None:
    found = collect_provenance("graphsnd doctor", 3)
    text = json.dumps(found)
    assert platform.node() not in text or len(platform.node()) < 4
    assert found["versions"]["graphsnd"] == gs.__version__
    assert (found["seed"], found["command"]) == (3, "graphsnd doctor")
    assert found["hardware"]["threads"] >= 1
    assert processor_name()


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("subprocess.run", missing)
    assert find_commit() == {"commit": None, "dirty": None, "tree": None}


def test_a_repository_that_does_not_track_the_package_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    copy = tmp_path / "src" / "graphsnd" / "__init__.py"
    copy.parent.mkdir(parents=True)
    copy.write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    monkeypatch.setattr(provenance, "PACKAGE", copy.parent)
    assert find_commit() == {"commit": None, "dirty": None, "tree": None}
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "second"], check=True)
    found = find_commit()
    assert len(found["commit"]) == 40
    assert found["dirty"] is False
    (tmp_path / "paper" / "results").mkdir(parents=True)
    (tmp_path / "paper" / "results" / "one.yaml").write_text("results are no sources")
    assert find_commit() == found
    (tmp_path / "paper" / "new.py").write_text("")
    assert (find_commit()["dirty"], find_commit()["tree"] != found["tree"]) == (True, True)


def test_a_copy_without_history_proves_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "src" / "graphsnd" / "__init__.py"
    copy.parent.mkdir(parents=True)
    copy.write_text("a = 1")
    monkeypatch.setattr(provenance, "PACKAGE", copy.parent)
    # The hash as the documentation says it: name, length and bytes of every source in turn.
    name, digest = b"src/graphsnd/__init__.py", hashlib.sha256()
    digest.update(name + b"\0" + b"5" + b"\0" + b"a = 1")
    (tmp_path / "commit.json").write_text(json.dumps({"commit": "c" * 40, "tree": digest.hexdigest()}))
    assert find_commit() == {"commit": "c" * 40, "dirty": False, "tree": digest.hexdigest()}
    verify_commit("result", tmp_path)
    with pytest.raises(InputError, match="graphsnd from"):
        verify_commit("result", tmp_path / "elsewhere")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "more.py").write_text("")
    assert find_commit()["dirty"] is True
    with pytest.raises(InputError, match="sources changed since commit cccc"):
        verify_commit("result", tmp_path)
    (tmp_path / "commit.json").unlink()
    assert find_commit() == {"commit": None, "dirty": None, "tree": None}
    with pytest.raises(InputError, match="sources of no commit"):
        verify_commit("result", tmp_path)
