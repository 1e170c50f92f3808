from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from graphsnd import InputError
from graphsnd.rl.log import METRICS, CsvLog, Row, check_complete, read_rows, read_whole_rows


def row(iteration: int, seed: int = 0, **changes: object) -> Row:
    values = {field.name: 0.1 * iteration for field in dataclasses.fields(Row)}
    whole = {"iteration": iteration, "seed": seed, "episodes": 3, "snd_observations": None, "snd": None}
    return Row(**{**values, **whole, **changes})  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    log = CsvLog(tmp_path, Row)
    rows = [row(1), row(1, 7, snd=1 / 3, snd_observations=12), row(2)]
    log.write(rows[:2])
    log.write(rows[2:])
    log.close()
    assert read_rows(tmp_path, Row) == rows


def test_a_resumed_log_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    log = CsvLog(tmp_path, Row)
    log.write([row(i) for i in range(1, 6)])
    log.close()
    with (tmp_path / METRICS).open("a") as file:
        file.write("6,0,0.1")  # cut off in the middle of a line
    log = CsvLog(tmp_path, Row, after=3)
    log.write([row(4, 9)])
    log.close()
    assert [(r.iteration, r.seed) for r in read_rows(tmp_path, Row)] == [(1, 0), (2, 0), (3, 0), (4, 9)]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"metrics\.csv"):
        read_rows(tmp_path, Row)
    (tmp_path / METRICS).write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="version"):
        read_rows(tmp_path, Row)


def test_a_cut_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    log = CsvLog(tmp_path, Row)
    log.write([row(i) for i in range(1, 5)])
    log.close()
    path = tmp_path / METRICS
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:-cut])
        lines = whole[:-cut].count(b"\n")
        if lines == 0:
            break
        assert [r.iteration for r in read_rows(tmp_path, Row)] == list(range(1, lines))
    third = whole.index(b"\n3,") + 1
    for damage in (b"\x00\x00", b"\xff\xfe", b"three", b",,,", b'"'):
        path.write_bytes(whole[:third] + damage + whole[third + 2 :])
        with pytest.raises(InputError, match="line 4 of"):
            read_rows(tmp_path, Row)
        assert [r.iteration for r in read_whole_rows(tmp_path, Row)] == [1, 2]
    for other in (b"", b"\n", b"\xff\xfe\x00" * 99, whole[:20]):
        path.write_bytes(other)
        with pytest.raises(InputError, match="version"):
            read_rows(tmp_path, Row)


def test_every_iteration_of_every_run_must_be_there(tmp_path: Path) -> None:
    def check(rows: list[Row], iteration: int) -> None:
        log = CsvLog(tmp_path, Row)
        log.write(rows)
        log.close()
        check_complete(tmp_path, Row, ["seed-0", "seed-7"], iteration)

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
