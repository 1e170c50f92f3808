"""What a shell shows: completion, every default, and errors in the words of the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from graphsnd.cli.app import app

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
PROTOCOL = {
    "bash": {"COMP_WORDS": "graphsnd {}", "COMP_CWORD": "{}"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "graphsnd {}"},
    "fish": {"_TYPER_COMPLETE_ARGS": "graphsnd {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", PROTOCOL)
@pytest.mark.parametrize(("typed", "offered"), [("mea", "measure"), ("train --iter", "--iterations")])
def test_completion_offers_commands_and_options(shell: str, typed: str, offered: str) -> None:
    words = [typed, str(len(typed.split()))]
    given = {name: text.format(words[name == "COMP_CWORD"]) for name, text in PROTOCOL[shell].items()}
    environment = os.environ | given | {"_GRAPHSND_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "graphsnd"], env=environment, capture_output=True, text=True, check=True
    )
    assert offered in done.stdout


@pytest.mark.parametrize("shell", PROTOCOL)
def test_the_script_of_each_shell_is_one_that_it_reads(shell: str, tmp_path: Path) -> None:
    environment = os.environ | {"_GRAPHSND_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "graphsnd"], env=environment, capture_output=True, text=True, check=True
    )
    assert f"complete_{shell}" in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    (tmp_path / "script").write_text(done.stdout)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_after_it_has_read_the_script(tmp_path: Path) -> None:
    (tmp_path / "graphsnd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphsnd "$@"\n')
    (tmp_path / "graphsnd").chmod(0o755)
    script = 'eval "$(_GRAPHSND_COMPLETE=source_bash graphsnd)"; COMP_WORDS=(graphsnd measure --des); COMP_CWORD=2\n'
    script += '_graphsnd_completion graphsnd; echo "${COMPREPLY[@]}"'
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--design"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_every_default(command: str, run: Any) -> None:
    options = [option for option in COMMANDS[command].params if option.param_type_name == "option"]
    takes = [option for option in options if not option.is_flag]
    assert all(option.show_default for option in takes), command
    assert run(command, "--help").stdout.count("[default: ") >= len(takes)  # older typers show those of arguments too


WRONG = [
    ("measure team.npz --tol 0", "Expected `--tol` to be a finite number above 0, got 0.0."),
    ("measure team.npz --rel-tol nan", "Expected `--rel-tol` to be a finite number above 0 and below 1, got nan."),
    ("measure team.npz --rel-tol 5", "Expected `--rel-tol` to be a finite number above 0 and below 1, got 5.0."),
    ("advise --agents 1 --observations 9", "Expected `--agents` "),
    ("advise --agents 9 --observations 9 --device tpu", "Expected `--device` to be one of cpu, cuda, got 'tpu'."),
    ("train navigation --set epochs=0", "Expected `--set epochs` "),
    ("train nosuch", "Expected `WORLD` to be one of navigation, "),
    (
        "train dispersion --target 0",
        "Expected `--target` to be numbers above 0, unconstrained or homogeneous",
    ),
    ("train dispersion --target 0.3 --design nosuch:1", "Expected `--design` to be one of complete, "),
    ("demo --agents 3", "Expected `--agents` to be at least 8, got 3."),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_errors_name_options(
    line: str, message: str, run: Any, save: Any, tensors: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(**tensors)
    monkeypatch.chdir(tmp_path)
    result = run(*line.split())
    assert result.exit_code == 2
    assert f"graphsnd: {message}" in result.stderr
    assert not [word for word in ("None", "()", "of type") if word in result.stderr]
