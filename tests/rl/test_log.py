from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsnd import InputError
from graphsnd.rl.log import METRICS, CsvLog, Row, check_complete, read_rows


def row(iteration: int, seed: int = 0, **changes: object) -> Row:
    seconds = {"rollout_seconds": 0.1 * iteration, "update_seconds": 1 / 3}
    return Row(iteration=iteration, seed=seed, reward=0.1 * iteration, value_loss=0.5, **seconds, **changes)  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = CsvLog(tmp_path)
    rows = [row(1), row(1, 7, snd=1 / 3, snd_observations=12), row(2), row(3, arm="knn:2", target=0.1, audit=1e-9)]
    for each in rows:
        log.write([each])
    log.close()
    assert read_rows(tmp_path) == rows
    heads = (tmp_path / METRICS).read_text().splitlines()[0].split(",")
    assert heads == [
        field.name for field in dataclasses.fields(Row) if any(getattr(r, field.name) is not None for r in rows)
    ]


@given(st.lists(st.sets(st.sampled_from(["solved", "snd", "audit", "kl"]))))
def test_columns_are_those_that_any_row_has(measured: list[set[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = CsvLog(Path(folder))
        rows = [row(place + 1, **dict.fromkeys(names, 0.25)) for place, names in enumerate(measured)]
        for each in rows:
            log.write([each])
        log.close()
        assert read_rows(Path(folder)) == rows
        resumed = CsvLog(Path(folder), after=2)
        resumed.close()
        assert read_rows(Path(folder)) == rows[:2]


def test_a_resumed_log_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    log = CsvLog(tmp_path)
    log.write([row(i) for i in range(1, 6)])
    log.close()
    with (tmp_path / METRICS).open("a") as file:
        file.write("6,0,0.1")  # cut off in the middle of a line
    log = CsvLog(tmp_path, after=3)
    log.write([row(4, 9)])
    log.close()
    assert [(r.iteration, r.seed) for r in read_rows(tmp_path)] == [(1, 0), (2, 0), (3, 0), (4, 9)]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"metrics\.csv"):
        read_rows(tmp_path)
    (tmp_path / METRICS).write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="other columns"):
        read_rows(tmp_path)


def test_a_cut_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    log = CsvLog(tmp_path)
    log.write([row(i) for i in range(1, 5)])
    log.close()
    path = tmp_path / METRICS
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:-cut])
        lines = whole[:-cut].count(b"\n")
        if lines == 0:
            break
        assert [r.iteration for r in read_rows(tmp_path)] == list(range(1, lines))
    third = whole.index(b"\n3,") + 1
    for damage in (b"\x00\x00", b"\xff\xfe", b"three", b",,,", b'"'):
        path.write_bytes(whole[:third] + damage + whole[third + 2 :])
        with pytest.raises(InputError, match="line 4 of"):
            read_rows(tmp_path)
    for other in (b"", b"\n", b"\xff\xfe\x00" * 99, whole[:20]):
        path.write_bytes(other)
        with pytest.raises(InputError, match="other columns"):
            read_rows(tmp_path)


def test_every_iteration_of_every_run_must_be_there(tmp_path: Path) -> None:
    def check(rows: list[Row], iteration: int) -> None:
        log = CsvLog(tmp_path)
        log.write(rows)
        log.close()
        check_complete(tmp_path, ["seed-0", "seed-7"], iteration)

    rows = [row(i, seed) for i in (1, 2, 3) for seed in (0, 7)]
    for upto in (0, 1, 2, 3):
        check(rows, upto)
    for wrong, lack in (
        (rows[:-1], "no iteration 3 of seed-7"),
        (rows[:2] + rows[3:], "no iteration 2 of seed-0"),
        (rows[::-1], "no iteration 1 of seed-0"),
        ([*rows, row(3, 8)], "other runs"),
        ([], "no iteration 1 of seed-0"),
    ):
        with pytest.raises(InputError, match=lack):
            check(wrong, 3)
