from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from graphsnd.cli.app import app


@pytest.fixture
def run() -> Callable[..., Any]:
    """Call the command line in this process; the result has stdout, stderr and exit_code."""
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])


@pytest.fixture
def assert_one_line(run: Callable[..., Any], tmp_path: Path) -> Callable[..., None]:
    """Call a command with bad input, which must end in one line with these words and leave nothing behind."""

    def check(words: str, *arguments: str) -> None:
        result = run(*arguments, "--out", tmp_path / "none")
        assert result.exit_code == 2
        assert result.stderr.startswith("graphsnd: ")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "none").exists()

    return check


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    """Twelve Gaussian agents on 40 observations, with positions."""
    generator = torch.Generator().manual_seed(3)
    return {
        "loc": torch.randn(40, 12, 2, generator=generator),
        "scale": torch.rand(40, 12, 2, generator=generator) + 0.1,
        "positions": torch.randn(12, 3, generator=generator),
    }


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Write arrays to an ``.npz`` file."""

    def write(name: str = "team.npz", **arrays: Any) -> Path:
        path = tmp_path / name
        np.savez(path, **{key: np.asarray(value) for key, value in arrays.items()})
        return path

    return write
