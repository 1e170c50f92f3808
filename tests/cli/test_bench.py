from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import Plan
from benchmarks.report_bench import bench_figure

TINY = Plan((3, 20), (50, 60), (20, 30), 2, 0.0, observations=24, slow=0.01)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.QUICK", TINY)


@pytest.fixture
def files(run: Any, tiny: None, tmp_path: Path) -> tuple[Any, Path, Path]:
    out, png = tmp_path / "bench.json", tmp_path / "bench.png"
    return run("bench", "--device", "cpu", "--quick", "--json", out, "--png", png, "--seed", 5), out, png


def test_a_tiny_run_tells_and_writes(files: tuple[Any, Path, Path], tmp_path: Path) -> None:
    result, out, png = files
    assert result.exit_code == 0, result.output
    assert "On this machine exact SND is cheaper than sampling a tenth of the pairs" in " ".join(result.stdout.split())
    for word in ("pair loop", "cdist", "10% new", "of limit", "per n log2 n", "random regular"):
        assert word in result.stdout
    assert "exact and sparse SND, n = 20" in result.stderr
    found = json.loads(out.read_text())
    assert found["command"] == "graphsnd bench --device cpu --quick --seed 5"
    assert [row["n"] for row in found["exact"]] == [3, 20]
    for row in found["exact"]:
        assert {"pair_loop", "cdist", "fused", "fused_backward", "sparse", "sparse_fresh"} <= set(row["contestants"])
        assert row["input_bytes"] == 24 * row["n"] * 4 * 4
    assert str(tmp_path) not in out.read_text()
    assert png.stat().st_size > 10_000


def test_plot_draws_two_machines_without_measuring(files: tuple[Any, Path, Path], run: Any, tmp_path: Path) -> None:
    _, out, _ = files
    png = tmp_path / "both.png"
    result = run("bench", "--plot", out, out, "--png", png)
    assert result.exit_code == 0, result.output
    assert png.stat().st_size > 10_000
    figure = bench_figure([json.loads(out.read_text())] * 2)
    assert len(figure.axes) == 2
    assert "[ms]" in figure.axes[0].get_ylabel()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--quick", "--full"), "`--quick` or --full"),
        (("--plot",), "with JSON files and --png"),
        (("team.json",), "only with --plot"),
        (("--device", "abacus"), "`--device` cpu or cuda"),
        (("--json", "missing/out.json"), "in a folder that exists"),
        (("--plot", "missing.json", "--png", "out.png"), "to be the JSON of a benchmark"),
    ],
)
def test_bad_options_are_one_line(arguments: tuple[str, ...], words: str, run: Any) -> None:
    result = run("bench", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_help_is_listed(run: Any) -> None:
    assert "bench" in run("--help").stdout
    assert "--full" in run("bench", "--help").stdout
