"""``--stack`` and ``--ray`` of ``graphsnd train``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import graphsnd.rl
from graphsnd.cli.app import app
from graphsnd.plots.training_tables import describe_grid, grid_table
from graphsnd.rl import Settings, Task
from graphsnd.rl.grid import Stack
from graphsnd.rl.log import Row, read_rows

SMALL = (
    "navigation", "--agents", "2", "--set", "environments=2", "--set", "steps=4", "--iterations", "2",
    "--seeds", "0,1,2", "--device", "cpu",
)  # fmt: skip
TASK = Task("navigation", 2, {}, (0, 1), settings=Settings(iterations=10))


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_stacks_in_one_process(tmp_path: Path) -> None:
    out = str(tmp_path)
    result = run("train", *SMALL, "--stack", "2", "--out", out)
    assert result.exit_code == 0, result.output
    assert "2 of 2 stacks finished, 4 of 4 iterations" in " ".join(result.output.split())
    assert [(row.iteration, row.seed) for row in read_rows(tmp_path)] == [(i, s) for i in (1, 2) for s in range(3)]
    assert run("train", "--resume", "--iterations", "3", "--out", out).exit_code == 0
    assert len(read_rows(tmp_path)) == 9
    for words, message in (
        (("train", "--resume", "--stack", "1"), "`--stack` without --resume"),
        (("train", "--resume", "--iterations", "2"), "to be at least 3, as before"),
        (("train", *SMALL), "Resume it"),
    ):
        refused = run(*words, "--out", out)
        assert (refused.exit_code, message in " ".join(refused.output.split())) == (2, True), refused.output


def test_a_training_that_was_not_cut_is_resumed_without_ray(tmp_path: Path) -> None:
    assert run("train", *SMALL, "--out", str(tmp_path)).exit_code == 0
    refused = run("train", "--resume", "--ray", "auto", "--out", str(tmp_path))
    assert refused.exit_code == 2
    assert "`--out` to hold a grid of stacks" in refused.output


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (("--ray", "head:6379"), "head:6379"),
        (("--ray=auto", "--stack", "2"), "auto"),
    ],
)
def test_an_address_and_a_device_reach_the_cluster(
    words: tuple[str, ...], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def fake(task: Any, folder: Path, **options: Any) -> Any:
        given.update(options)
        (folder / "metrics.csv").write_text(",".join(Row.__dataclass_fields__) + "\n")
        return (Stack("0", task, folder, state="failed", error="boom"),), 0

    monkeypatch.setattr(graphsnd.rl, "train_grid", fake)
    result = run("train", *SMALL, "--device", "cuda", *words, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert (given["ray"], given["device"]) == (address, "cuda")
    assert "boom" in result.output
    assert "1 that failed. Try again with: graphsnd train --resume" in " ".join(result.output.split())


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    for address in ("localhost:1", "localhost:99999", "localhost:x"):
        refused = run("train", *SMALL, "--ray", address, "--out", str(tmp_path))
        assert refused.exit_code == 2
        assert "`--ray` to be the address of a cluster" in " ".join(refused.output.split())


def test_one_table_has_progress_time_left_and_failures() -> None:
    folder = Path("nowhere")
    stacks = [
        Stack("0", TASK, folder, 10, "finished"),
        Stack("1", TASK, folder, 4, "running"),
        Stack("2", TASK, folder, 1, "failed", error="OSError:\n no space"),
        Stack("3", TASK, folder),
    ]
    told = "1 of 4 stacks finished, 1 running, 1 waiting, 1 failed, 15 of 40 iterations"
    assert describe_grid(stacks, 10.0) == f"{told}, about 16.7 s left"
    assert describe_grid(stacks, 10.0, before=10) == f"{told}, about 50.0 s left"
    assert describe_grid(stacks, 10.0, before=15) == told
    console = Console(width=200)
    with console.capture() as shown:
        console.print(grid_table(stacks, 10.0))
    lines = shown.get().splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["1", "2"]
    assert "seed-0 and 1 more" in lines[3]
    assert "OSError: no space" in lines[4]
