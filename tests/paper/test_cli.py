from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError
from paper.experiment import Scale
from paper.judging.claims import Claim
from tests.paper.fakes import claim, squares


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two experiments of squares in place of the real ones, and three claims; what they compute."""
    found: list[int] = []
    claims = (claim(), claim("later", scales=(Scale.PAPER,)), claim("timed", {"at_most": 4}, experiment="timing"))
    _replace(monkeypatch, claims, lambda name: squares(name, made=found))
    return found


def _replace(monkeypatch: pytest.MonkeyPatch, claims: tuple[Claim, ...], find: Callable[[str], Any]) -> None:
    monkeypatch.setattr("paper.cli.NAMES", ("recovery", "timing"))
    monkeypatch.setattr("paper.cli.find", find)
    monkeypatch.setattr("paper.cli.load_claims", lambda: claims)


def options(folder: Path) -> tuple[Any, ...]:
    return ("--out", folder / "results", "--work", folder / "work")


def test_a_run_tells_judges_and_writes(run: Any, made: list[int], tmp_path: Path) -> None:
    result = run("run", "--scale", "laptop", *options(tmp_path))
    assert result.exit_code == 0, result.output
    assert made == [2, 3, 2, 3]
    assert "recovery: ran, " in result.stderr
    assert "Measurements of the paper, 2: 1 confirmed, 1 not confirmed" in result.stdout
    assert "1 claims can only be decided at another scale" in result.stdout
    for name in ("verdicts.html", "recovery/laptop.json", "timing/laptop.png"):
        assert (tmp_path / "results" / name).is_file()


def test_what_is_there_is_read_and_says_so(run: Any, made: list[int], tmp_path: Path) -> None:
    for _ in range(2):
        result = run("run", "recovery", "--scale", "smoke", *options(tmp_path))
    assert made == [2]
    assert f"recovery: nothing ran, read {tmp_path / 'results' / 'recovery' / 'smoke.json'}" in result.stderr


def test_verdicts_only(run: Any, made: list[int], tmp_path: Path) -> None:
    run("run", "recovery", "--scale", "smoke", *options(tmp_path))
    run("run", "recovery", "--scale", "laptop", *options(tmp_path))
    result = run("verdicts", *options(tmp_path)[:2])
    assert result.exit_code == 0, result.output
    assert "Measurements of the paper, 3: 1 confirmed, 2 not measured" in result.stdout
    small = run("verdicts", "recovery", "--scale", "smoke", *options(tmp_path)[:2])
    assert "Measurements of the paper, 2: 1 not confirmed, 1 not measured" in small.stdout


def test_one_that_cannot_run_does_not_stop_the_others(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(n: int) -> None:
        raise InputError("results", "with the logs of the GPU runs", "none")

    _replace(monkeypatch, (claim(),), lambda name: squares(name, before=fail if name == "recovery" else bool))
    result = run("run", "--scale", "smoke", *options(tmp_path))
    assert result.exit_code == 2
    assert "recovery: Expected `results` with the logs" in result.stderr
    assert (tmp_path / "results" / "timing" / "smoke.json").is_file()
    assert "not measured" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_says_how_to_go_on(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    _replace(
        monkeypatch,
        (claim(),),
        lambda name: squares(name, before=lambda n: os.kill(os.getpid(), number)),  # now
    )
    result = run("run", "--scale", "smoke", *options(tmp_path))
    assert result.exit_code > 128
    assert "stopped in recovery; the same command resumes" in result.stderr


def test_bad_input_ends_before_anything_runs(run: Any, made: list[int], tmp_path: Path) -> None:
    for words in (["run", "recover"], ["run", "--ray", "auto"]):
        with pytest.raises(InputError):
            run(*words, *options(tmp_path))
    assert run("run", "--scale", "huge", *options(tmp_path)).exit_code == 2
    assert made == []
