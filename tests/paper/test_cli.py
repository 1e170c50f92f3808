from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.files import hold_lock
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
    monkeypatch.setattr("paper.registry.NAMES", ("recovery", "timing"))
    monkeypatch.setattr("paper.cli.find", find)
    monkeypatch.setattr("paper.cli.load_claims", lambda: claims)


def options(folder: Path) -> tuple[Any, ...]:
    return ("--out", folder / "results", "--work", folder / "work")


def test_a_run_tells_judges_and_writes(run: Any, made: list[int], tmp_path: Path) -> None:
    result = run("run", "--scale", "laptop", *options(tmp_path))
    assert result.exit_code == 0, result.output
    assert made == [2, 3, 2, 3]
    assert "recovery: took" in result.stderr
    assert "Measurements of the paper, 2: 1 confirmed, 1 not confirmed" in result.stdout
    assert "1 more can only be decided at another scale" in result.stdout
    for name in ("laptop.html", "verdicts.html", "rules.md", "recovery/laptop.json", "timing/laptop.png"):
        assert (tmp_path / "results" / name).is_file()
    assert "laptop.html" in result.stdout


def test_at_paper_scale_one_page_is_enough(run: Any, made: list[int], tmp_path: Path) -> None:
    assert run("run", "--scale", "paper", *options(tmp_path)).exit_code == 0
    assert [path.name for path in (tmp_path / "results").glob("*.html")] == ["verdicts.html"]


def test_finished_ones_are_left_and_again_repeats(run: Any, made: list[int], tmp_path: Path) -> None:
    for extra, expected, there in (((), [2], False), ((), [2], True), (("--again",), [2, 2], False)):
        result = run("run", "recovery", "--scale", "smoke", *options(tmp_path), *extra)
        assert result.exit_code == 0, result.output
        assert made == expected
        assert ("already there" in result.stderr) == there


def test_verdicts_only(run: Any, made: list[int], tmp_path: Path) -> None:
    run("run", "recovery", "--scale", "smoke", *options(tmp_path))
    run("run", "recovery", "--scale", "laptop", *options(tmp_path))
    pages = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").glob("*.html")}
    result = run("verdicts", *options(tmp_path)[:2])
    assert result.exit_code == 0, result.output
    assert "Measurements of the paper, 3: 1 confirmed, 2 not measured" in result.stdout
    assert "✓ confirmed" in result.stdout
    small = run("verdicts", "recovery", "--scale", "smoke", *options(tmp_path)[:2])
    assert "Measurements of the paper, 2: 1 not confirmed, 1 not measured" in small.stdout
    assert pages == {path: path.stat().st_mtime_ns for path in (tmp_path / "results").glob("*.html")}


def test_verdicts_without_results_say_where_to_look(run: Any, made: list[int], tmp_path: Path) -> None:
    result = run("verdicts", *options(tmp_path)[:2])
    assert result.exit_code == 2
    assert "`--out`" in result.stderr


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
    def stop(n: int) -> None:
        os.kill(os.getpid(), number)

    _replace(monkeypatch, (claim(),), lambda name: squares(name, before=stop))
    result = run("run", "--scale", "smoke", *options(tmp_path))
    assert result.exit_code == 128 + number
    assert "stopped in recovery; the same command resumes" in result.stderr


def test_an_experiment_runs_once_at_a_time(run: Any, made: list[int], tmp_path: Path) -> None:
    lock = tmp_path / "work" / "smoke" / "recovery.lock"
    lock.parent.mkdir(parents=True)
    with hold_lock(lock):
        result = run("run", "recovery", "--scale", "smoke", *options(tmp_path))
        assert result.exit_code == 2
        assert "no other process writes to" in " ".join(result.stderr.split())
        assert made == []
    assert run("run", "recovery", "--scale", "smoke", *options(tmp_path)).exit_code == 0
    assert made


def test_without_pyyaml_it_runs_and_does_not_judge(
    run: Any, made: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing() -> None:
        raise MissingExtraError("yaml", "pyyaml")

    monkeypatch.setattr("paper.cli.load_claims", missing)
    result = run("run", "timing", "--scale", "smoke", *options(tmp_path))
    assert (result.exit_code, made) == (0, [2])
    assert "no verdicts" in result.stderr
    assert "pyyaml" in result.stderr
    assert run("verdicts", *options(tmp_path)[:2]).exit_code == 2


def test_bad_input_ends_before_anything_runs(run: Any, made: list[int], tmp_path: Path) -> None:
    result = run("run", "recover", *options(tmp_path))
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "`name`" in result.stderr
    result = run("run", "--scale", "huge", *options(tmp_path))
    assert result.exit_code == 2
    assert "--scale" in result.stderr
    assert made == []


def test_json_is_complete(run: Any, made: list[int], tmp_path: Path) -> None:
    run("run", "recovery", "--scale", "smoke", *options(tmp_path))
    found = json.loads((tmp_path / "results" / "recovery" / "smoke.json").read_text())
    assert {"experiment", "title", "scale", "provenance", "sources", "numbers", "data"} <= found.keys()
