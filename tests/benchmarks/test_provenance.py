from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.provenance import verify_commit
from graphsnd.errors import InputError
from graphsnd.plots import provenance
from graphsnd.plots.provenance import hash_sources


def test_only_the_unchanged_sources_of_a_commit_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "src" / "graphsnd" / "plots" / "provenance.py"
    copy.parent.mkdir(parents=True)
    copy.write_text("a = 1")
    monkeypatch.setattr(provenance, "__file__", str(copy))
    (tmp_path / "commit.json").write_text(json.dumps({"commit": "c" * 40, "tree": hash_sources(tmp_path)}))
    verify_commit("result", tmp_path)
    with pytest.raises(InputError, match="graphsnd from"):
        verify_commit("result", tmp_path / "elsewhere")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "more.py").write_text("")
    with pytest.raises(InputError, match="sources changed since commit cccc"):
        verify_commit("result", tmp_path)
    (tmp_path / "commit.json").unlink()
    with pytest.raises(InputError, match="sources of no commit"):
        verify_commit("result", tmp_path)
