from __future__ import annotations

import csv
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from safetensors.torch import save as serialise
from typer.testing import CliRunner

import graphsnd as gs
from graphsnd.rl.checkpoint import load_checkpoint
from graphsnd.teams.team import Team

SMALL = ("--set", "steps=6", "--set", "hidden=[8]", "--set", "minibatch=16", "--envs", "3")


@pytest.fixture
def run(run: Callable[..., Any]) -> Callable[..., Any]:
    return partial(run, "train")


def test_a_small_training_tells_and_writes(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "nav"
    result = run(
        "navigation", "--agents", 4, "--iterations", 4, "--seeds", "0,3", "--diversity-every", 2, "--out", out,
        *SMALL, "--device", "cpu",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Graph-SND" in result.stdout
    assert "frames/s" in result.stderr
    assert "4/4" in result.stderr
    with (out / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["iteration"], row["seed"]) for row in rows] == [(str(i), s) for i in range(1, 5) for s in "03"]
    assert [bool(row["snd"]) for row in rows[::2]] == [True, True, False, True]
    assert Team.load(out / "seed-3").agents == 4
    settings = json.loads((out / "settings.json").read_text())
    assert settings["options"]["agent_radius"] == 0.03
    assert (settings["settings"]["hidden"], settings["settings"]["environments"]) == ([8], 3)
    assert (out / "curves.png").stat().st_size > 10_000


def test_resume_goes_on_and_keeps_the_settings(run: Any, tmp_path: Path) -> None:
    fresh = ("--agents", 3, "--iterations", 2, "--out", tmp_path, "--threads", 2, *SMALL, "--device", "cpu")
    first = run("simple_spread", *fresh)
    assert first.exit_code == 0, first.output
    assert "on cpu with 2 threads" in first.stdout
    assert json.loads((tmp_path / "about.json").read_text())["threads"] == 2
    refused = run("--resume", "--out", tmp_path, "--threads", 1)
    assert (refused.exit_code, "`--threads` without --resume" in refused.stderr) == (2, True)
    result = run("--resume", "--iterations", 4, "--out", tmp_path, "--device", "cpu")
    assert result.exit_code == 0, result.output
    found = load_checkpoint(tmp_path)
    assert (found.iteration, found.task.world, found.task.settings.hidden) == (4, "simple_spread", (8,))
    assert (found.task.settings.threads, "with 2 threads" in result.stdout) == (2, True)
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 5
    other = run("navigation", "--resume", "--out", tmp_path)
    assert (other.exit_code, "`WORLD`" in other.stderr) == (2, True)


def test_presets_by_either_name(run: Any, tmp_path: Path) -> None:
    named = ("--iterations", 1, *SMALL, "--device", "cpu")
    for name, arguments in (("a", ("navigation-small",)), ("b", ("--preset", "navigation-small"))):
        result = run(*arguments, "--out", tmp_path / name, *named, "--set", "world.horizon=9")
        assert result.exit_code == 0, result.output
    one, two = (load_checkpoint(tmp_path / name).task for name in "ab")
    assert one == two
    assert (one.agents, one.options["horizon"], one.options["shared_rew"]) == (4, 9, False)


def test_a_central_critic_is_chosen_saved_and_resumed(run: Any, tmp_path: Path) -> None:
    named = ("--out", tmp_path, "--device", "cpu")
    result = run("navigation-small", "--iterations", 1, *SMALL, "--set", "critic=central", *named)
    assert result.exit_code == 0, result.output
    assert run("--resume", "--iterations", 2, *named).exit_code == 0
    found = load_checkpoint(tmp_path)
    assert (found.iteration, found.task.settings.critic) == (2, "central")
    assert found.tensors["critic"].shape[:2] == found.tensors["critic_adam.0.mean"].shape[:2] == (1, 1)


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "`WORLD` or --preset"),
    (("chess",), "`WORLD` to be one of navigation"),
    (("--preset", "chess"), "`--preset` to be one of navigation"),
    (("navigation", "--seeds", "0,x"), "`--seeds`"),
    (("navigation", "--seeds", "1,1"), "`--seeds`"),
    (("navigation", "--set", "steps"), "`--set` as KEY=VALUE"),
    (("navigation", "--set", "lr=1"), "`settings` to be among"),
    (("navigation", "--set", "gamma=two"), "`--set gamma`"),
    (("navigation", "--threads", "-1"), "`--threads`"),
    (("navigation", "--set", "critic=shared"), "`--set critic` to be one of"),
    (("navigation", "--set", "world.colour=red"), "`option of navigation`"),
    (("navigation", "--device", "abacus"), "`--device` to be one of auto, cpu, cuda"),
    (("--resume",), "`folder` to hold checkpoint.safetensors"),
])  # fmt: skip
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str, assert_one_line: Any) -> None:
    assert_one_line(words, *arguments)


LONG = ("--agents", "3", "--iterations", "100000", "--device", "cpu", *SMALL)


@pytest.mark.parametrize(("words", "number", "code"), [
    (("train", "navigation"), signal.SIGINT, 130),
    (("train", "navigation"), signal.SIGTERM, 143),
    (("train", "navigation"), signal.SIGHUP, 129),
    (("control", "dispersion", "--set", "epochs=1"), signal.SIGINT, 130),
])  # fmt: skip
def test_a_signal_saves_and_says_how_to_go_on(
    tmp_path: Path, words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    out = tmp_path / "a run"
    with subprocess.Popen(
        [sys.executable, "-m", "graphsnd", *words, "--out", str(out), *LONG], stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as child:  # fmt: skip
        give_up = time.monotonic() + 60
        while not _begun(out) and time.monotonic() < give_up:
            time.sleep(0.05)
        child.send_signal(number)
        assert child.stderr is not None
        said = child.stderr.read()
    assert child.returncode == code, said
    assert f"graphsnd {words[0]} --resume --out '{out}'" in said
    assert load_checkpoint(out).iteration >= 1
    assert "took_s" not in json.loads((out / "about.json").read_text())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("more", [(), ("--stack", "1")])
def test_an_interrupted_training_has_said_what_it_is(
    more: tuple[str, ...], error: type[BaseException], run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise error

    words = ("--agents", 3, "--seeds", "0,1", "--iterations", 2, "--out", tmp_path, *SMALL, "--device", "cpu", *more)
    with monkeypatch.context() as patch:
        patch.setattr("graphsnd.rl.trainer.Trainer.step", interrupt)
        assert run("navigation", *words).exit_code != 0
    begun = json.loads((tmp_path / "about.json").read_text())
    assert run("--resume", "--out", tmp_path).exit_code == 0
    ended = json.loads((tmp_path / "about.json").read_text())
    assert ended.pop("took_s") > 0
    assert {name: begun[name] for name in ("command", "task", "seeds", "device", "threads", "versions")} == {
        name: ended[name] for name in ("command", "task", "seeds", "device", "threads", "versions")
    }
    assert begun.keys() == ended.keys()


def test_a_refused_training_leaves_what_the_folder_says(run: Any, tmp_path: Path) -> None:
    words = ("navigation", "--agents", 3, "--out", tmp_path, *SMALL, "--device", "cpu")
    assert run(*words, "--iterations", 1).exit_code == 0
    about = (tmp_path / "about.json").read_bytes()
    assert run(*words, "--iterations", 2).exit_code == 2
    assert (tmp_path / "about.json").read_bytes() == about


def test_a_training_whose_terminal_is_closed_saves(tmp_path: Path) -> None:
    """The whole way: a progress bar on a terminal that goes away, as a broken connection makes it."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["OMP_NUM_THREADS"] = "1"
        words = ("train", "navigation", "--out", str(tmp_path), *LONG)
        os.execv(sys.executable, [sys.executable, "-m", "graphsnd", *words])
    give_up = time.monotonic() + 60
    while not _begun(tmp_path) and time.monotonic() < give_up:
        select.select([terminal], [], [], 0.05)[0] and os.read(terminal, 65536)
    os.close(terminal)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 129
    assert load_checkpoint(tmp_path).iteration >= 1
    assert (tmp_path / "curves.png").exists()


def _begun(out: Path) -> bool:
    path = out / "metrics.csv"
    return path.exists() and len(path.read_text().splitlines()) > 1


def test_resuming_what_is_finished_changes_nothing_and_says_so(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "nav"
    assert run("navigation-small", "--iterations", 2, "--out", out, *SMALL).exit_code == 0
    kept = {path: path.read_bytes() for path in (out / "seed-0").iterdir()}
    assert (out / "seed-0" / "observations.safetensors") in kept
    again = run("--resume", "--out", out)
    assert again.exit_code == 0, again.output
    assert "already finished: 2 of 2 iterations" in again.stderr
    assert {path: path.read_bytes() for path in (out / "seed-0").iterdir()} == kept
    fewer = run("--resume", "--out", out, "--iterations", 1)
    assert fewer.exit_code == 2
    assert "at least 2" in fewer.stderr


@pytest.mark.parametrize("preset", ["navigation", "navigation-100", "navigation-small", "simple_spread"])
def test_the_command_in_about_repeats_a_preset(preset: str, run: Any, tmp_path: Path) -> None:
    sizes = ("--agents", 3, "--iterations", 1, *SMALL)
    assert run(preset, *sizes, "--out", tmp_path / "first").exit_code == 0
    words = shlex.split(json.loads((tmp_path / "first" / "about.json").read_text())["command"])
    assert words[:2] == ["graphsnd", "train"]
    again = run(*words[2:], "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    tasks = [load_checkpoint(tmp_path / name).task for name in ("first", "again")]
    assert tasks[0] == tasks[1]


def test_a_setting_is_said_once(run: Any, tmp_path: Path) -> None:
    twice = run("navigation-small", "--iterations", 5, "--set", "iterations=1", "--out", tmp_path)
    assert twice.exit_code == 2
    assert "without iterations" in twice.stderr


def test_a_trained_team_is_measured_on_what_it_saw(run: Any, tmp_path: Path) -> None:
    from graphsnd.cli.app import app

    assert run("navigation-small", "--iterations", 1, "--out", tmp_path, *SMALL).exit_code == 0
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    team = tmp_path / "seed-0"
    beside, said = (
        runner.invoke(app, ["measure", str(team), "--json", *more])
        for more in ([], ["--observations", str(team / "observations.safetensors")])
    )
    assert beside.exit_code == 0, beside.output
    assert json.loads(beside.stdout)["value"] == json.loads(said.stdout)["value"] > 0
    held = load_file(team / "observations.safetensors")
    known = gs.measure(gs.Team.load(team), held["observations"], clusters=held["clusters"])
    assert json.loads(beside.stdout)["population_interval"] == list(known.population_interval)
    (team / "observations.safetensors").write_bytes(serialise({"observations": held["observations"]}))  # as before
    assert runner.invoke(app, ["measure", str(team)]).exit_code == 0
    folder = runner.invoke(app, ["measure", str(tmp_path)])
    assert folder.exit_code == 0, folder.output  # over training, on the same observations
    assert "seed-0" in folder.stdout


@pytest.mark.parametrize("name", ["curves.png", "about.json"])
def test_files_of_another_kind_are_replaced_only_by_force(name: str, run: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    words = ("navigation", "--agents", 3, "--iterations", 1, "--out", tmp_path, *SMALL, "--device", "cpu")
    result = run(*words)
    assert (result.exit_code, (tmp_path / name).read_text()) == (2, "a,b\n1,2\n")
    assert "add --force" in result.stderr
    assert run(*words, "--force").exit_code == 0
    assert (tmp_path / name).read_bytes()[:4] != b"a,b\n"
