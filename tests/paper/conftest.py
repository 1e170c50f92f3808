from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from paper.cli import app


@pytest.fixture
def run() -> Callable[..., Any]:
    """Call the command line of the paper in this process; the result has stdout, stderr and exit_code."""
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def clean_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sources count as those of a commit, so that tests at paper scale run on changed ones too."""
    monkeypatch.setattr("paper.runner.verify_commit", lambda name, root: None)
    monkeypatch.setattr("paper.runner._describe_commit", lambda: "0" * 40)
