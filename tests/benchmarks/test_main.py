from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import speed, training, worlds
from benchmarks.__main__ import NAMES, _cell, main
from benchmarks.figures import speed_figure


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    monkeypatch.setattr(speed, "QUICK_AGENTS", (3, 20))
    out, png = tmp_path / "bench.json", tmp_path / "bench.png"
    main(["speed", "--device", "cpu", "--quick", "--json", str(out), "--png", str(png), "--seed", "5"])
    return out, png


def test_a_tiny_run_tells_and_writes(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, png = files
    shown = capsys.readouterr()
    assert "Time of others over exact SND" in shown.out
    for word in ("pair", "cdist", "backward", "sparse", "limit"):
        assert word in shown.out
    assert "exact and sparse SND, n = 20" in shown.err
    result = json.loads(out.read_text())
    assert result["command"] == "python -m benchmarks speed --device cpu --quick --seed 5"
    assert [row["n"] for row in result["exact"]] == [3, 20]
    for row in result["exact"]:
        assert {"pair_loop", "cdist", "fused", "fused_backward", "sparse", "sparse_fresh"} <= set(row["contestants"])
        assert row["input_bytes"] == 256 * row["n"] * 4 * 4
    assert str(tmp_path) not in out.read_text()
    assert png.stat().st_size > 10_000


def test_plot_draws_two_machines_without_measuring(files: tuple[Path, Path], tmp_path: Path) -> None:
    out, png = files[0], tmp_path / "both.png"
    main(["speed", "--plot", str(out), str(out), "--png", str(png)])
    assert png.stat().st_size > 10_000
    figure = speed_figure([json.loads(out.read_text())] * 2)
    assert len(figure.axes) == 2
    assert "[ms]" in figure.axes[0].get_ylabel()


def test_committed_results_can_be_drawn(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "benchmarks" / "results" / "speed" / "cpu-2-cores.json"
    main(["speed", "--plot", str(file), "--png", str(tmp_path / "a.png")])
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--quick", "--full"), "not allowed with"),
        (("--plot", "a.json"), "with --png"),
        (("team.json",), "invalid choice"),
        (("sorting", "--png", "out.png"), "for speed"),
        (("--device", "abacus"), "auto, cpu or cuda"),
        (("--json", "missing/out.json"), "in a folder that exists"),
        (("--plot", "missing.json", "--png", "out.png"), "to be the JSON of a benchmark"),
    ],
)
def test_bad_options_exit_with_2(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_help_lists_every_question(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for name in NAMES:
        assert f"  {name} " in text
    assert "How fast is exact SND" in text


def test_values_are_shown_by_their_kind() -> None:
    row = {"n": 12_000, "share": 0.12345, "time": {"median_s": 0.002, "share_timed": 0.5}, "met": [True, False, True]}
    row |= {"seconds": [3.0, 1.0, 2.0], "none": None, "name": "knn:5", "by": {"cdist": {"median_s": 2.0}}}
    shown = {path: _cell(row, path) for path in (*row, "by.cdist", "by.missing") if path != "by"}
    assert shown == {
        "n": "12,000", "share": "0.123", "time": "2.00 ms*", "met": "no", "seconds": "2", "none": "-", "name": "knn:5",
        "by.cdist": "2.00 s", "by.missing": "-",
    }  # fmt: skip


TIME = {"median_s": 0.002, "min_s": 0.001, "q1_s": 0.001, "q3_s": 0.003}
RESULT = {
    "device": "cpu",
    "hardware": {"threads": 2},
    "worlds": [
        {"world": "navigation", "agents": 100, "environments": 32, "ratio": 50.0,
         "contestants": {"graphsnd": TIME, "vmas": {**TIME, "median_s": 0.1}}},
        {"world": "navigation", "agents": 1000, "environments": 32, "ratio": None, "contestants": {"graphsnd": TIME}},
    ],
}  # fmt: skip
TRAINING = {"device": "cpu", "hardware": {"threads": 2}, "agents": 4, "runs": 1, "samples": 64, "gradient_steps": 8,
            "rollout": TIME, "update": TIME, "iteration": TIME}  # fmt: skip


def test_tables_have_a_row_for_each_case() -> None:
    [(steps, columns)], [(iterations, _)] = worlds.tables(RESULT).values(), training.tables(TRAINING).values()
    assert [_cell(row, "contestants.vmas") for row in steps] == ["100 ms", "-"]
    assert "contestants.vmas" in columns
    assert _cell(iterations[0], "rollout") == "2.00 ms"


def test_files_of_another_kind_are_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b")
    with pytest.raises(SystemExit, match="2"):
        main(["speed", "--quick", "--json", str(table)])
    assert "add --force" in capsys.readouterr().err
    assert table.read_text() == "a,b"
