from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import graphsnd as gs
from graphsnd.cli.app import app
from graphsnd.designs.design import FORMS
from graphsnd.errors import MissingExtraError

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def test_version(run: Any) -> None:
    assert run("--version").stdout == f"graphsnd {gs.__version__}\n"


def test_no_arguments_show_the_help(run: Any) -> None:
    assert list(COMMANDS) == ["measure", "advise", "train", "demo", "doctor"]
    result = run()
    assert (result.exit_code, run("--help").stdout) == (0, result.stdout)
    assert all(f"\n  {command} " in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(command: str) -> None:
    result = _start(*filter(None, [command]), "--help", env=os.environ | {"COLUMNS": "80"}, text=True)
    assert (result.returncode, result.stdout.startswith("Usage: ")) == (0, True)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert not re.search(r"<\w+", result.stdout)  # a type of Python
    options = [one.opts[0] for one in COMMANDS[command].params if one.opts[0].startswith("-")] if command else []
    assert all(option in result.stdout for option in options)
    assert len(options) <= 15


def test_help_shows_every_design_and_distance(run: Any) -> None:
    text = " ".join(run("measure", "--help").stdout.split()).replace("- ", "-")
    for word in (*(form.example for form in FORMS.values()), *gs.behavior.distances.DISTANCES):
        assert word in text


WRONG = {
    "--nonsense": "No such option: --nonsense",
    "trian": "No such command 'trian'.",
    "measure": "Missing argument 'FILE",
    "measure team.npz --tol x": "Invalid value for '--tol'",
    "measure team.npz --tol 0": "Expected `--tol` to be a finite number above 0, got 0.0.",
    "measure team.npz --rel-tol 5": "Expected `--rel-tol` to be a finite number above 0 and below 1, got 5.0.",
    "measure team.npz --distance hellnger": "Did you mean hellinger?",
    "measure team.npz --design uniform:99": "Expected `--design` to be an integer in 1 .. n(n-1)/2 = 66, got 99.",
    "measure nosuch.npz": "Expected `FILE` to exist, got no file 'nosuch.npz'.",
    "advise --agents 1 --observations 9": "Expected `--agents` to be an integer, at least 2 agents",
    "advise --agents 9 --observations 9 --device tpu": "Expected `--device` to be one of cpu, cuda, got 'tpu'.",
    "advise --agents 9 --observations 9 --goal most": "Expected `--goal` to be",
    "demo --agents 3": "Expected `--agents` to be at least 8, got 3. Four roles need a few agents each.",
}


@pytest.mark.parametrize("line", WRONG)
def test_errors_are_one_line_and_name_options(
    line: str, run: Any, save: Any, tensors: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(**tensors)
    monkeypatch.chdir(tmp_path)
    result = run(*line.split())
    assert (result.exit_code, result.stderr.count("\n"), result.stdout) == (2, 1, "")
    assert result.stderr.startswith("graphsnd: ")
    assert WRONG[line] in result.stderr


@pytest.mark.parametrize("error", [MissingExtraError("triton", "triton"), OSError(28, "No space left on device")])
def test_a_machine_without_something_is_one_line(error: Exception, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise error

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", broken)
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (2, f"graphsnd: {error}\n")


def test_ctrl_c_is_no_error(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphsnd.cli.doctor.describe_machine", stop)
    assert run("doctor").exit_code == 130


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


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_after_it_has_read_the_script(tmp_path: Path) -> None:
    (tmp_path / "graphsnd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphsnd "$@"\n')
    (tmp_path / "graphsnd").chmod(0o755)
    script = 'eval "$(_GRAPHSND_COMPLETE=source_bash graphsnd)"; COMP_WORDS=(graphsnd measure --des); COMP_CWORD=2\n'
    script += '_graphsnd_completion graphsnd; echo "${COMPREPLY[@]}"'
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--design"


HEAVY = ("torch", "numpy", "numba", "matplotlib", "safetensors")


def _loaded(code: str, names: tuple[str, ...]) -> str:
    """Return which of the modules some code has loaded in a process of its own."""
    code = f"import sys\n{code}\nprint([name for name in {names} if name in sys.modules], file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.strip()


def test_importing_the_library_loads_no_figures_and_no_command_line() -> None:
    assert _loaded("import graphsnd", (*HEAVY, "typer")) == "[]"
    used = "import graphsnd; graphsnd.measure, graphsnd.control"
    assert _loaded(used, ("torch", "matplotlib", "typer", "rich", "graphsnd.cli", "graphsnd.plots")) == "['torch']"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_does_not_wait_for_torch(command: str) -> None:
    code = f"sys.argv = ['graphsnd', *{command.split()}, '--help']\ntry:\n    from graphsnd.cli import main; main()"
    assert _loaded(f"{code}\nexcept SystemExit as end:\n    assert not end.code", HEAVY) == "[]"
