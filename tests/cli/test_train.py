from __future__ import annotations

import json
import os
import pty
import select
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

import graphsnd as gs
from graphsnd.cli.train import _show_results, make_task
from graphsnd.plots.training_tables import training_curves
from graphsnd.rl import PRESETS
from graphsnd.rl.checkpoint import load_checkpoint, read_grid
from graphsnd.rl.log import read_rows, write_rows
from graphsnd.teams.team import Team

SMALL = ("--set", "steps=6", "--set", "hidden=[8]", "--set", "minibatch=16", "--set", "environments=3", "--agents", "3")


@pytest.fixture
def run(run: Callable[..., Any]) -> Callable[..., Any]:
    return partial(run, "train")


def test_a_small_training_tells_and_writes(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "nav"
    words = ("--iterations", 4, "--seeds", "0,3", "--set", "diversity_every=2", "--out", out, "--device", "cpu")
    result = run("navigation", *words, *SMALL)
    assert result.exit_code == 0, result.output
    assert all(word in result.stdout for word in ("Graph-SND", "wrote", "on cpu with 1 thread"))
    assert all(word in result.stderr for word in ("frames/s", "4/4"))
    rows = read_rows(out)
    assert [(row.iteration, row.seed) for row in rows] == [(i, s) for i in range(1, 5) for s in (0, 3)]
    assert [row.snd is not None for row in rows[::2]] == [True, True, False, True]
    assert Team.load(out / "seed-3").agents == 3
    saved = json.loads((out / "settings.json").read_text())
    assert (saved["options"]["shared_rew"], saved["settings"]["environments"]) == (False, 3)
    assert (out / "curves.png").stat().st_size > 10_000
    again = run(out / "settings.json", "--out", tmp_path / "again", "--device", "cpu")
    assert again.exit_code == 0, again.output
    assert [row.reward for row in read_rows(tmp_path / "again")] == [row.reward for row in rows]


def test_a_target_controls_and_resumes(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("dispersion", "--target", "0.3,unconstrained", "--design", "matching", "--iterations", 1)
    result = run(*words, *SMALL, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "matching" in result.stdout
    out = Path("runs/dispersion-0.3-unconstrained")
    assert [row.target for row in read_rows(out)] == [0.3, None]
    assert Team.load(out / "matching-target-0.3-seed-0").agents == 3
    refused = run("dispersion", "--target", "0.4", "--resume", "--out", out)
    assert (refused.exit_code, "without WORLD and --target" in refused.stderr) == (2, True)
    assert run("dispersion", "--target", "0.3,unconstrained", "--resume", "--iterations", 2).exit_code == 0
    assert load_checkpoint(out).iteration == 2


@pytest.mark.parametrize("stacked", [(), ("--stack", "2")])
def test_several_levels_end_with_a_verdict_and_a_page(run: Any, tmp_path: Path, stacked: tuple[str, ...]) -> None:
    words = ("--target", "0,0.2,0.4,none,seek:0.1:0.5", "--design", "complete,matching", "--seeds", "0,1,2")
    result = run("dispersion", *words, *stacked, "--iterations", 3, *SMALL, "--device", "cpu", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    curves = training_curves(read_rows(tmp_path))
    assert [*curves] == ["complete", "matching"]
    page = (tmp_path / "levels.html").read_text(encoding="utf-8")
    for design, curve in curves.items():
        assert curve.levels == (0.0, 0.2, 0.4, None)
        assert curve.seeds == (3, 3, 3, 3)
        assert f"{design}: {curve.verdict}" in result.stdout
        assert all(cell in page for row in curve.rows() for cell in row)
        rows = [row for row in read_rows(tmp_path) if (row.arm, row.target) == (design, 0.4)]
        assert curve.rewards[2] == pytest.approx(sum(row.reward for row in rows) / 9)
        assert curve.snd[2] == pytest.approx(sum(row.audit for row in rows if row.audit is not None) / 9)
    assert curves["complete"].rewards[0] == curves["matching"].rewards[0]
    assert "How much diversity does dispersion want?" in page
    assert "wrote" in result.stdout.split("may be the best level")[-1]


@pytest.mark.parametrize(("target", "seeds"), [("0,0.2,none", "0"), ("0.2,0.4", "0,1")])
def test_levels_without_a_verdict_say_so_before_they_train(target: str, seeds: str, run: Any, tmp_path: Path) -> None:
    words = ("--target", target, "--seeds", seeds, "--iterations", 1, "--device", "cpu", "--out", tmp_path)
    result = run("dispersion", *words, *SMALL)
    assert result.exit_code == 0, result.output
    assert "it takes 0 or none among them, and several --seeds" in result.stderr.splitlines()[0]
    assert not (tmp_path / "levels.html").exists()


def test_levels_have_no_verdict_before_all_of_them_are_trained(run: Any, tmp_path: Path) -> None:
    words = ("--target", "0,none", "--seeds", "0,1", "--stack", 2, "--iterations", 2, "--device", "cpu")
    assert run("dispersion", *words, *SMALL, "--out", tmp_path).exit_code == 0
    rows, task = read_rows(tmp_path), read_grid(tmp_path)[0]
    (tmp_path / "levels.html").unlink()
    write_rows(tmp_path, [row for row in rows if row.arm == "homogeneous" or row.iteration == 1])  # Ctrl-C
    _show_results(task, tmp_path, [])
    assert not (tmp_path / "levels.html").exists()
    write_rows(tmp_path, rows)
    _show_results(task, tmp_path, [])
    assert (tmp_path / "levels.html").exists()


def test_resuming_keeps_the_settings_and_refuses_others(run: Any, tmp_path: Path) -> None:
    words = ("--iterations", 2, "--out", tmp_path, "--set", "threads=2", "--set", "critic=central", "--device", "cpu")
    assert run("simple_spread", *words, *SMALL).exit_code == 0
    for more, name in ((("--seeds", "1"), "--seeds"), (("--set", "steps=9"), "--set"), (("--agents", 4), "--agents")):
        refused = run("--resume", "--out", tmp_path, *more)
        assert (refused.exit_code, f"`{name}` without --resume" in refused.stderr) == (2, True)
    result = run("--resume", "--iterations", 4, "--out", tmp_path, "--device", "cpu")
    assert result.exit_code == 0, result.output
    found = load_checkpoint(tmp_path)
    assert (found.iteration, found.task.world, found.task.settings.threads) == (4, "simple_spread", 2)
    assert found.tensors["critic"].shape[:2] == found.tensors["critic_adam.0.mean"].shape[:2] == (1, 1)
    assert "with 2 threads" in result.stdout
    kept = {path: path.read_bytes() for path in (tmp_path / "seed-0").iterdir()}
    again = run("--resume", "--out", tmp_path)
    assert (again.exit_code, "already finished: 4 iterations" in again.stderr) == (0, True)
    assert {path: path.read_bytes() for path in (tmp_path / "seed-0").iterdir()} == kept
    fewer = run("--resume", "--out", tmp_path, "--iterations", 1)
    assert (fewer.exit_code, "at least 4" in fewer.stderr) == (2, True)
    taken = run("simple_spread", *words, *SMALL)
    assert (taken.exit_code, "Resume it (--resume)" in taken.stderr) == (2, True)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_its_task(preset: str) -> None:
    assert make_task(preset, None, None, None, None, None, []) == PRESETS[preset]


@pytest.mark.parametrize("world", ["navigation", "dispersion", "simple_spread"])
@pytest.mark.parametrize("target", [None, "0.3"])
def test_a_plain_command_is_small(world: str, target: str | None) -> None:
    task = make_task(world, target, None, None, None, None, [])
    learnt = (task.agents or 0) * task.settings.samples * task.settings.epochs * task.settings.iterations
    assert learnt * max(task.settings.hidden) ** 2 < 10**12  # minutes on a core


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "`WORLD`"),
    (("chess",), "`WORLD` to be one of navigation"),
    (("navigatoin",), "Did you mean navigation"),
    (("navigation", "--seeds", "0,x"), "`--seeds`"),
    (("navigation", "--seeds", "1,1"), "`--seeds`"),
    (("navigation", "--set", "steps"), "`--set` as KEY=VALUE"),
    (("navigation", "--set", "learning_rte=1"), "`--set` to be one of iterations, environments"),
    (("navigation", "--set", "learning_rte=1"), "Did you mean learning_rate"),
    (("navigation", "--set", "gamma=two"), "`--set gamma`"),
    (("navigation", "--set", "threads=-1"), "`--set threads`"),
    (("navigation", "--set", "critic=shared"), "`--set critic` to be one of"),
    (("navigation", "--agents", "99999999999999999999"), "`--agents`"),
    (("navigation", "--iterations", "0"), "`--iterations`"),
    (("navigation", "--stack", "0"), "'--stack'"),
    (("navigation", "--checkpoint-every", "0"), "`--checkpoint-every`"),
    (("navigation", "--set", "tau=0.1"), "`--set tau` with a target"),
    (("navigation", "--target", "0.3", "--set", "critic=central"), "`--set critic` without a target"),
    (("navigation", "--set", "world.colour=red"), "`option of navigation`"),
    (("navigation", "--set", "world.horizon=" + "9" * 20), "`--set world.horizon`"),
    (("navigation", "--device", "abacus"), "`--device` to be one of auto, cpu, cuda"),
    (("navigation", "--target", "-1"), "`--target` to be numbers, at least 0, unconstrained"),
    (("navigation", "--target", "0.3,much"), "`--target` to be numbers, at least 0, unconstrained"),
    (("navigation", "--target", "seek:0.3"), "or seek:LOW:HIGH"),
    (("navigation", "--target", "0.3", "--design", "bernouli:0.1"), "Did you mean bernoulli"),
    (("navigation", "--design", "matching"), "`--design` with --target"),
    (("navigation", "--logger", "weights"), "`--logger` to be one of tensorboard"),
    (("--resume",), "`--out` to hold checkpoint.safetensors"),
])  # fmt: skip
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str, assert_one_line: Any) -> None:
    assert_one_line(words, *arguments)


LONG = ("--iterations", "100000", "--device", "cpu", *SMALL)


@pytest.mark.parametrize(("words", "number", "code"), [
    (("navigation",), signal.SIGTERM, 143),
    (("dispersion", "--target", "0.1"), signal.SIGINT, 130),
])  # fmt: skip
def test_a_signal_saves_and_says_how_to_go_on(
    tmp_path: Path, words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    out = tmp_path / "a run"
    with subprocess.Popen(
        [sys.executable, "-m", "graphsnd", "train", *words, "--out", str(out), *LONG], stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as child:  # fmt: skip
        give_up = time.monotonic() + 60
        while not _begun(out) and time.monotonic() < give_up:
            time.sleep(0.05)
        child.send_signal(number)
        assert child.stderr is not None
        said = child.stderr.read()
    assert child.returncode == code, said
    assert f"graphsnd train --resume --out '{out}'" in said
    assert load_checkpoint(out).iteration >= 1


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


def test_a_trained_team_is_measured_on_what_it_saw(run: Any, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from graphsnd.cli.app import app

    assert run("navigation", "--iterations", 1, "--out", tmp_path, *SMALL, "--device", "cpu").exit_code == 0
    team = tmp_path / "seed-0"
    beside = CliRunner().invoke(app, ["measure", str(team), "--json"])
    held = load_file(team / "observations.safetensors")
    known = gs.measure(gs.Team.load(team), held["observations"], clusters=held["clusters"])
    assert json.loads(beside.stdout)["population_interval"] == list(known.population_interval)
