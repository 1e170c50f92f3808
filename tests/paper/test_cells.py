from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphsnd.errors import InputError
from paper.cells import Cells
from paper.experiment import Number


def test_a_cell_is_made_once_and_again_with_other_settings(tmp_path: Path) -> None:
    begun: list[str] = []
    cells = Cells(tmp_path / "new", step=begun.append)
    for settings, value in (({"n": (4,)}, 1), ({"n": [4]}, 2), ({"n": [5]}, 3), ({"n": [4]}, 4)):
        found = cells.get("n=4,p=0.1", settings, lambda value=value: {"value": value}, dict)
        assert found["value"] == {1: 1, 2: 1, 3: 3, 4: 4}[value]
    assert begun == ["n=4,p=0.1"] * 3


def test_new_and_stored_values_are_alike(tmp_path: Path) -> None:
    make = lambda: {1: (0.1, None)}  # noqa: E731
    first, second = (Cells(tmp_path).get("a", {}, make, dict) for _ in range(2))
    assert first == second == {"1": [0.1, None]}


def test_a_cell_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        Cells(tmp_path).get("a", {}, lambda: 1 / 0, int)
    with pytest.raises(TypeError):
        Cells(tmp_path).get("b", {}, lambda: object(), int)
    assert list(tmp_path.iterdir()) == []


def test_folders_and_names(tmp_path: Path) -> None:
    cells = Cells(tmp_path, results=tmp_path / "results")
    assert cells.folder("seed-0").is_dir()
    assert cells.results == tmp_path / "results"
    for name in ("../up", "a b", "", "a/b"):
        with pytest.raises(InputError, match="`name`"):
            cells.get(name, {}, lambda: 1, int)
    cells.get("x", {"a": 1}, lambda: 2, int)
    found = json.loads((tmp_path / "x.json").read_text())
    assert (found["settings"], found["value"]) == ({"a": 1}, 2)


def test_cells_say_which_code_made_them(tmp_path: Path) -> None:
    first = Cells(tmp_path)
    first.get("a", {}, lambda: 1, int)
    assert [cell.commit for cell in first.made] == ["0" * 40]
    (tmp_path / "b.json").write_text('{"settings": {}, "value": 2}')  # from before cells said so
    again = Cells(tmp_path)
    assert (again.get("a", {}, lambda: 3, int), again.get("b", {}, lambda: 4, int)) == (1, 2)
    assert [cell.commit for cell in again.made] == ["0" * 40, "unknown"]
    assert again.made[0] == replace(first.made[0], seconds=again.made[0].seconds)
    clean = Cells(tmp_path, clean=True)
    assert (clean.get("a", {}, lambda: 3, int), clean.get("b", {}, lambda: 4, int)) == (1, 4)


def test_folders_say_which_code_worked_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Cells(tmp_path)
    cells.folder("training")
    cells.sign("training")
    monkeypatch.setattr("paper.cells._describe_commit", lambda: "1" * 40 + ", changed")
    cells.sign("training")
    cells.count("training")
    assert [cell.commit[:1] for cell in cells.made] == ["0", "1"]
    (cells.folder("training") / "checkpoint").write_text("")
    assert [path.name for path in Cells(tmp_path, clean=True).folder("training").iterdir()] == []


def test_shared_work_of_another_commit_is_repeated_when_measurements_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for again, kept in ((False, True), (True, True)):
        shared = Cells(tmp_path / "one", again=again).beside("teams")
        (shared.folder("n=4") / "checkpoint").write_text("")
        shared.sign("n=4")
        assert (tmp_path / "teams" / "n=4" / "checkpoint").is_file() == kept
    monkeypatch.setattr("paper.cells._describe_commit", lambda: "1" * 40)
    assert (Cells(tmp_path / "two").beside("teams").folder("n=4") / "checkpoint").is_file()
    assert not (Cells(tmp_path / "two", again=True).beside("teams").folder("n=4") / "checkpoint").exists()


def test_unsigned_work_counts_as_that_of_no_commit(tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "checkpoint").write_text("")
    assert (Cells(tmp_path).folder("training") / "checkpoint").is_file()
    assert not (Cells(tmp_path, clean=True).folder("training") / "checkpoint").exists()


def test_a_damaged_cell_is_made_again(tmp_path: Path) -> None:
    cells, path = Cells(tmp_path), tmp_path / "a.json"
    cells.get("a", {}, lambda: Number(1.0), Number)
    whole = path.read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    for content in (
        *damaged,
        b"\xff\x00",
        b"[]",
        b'{"settings": {}}',
        b'{"settings": {}, "value": {}, "seconds": "x"}',
    ):
        path.write_bytes(content)
        assert cells.get("a", {}, lambda: Number(2.0), Number).value == 2.0
        assert cells.get("a", {}, lambda: Number(3.0), Number).value == 2.0
