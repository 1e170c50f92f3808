from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import graphsnd as gs
from graphsnd.cli.measure import DESIGNS
from graphsnd.designs import FORMS
from graphsnd.errors import MissingExtraError

COMMANDS = ("measure", "advise", "train", "control", "demo", "bench", "doctor")


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
    for word in (*DESIGNS, *gs.behavior.DISTANCES):
        assert word in text


def test_unknown_options_exit_with_2(run: Any) -> None:
    assert run("measure", "team.npz", "--nonsense").exit_code == 2


def test_errors_that_are_bugs_are_not_hidden(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", broken)
    assert isinstance(run("doctor").exception, ZeroDivisionError)


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
