from __future__ import annotations

import json
import platform
from typing import Any

import pytest

import graphsnd as gs
from graphsnd.plots import origin as made
from graphsnd.plots.origin import commit, origin, processor, provenance


def test_origin_is_json_and_says_nothing_private() -> None:
    found = origin("graphsnd bench", 3)
    text = json.dumps(found)
    assert platform.node() not in text or len(platform.node()) < 4
    assert found["versions"]["graphsnd"] == gs.__version__
    assert (found["seed"], found["command"]) == (3, "graphsnd bench")
    assert found["hardware"]["threads"] >= 1


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("subprocess.run", missing)
    assert commit() == {"commit": None, "dirty": None}


def test_processor_and_provenance() -> None:
    assert processor()
    assert provenance("graphsnd demo", 0)[-2:] == ["command: graphsnd demo", "seed 0"]
    assert callable(made)
