from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.log import LOGGERS, METRICS, CsvLog, Row, RunLoggers, check_complete, read_rows


def row(iteration: int, seed: int = 0, **changes: object) -> Row:
    seconds = {"rollout_seconds": 0.1 * iteration, "update_seconds": 1 / 3}
    return Row(iteration=iteration, seed=seed, reward=0.1 * iteration, value_loss=0.5, **seconds, **changes)  # type: ignore[arg-type]


@given(st.lists(st.sets(st.sampled_from(["solved", "snd", "audit", "kl"]))))
def test_columns_are_those_that_any_row_has(measured: list[set[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = CsvLog(Path(folder))
        rows = [row(place + 1, arm="knn:2", **dict.fromkeys(names, 1 / 3)) for place, names in enumerate(measured)]
        for each in rows:
            log.write([each])
        log.close()
        assert read_rows(Path(folder)) == rows
        if rows:
            heads, names = (Path(folder) / METRICS).read_text().splitlines()[0].split(","), vars(rows[0])
            assert heads == [name for name in names if any(getattr(r, name) is not None for r in rows)]
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


SMALL = Settings(steps=4, environments=2, iterations=3, diversity_every=2)


def trained(folder: Path, kind: str) -> list[Row]:
    """Train two seeds in two parts, and return the rows of the second seed."""
    task = Task("navigation", 2, seeds=(0, 7), settings=SMALL)
    train(task.with_iterations(2), folder, loggers=[kind])
    train(task, folder, loggers=[kind], resume=True)
    return [row for row in read_rows(folder) if row.seed == 7]


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = trained(tmp_path, "tensorboard")
    events = EventAccumulator(str(tmp_path / "tensorboard" / "seed-7"))
    events.Reload()
    assert [e.step for e in events.Scalars("reward")] == [1, 2, 3]
    assert [e.value for e in events.Scalars("reward")] == pytest.approx([row.reward for row in rows], rel=1e-6)
    assert [e.step for e in events.Scalars("snd")] == [row.iteration for row in rows if row.snd is not None]


def test_a_logger_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("navigation", 2, settings=SMALL)
    closed: list[str] = []

    def broken(folder: Path, name: str, after: int) -> Any:
        def log(numbers: object, step: int) -> None:
            if step == 2:
                raise ConnectionResetError

        return log, lambda: closed.append(name)

    monkeypatch.setitem(LOGGERS, "wandb", broken)
    with pytest.raises(ConnectionResetError):
        train(task, tmp_path / "parts", loggers=["wandb"])
    assert [row.iteration for row in read_rows(tmp_path / "parts")] == [1, 2]
    assert train(task, tmp_path / "parts", resume=True).finished
    train(task, tmp_path / "whole")
    rewards = [[row.reward for row in read_rows(tmp_path / name)] for name in ("parts", "whole")]
    assert rewards[0] == rewards[1]
    assert closed == ["seed-0"]


def test_wandb_goes_on_with_the_run_of_each_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[dict[str, Any]] = []
    logged: dict[str, dict[int, float]] = {"seed-0": {}, "seed-7": {}}

    def init(**options: Any) -> SimpleNamespace:
        opened.append(options)
        rewards = logged[options["name"]]
        return SimpleNamespace(log=lambda row, step: rewards.update({step: row["reward"]}), finish=lambda: None)

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))  # type: ignore[arg-type]
    rows = trained(tmp_path, "wandb")
    assert logged["seed-7"] == {row.iteration: row.reward for row in rows}
    assert [each["id"] for each in opened[:2]] == [each["id"] for each in opened[2:]]
    assert {each["group"] for each in opened} == {tmp_path.name}


@pytest.mark.parametrize("kind", LOGGERS)
def test_a_missing_package_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(MissingExtraError, match=f"pip install {kind}"), ExitStack() as stack:
        RunLoggers([kind], tmp_path, ["seed-0"], stack, after=0)


def test_an_unknown_one_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean wandb"):
        train(Task("navigation", 2, settings=SMALL), tmp_path / "new", loggers=["wandbb"])
    assert not (tmp_path / "new").exists()
