from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.comparison import compare, times_in
from benchmarks.timing import summarise_times

ROUNDS = [1.0, 1.1, 1.2, 1.3, 1.4]


def result(**factors: float) -> dict[str, Any]:
    """Three times, each with its factor."""
    times = {name: summarise_times([factors.get(name, 1.0) * t for t in ROUNDS]) for name in ("snd", "limit", "cdist")}
    rows = [{"case": "exact", "n": 50, "features": 4, "contestants": {name: times[name] for name in ("snd", "limit")}}]
    return {"format": 1, "suite": "calls", "calls": rows, "other": times["cdist"], "hardware": {"load": 0.5}}


def test_times_are_found_by_what_tells_rows_apart() -> None:
    names = [what for what, _ in times_in(result())]
    row = "calls (case exact, n 50, features 4) contestants"
    assert names == [f"{row} snd", f"{row} limit", "other"]


def test_what_moved_is_beyond_the_spread_of_the_rounds() -> None:
    assert compare(result(), result()) == []
    assert compare(result(), result(snd=1.2)) == []  # rounds of 1.2 to 1.7 against 1.0 to 1.4
    (slower,) = compare(result(), result(snd=1.5))
    assert slower["what"].endswith("snd")
    assert slower["times_as_long"] == pytest.approx(1.5)
    (faster,) = compare(result(snd=1.5), result())
    assert faster["times_as_long"] < 1
    both = compare(result(), result(snd=0.5, cdist=3.0))
    assert [move["times_as_long"] > 1 for move in both] == [True, False]


def test_small_changes_of_steady_times_are_no_news() -> None:
    steady = {"median_s": 1.0, "min_s": 1.0, "q1_s": 1.0, "q3_s": 1.0}
    assert compare({"a": steady}, {"a": {key: 1.04 for key in steady}}) == []
    assert len(compare({"a": steady}, {"a": {key: 1.06 for key in steady}})) == 1


def test_rows_that_only_one_result_has_are_left_out() -> None:
    other = copy.deepcopy(result(snd=9.0))
    other["calls"][0]["n"] = 51
    assert compare(result(), other) == []


def test_the_command_prints_what_moved_and_fails_where_it_is_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("before.json", "after.json")]
    for file, made in zip(files, (result(), result(snd=2.0)), strict=True):
        file.write_text(json.dumps(made))
    with pytest.raises(SystemExit) as ended:
        main(["--compare", *map(str, files)])
    assert ended.value.code == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of 3 times are the same within noise. Load: 0.5 and 0.5." in shown
    assert "1.20 s 2.40 s 2" in shown
    main(["--compare", *map(str, reversed(files))])  # faster is no failure
    assert "2.40 s 1.20 s 0.5" in " ".join(capsys.readouterr().out.split())
