from __future__ import annotations

from pathlib import Path

from tests.campaign import faults
from tests.campaign._runs import TRAIN, differences


def test_after_a_fault_a_run_goes_on_to_the_same_bits() -> None:
    outcome = faults.run(0, 16)
    assert outcome.refused > 0
    assert not outcome.failures, outcome.examples


def test_a_difference_would_be_noticed(tmp_path: Path) -> None:
    """The comparison is worth something: other bits, rows and files are found."""
    for name in ("a", "b"):
        faults.train_here(tmp_path / name, TRAIN.with_iterations(1))
    assert differences(tmp_path / "a", tmp_path / "b") == []
    log = tmp_path / "b" / "metrics.csv"
    log.write_text(log.read_text().replace("1,7,", "1,7,1", 1))
    assert differences(tmp_path / "a", tmp_path / "b") == ["metrics.csv"]
    (tmp_path / "b" / "seed-0" / "team.json").write_text("{}")
    assert differences(tmp_path / "a", tmp_path / "b")[1:] == ["seed-0/team.json"]
    (tmp_path / "b" / "left.part").write_text("")
    assert differences(tmp_path / "a", tmp_path / "b") == ["files [PosixPath('left.part')]"]
    faults.train_here(tmp_path / "c", TRAIN.with_iterations(2))
    assert "state" in differences(tmp_path / "c", tmp_path / "a")
