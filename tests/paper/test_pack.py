"""A packed commit, unpacked where there is no repository, knows its commit and notices changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError
from paper import pack as packing
from paper.pack import pack

ROOT = Path(__file__).parents[2]
ASK = """
from pathlib import Path
from graphsnd.plots.provenance import find_commit
print(*[find_commit()[name] for name in ("commit", "dirty")])
Path("paper/recovery.py").write_text("")
print(*[find_commit()[name] for name in ("commit", "dirty")])
"""


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean checkout of these sources as they are now, committed there."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = tmp_path / "checkout"
    hidden = shutil.ignore_patterns("results", "__pycache__")
    for name in ("src", "paper", "benchmarks"):
        shutil.copytree(ROOT / name, root / name, ignore=hidden)
    (root / "tests").mkdir()
    for name in ("tests/one.py", "paper/results/old.json"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    for name in ("pyproject.toml", "Makefile", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    _git("-C", str(root), "init", "-q")
    _git("-C", str(root), "add", ".")
    _git("-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all")
    return root


def _python(root: Path, *arguments: str) -> Any:
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)


def test_packed_and_unpacked(checkout: Path, tmp_path: Path) -> None:
    done = _python(checkout, "-m", "paper", "pack", str(tmp_path / "sources.tgz"))
    assert done.returncode == 0, done.stderr
    commit, copy = _git("-C", str(checkout), "rev-parse", "HEAD"), tmp_path / "copy"
    assert commit in done.stdout
    with tarfile.open(tmp_path / "sources.tgz") as archive:
        archive.extractall(copy, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(copy)
    assert not (copy / "paper" / "results").exists()
    assert _python(copy, "-c", ASK).stdout.split() == [commit, "False", commit, "True"]
    (checkout / "paper" / "recovery.py").write_text("")
    refused = _python(checkout, "-m", "paper", "pack", str(tmp_path / "more.tgz"))
    assert (refused.returncode, (tmp_path / "more.tgz").exists()) == (2, False)
    assert "changed since commit" in " ".join(refused.stderr.split())


def test_what_cannot_be_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"end in \.tgz"):
        pack(tmp_path / "sources.zip")
    monkeypatch.setattr(packing, "verify_commit", lambda name, root: None)
    monkeypatch.setattr(packing, "ROOT", tmp_path)
    with pytest.raises(InputError, match="from a repository"):
        pack(tmp_path / "sources.tgz")
