"""Every question runs from the command line, shows tables and writes JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.__main__ import NAMES, _tables, main

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results"
NEEDS = {"dico": "benchmarl"}
SLOW = ("coverage", "dico")


def ask(name: str, folder: Path, device: str = "cpu") -> dict[str, Any]:
    file = folder / f"{name}.json"
    main([name, "--device", device, "--quick", "--json", str(file), "--seed", "5"])
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.integration] * (name in SLOW)) for name in NAMES]
)
@pytest.mark.filterwarnings("ignore")  # BenchMARL and TorchRL deprecate each other's names
def test_a_quick_run_shows_and_writes_what_it_measured(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(NEEDS.get(name, "torch"))
    result = ask(name, tmp_path)
    assert result["command"] == f"python -m benchmarks {name} --device cpu --quick --seed 5"
    assert result["hardware"]["threads"] == torch.get_num_threads()
    assert {"commit", "versions", "notes"} <= result.keys()
    shown = capsys.readouterr().out
    assert f"\n{name}, " in shown


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["speed", "calls", "share", "worlds", "training"])
def test_a_quick_run_on_a_gpu(name: str, tmp_path: Path) -> None:
    result = ask(name, tmp_path, "cuda")
    for row in [*result.get("exact", ()), *result.get("calls", ())]:
        assert 0 < row["fraction_of_limit"] < 1
    for row in result.get("worlds", ()):
        assert "graphsnd, CUDA graph" in row["contestants"]


@pytest.mark.parametrize("name", ["speed", "share"])
def test_committed_results_of_two_machines_can_be_drawn(name: str, tmp_path: Path) -> None:
    files = sorted((COMMITTED / name).glob("*.json"))
    assert len(files) == 2
    main(["--plot", *map(str, files), "--png", str(tmp_path / "a.png")])
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(("words", "message"), [
    (("--quick", "--full"), "not allowed with"),
    (("sorting",), "invalid choice"),
    (("--device", "abacus"), "invalid choice"),
    (("--json", "missing/out.json"), "in a folder that exists"),
    (("--plot", "missing.json"), "to be the JSON of a benchmark"),
    (("--plot", str(COMMITTED / "worlds" / "h200.json")), "to be of speed or share"),
])  # fmt: skip
def test_bad_options_exit_with_2(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(list(words))
    assert message in capsys.readouterr().err


def test_lists_of_rows_are_tables_of_their_times_and_numbers() -> None:
    part = {"median_s": 0.002, "share_timed": 0.5}
    row = {"n": 12_000, "share": 0.12345, "contestants": {"snd": part}, "over_snd": {"cdist": 2.0}, "name": "knn:5"}
    assert list(_tables("speed", [{"exact": [row], "notes": ["text"], "took": True}])) == [
        ("speed, exact", [{"n": "12,000", "share": "0.123", "snd": "2.00 ms*", "name": "knn:5"}]),
        ("speed, exact, over_snd", [{"n": "12,000", "cdist": "2"}]),
    ]
