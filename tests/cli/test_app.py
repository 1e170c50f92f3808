from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphsnd as gs
from graphsnd.cli.measure import DESIGNS
from graphsnd.designs.design import FORMS
from graphsnd.errors import MissingExtraError

COMMANDS = ("measure", "advise", "train", "control", "demo", "doctor")


def test_version(run: Any) -> None:
    assert run("--version").stdout == f"graphsnd {gs.__version__}\n"


def test_no_arguments_show_the_help(run: Any) -> None:
    assert "Examples" in run().output
    assert run("--help").exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_listed(command: str, run: Any) -> None:
    assert command in run("--help").stdout
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage: " in result.stdout


def test_help_shows_every_graph_and_distance(run: Any) -> None:
    text = run("measure", "--help").stdout
    assert list(DESIGNS) == [form.example for form in FORMS.values()]
    for word in (*DESIGNS, *gs.behavior.distances.DISTANCES):
        assert word in text


def test_unknown_options_exit_with_2(run: Any) -> None:
    assert run("measure", "team.npz", "--nonsense").exit_code == 2


def _break(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", broken)


def test_a_bug_is_one_line_with_a_report_and_exit_code_70(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, ZeroDivisionError("a\x1b[2Jb"))
    result = run("doctor")
    assert result.exit_code == 70
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    found = re.search(r"Please report it with (\S+),", result.stderr)
    assert found is not None
    report = Path(found[1])
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text(encoding="utf-8")
    report.unlink()
    assert "Traceback (most recent call last)" in text
    assert "graphsnd ['doctor']" in text
    assert f"graphsnd {gs.__version__}" in text


@pytest.mark.parametrize("words", [("--debug", "doctor"), ("doctor", "--debug")])
def test_debug_shows_the_traceback(words: tuple[str, ...], run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, ZeroDivisionError())
    result = run(*words)
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert "graphsnd-" not in result.stderr


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")])
def test_too_little_memory_is_no_bug(error: Exception, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, error)
    result = run("doctor")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "Not enough memory" in result.stderr


def test_ctrl_c_is_no_bug(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", stop)
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (130, "graphsnd: stopped\n")


INTEGERS = [("measure", "team.npz", "--seed"), ("measure", "team.npz", "--max-observations"), ("demo", "--agents")]
INTEGERS += [("advise", "--observations", "9", "--agents"), ("train", "navigation", "--iterations")]
INTEGERS += [
    ("train", "navigation", "--seeds"),
    ("control", "dispersion", "--envs"),
    ("train", "navigation", "--threads"),
]


@pytest.mark.parametrize("words", INTEGERS, ids=" ".join)
@pytest.mark.parametrize("value", ["99999999999999999999", str(2**70), f"-{2**70}", "9" * 5000])
def test_long_integers_are_one_line(words: tuple[str, ...], value: str, run: Any) -> None:
    result = run(*words, value)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "team.npz", "--design", ""),
        ("measure", "team.npz", "--design= "),
        ("measure", "team.npz", "--html", ""),
        ("measure", ""),
        ("control", "dispersion", "--targets", ""),
        ("control", "dispersion", "--designs="),
        ("train", "navigation", "--out", ""),
    ],
    ids=" ".join,
)
def test_an_empty_word_is_not_the_default(words: tuple[str, ...], run: Any) -> None:
    result = run(*words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "not to be empty" in result.stderr


@pytest.mark.parametrize(
    "words", [("measure", "\x1b[2J.npz"), ("measure", "a.npz", "b\x1b[2J"), ("--x\x1b[2J",), ("\x1b[2J",)]
)
def test_control_characters_of_the_command_line_do_not_come_back(words: tuple[str, ...], run: Any) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert "[2J" in result.stderr
    assert "\x1b" not in result.output


def _start(*words: str, **options: Any) -> Any:
    return subprocess.run([sys.executable, "-m", "graphsnd", *words], capture_output=True, timeout=120, **options)


def test_an_output_that_takes_only_ascii() -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = _start("advise", "--agents", "50", "--observations", "100", env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m graphsnd advise --agents 50 --observations 100 | true"
    assert subprocess.run(command, shell=True, capture_output=True, timeout=120).stderr == b""


def test_a_missing_extra_is_one_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("triton", "triton")

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", missing)
    result = run("doctor")
    assert result.exit_code == 2
    assert "pip install triton" in result.stderr


HEAVY = ("torch", "numpy", "numba", "matplotlib", "safetensors")


def _loaded(code: str, names: tuple[str, ...]) -> str:
    """Return which of the modules some code has loaded in a process of its own."""
    code = f"import sys\n{code}\nprint([name for name in {names} if name in sys.modules], file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.strip()


def test_importing_the_library_loads_no_figures_and_no_command_line() -> None:
    assert _loaded("import graphsnd", (*HEAVY, "typer")) == "[]"
    used = "import graphsnd; graphsnd.measure, graphsnd.control"
    assert _loaded(used, ("torch", "matplotlib", "typer", "rich", "graphsnd.cli", "graphsnd.plots")) == "['torch']"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], *([command, "--help"] for command in COMMANDS)])
def test_help_does_not_wait_for_torch(arguments: list[str]) -> None:
    code = f"sys.argv = ['graphsnd', *{arguments}]\ntry:\n    from graphsnd.cli import main; main()"
    assert _loaded(f"{code}\nexcept SystemExit as end:\n    assert not end.code", HEAVY) == "[]"
