import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from graphsnd.cli.app import app


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    rng, folders = np.random.default_rng(0), [tmp_path / name for name in ("ippo", "dico")]
    for shift, folder in enumerate(folders):
        folder.mkdir()
        rows = [f"{at},{seed},{shift + rng.normal() / 9},{0.1 + shift}" for seed in range(6) for at in range(1, 11)]
        (folder / "metrics.csv").write_text("\n".join(["iteration,seed,reward,snd", *rows]) + "\n")
    return folders


def test_table_page_and_figure(run: Any, runs: list[Path], tmp_path: Path) -> None:
    found = run("compare", *runs, "--html", tmp_path / "c.html", "--png", tmp_path / "c.png")
    assert found.exit_code == 0, found.output
    assert "shown, p = 0.031" in " ".join(found.stdout.split())  # 2 / 2^6
    page = (tmp_path / "c.html").read_text()
    assert page.count("<img") == 4
    assert "http" not in page.replace("http://www.w3.org", "")
    assert str(tmp_path) not in page
    assert "graphsnd compare ippo dico --confidence 0.95 --last 0.1 --seed 0<" in page
    assert page.count("IQM: mean of the middle half") == 1
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_fits_into_eighty_columns(runs: list[Path]) -> None:
    found = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}).invoke(
        app, ["compare", f"a longer name={runs[0]}", str(runs[1])]
    )
    assert "a longer name" in found.stdout
    assert "\ufffd" not in found.stdout
    assert "dico: shown, p = 0.031" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_json_and_names(run: Any, runs: list[Path]) -> None:
    found = json.loads(run("compare", f"base={runs[0]}", f"new={runs[1]}", "--json", "--reward", "reward").stdout)
    assert list(found["reward"]["scores"]) == ["base", "new"]
    assert found["diversity"]["differences"]["new"]["value"] == pytest.approx(1.0)


def test_runs_that_stopped_early_are_named(run: Any, runs: list[Path], tmp_path: Path) -> None:
    assert "Stopped early" not in run("compare", *runs).stdout
    log = runs[1] / "metrics.csv"
    log.write_text("\n".join(log.read_text().splitlines()[:-6]) + "\n")  # the last run has 4 of 10 steps
    named = "Stopped early: [b] seed 5 ends at step 4 of 10"
    shown = run("compare", runs[0], f"[b]={runs[1]}", "--html", tmp_path / "c.html")
    assert shown.stdout.count(named) == 2  # reward and diversity
    assert (tmp_path / "c.html").read_text().count(named) == 2
    found = json.loads(run("compare", *runs, "--json").stdout)
    assert found["reward"]["stopped"] == ["dico seed 5 ends at step 4 of 10"]


@pytest.mark.parametrize(("pairs", "least"), [(5, 2 / 2**5), (6, 2 / 2**6)])
def test_pairs_and_what_they_can_show_are_said(run: Any, runs: list[Path], pairs: int, least: float) -> None:
    for folder in runs:
        lines = (folder / "metrics.csv").read_text().splitlines()
        (folder / "metrics.csv").write_text("\n".join(lines[: 1 + 10 * pairs]) + "\n")
    gap = json.loads(run("compare", *runs, "--json").stdout)["reward"]["differences"]["dico"]
    assert (gap["paired"], gap["pairs"], gap["resolution"]) == (True, pairs, least)
    text = " ".join(run("compare", *runs).stdout.split())
    assert f"same seed are compared with each other: {pairs} pairs, which give p = {least:.2g} at best." in text
    assert ("too few seeds" in text) == (least > 0.05)


def test_other_seeds_are_not_paired(run: Any, runs: list[Path]) -> None:
    (runs[1] / "metrics.csv").write_text((runs[1] / "metrics.csv").read_text().replace(",5,", ",9,"))
    gap = json.loads(run("compare", *runs, "--json").stdout)["reward"]["differences"]["dico"]
    assert (gap["paired"], gap["pairs"], gap["resolution"]) == (False, 0, 2 / 924)  # 12 over 6
    assert "same seed" not in " ".join(run("compare", *runs).stdout.split())


def test_equal_seeds_are_not_paired_on_request(run: Any, runs: list[Path], tmp_path: Path) -> None:
    found = json.loads(run("compare", *runs, "--no-pair", "--json").stdout)["reward"]
    ours, theirs = (found["scores"][name]["runs"][0] for name in ("dico", "ippo"))
    test = stats.permutation_test((ours, theirs), lambda a, b: np.mean(a) - np.mean(b), vectorized=False)
    gap = found["differences"]["dico"]
    assert (gap["paired"], gap["pairs"], gap["resolution"]) == (False, 0, 2 / 924)  # 12 over 6
    assert gap["p_value"] == pytest.approx(test.pvalue)
    assert gap["value"] == pytest.approx(stats.trim_mean(ours, 0.25) - stats.trim_mean(theirs, 0.25))
    shown = run("compare", *runs, "--no-pair", "--reward", "snd", "--html", tmp_path / "c.html")
    assert "same seed" not in " ".join(shown.stdout.split())
    command = "graphsnd compare ippo dico --confidence 0.95 --last 0.1 --no-pair --reward snd --seed 0<"
    assert command in (tmp_path / "c.html").read_text()


def test_page_and_figure_are_two_files(run: Any, runs: list[Path], tmp_path: Path) -> None:
    found = run("compare", *runs, "--html", tmp_path / "c", "--png", tmp_path / "c")
    assert "another file than --html" in found.stderr
    assert not (tmp_path / "c").exists()


def test_two_teams(run: Any, save: Any, tensors: dict) -> None:
    clusters = np.arange(40) // 4
    first = save("a.npz", loc=tensors["loc"], scale=tensors["scale"], clusters=clusters)
    second = save("b.npz", loc=tensors["loc"] * 1.1, scale=tensors["scale"])
    found = run("compare", second, first)
    assert found.exit_code == 0, found.output
    assert "10 clusters of 40 shared observations" in found.stdout
    assert json.loads(run("compare", second, first, "--json").stdout)["p_value"] < 0.01
    assert run("compare", first).exit_code == 2


@pytest.mark.parametrize(
    "options",
    [["--reward", "snd"], ["--diversity", "snd"], ["--last", "0.1"], ["--no-pair"], ["--html", "a"], ["--png", "a"]],
)
def test_options_of_runs_are_refused_for_teams(run: Any, save: Any, tensors: dict, options: list[str]) -> None:
    teams = [save(name, loc=tensors["loc"], scale=tensors["scale"]) for name in ("a.npz", "b.npz")]
    found = run("compare", *teams, *options)
    assert found.exit_code == 2
    assert f"`{options[0]}` for folders of runs, got two teams" in " ".join(found.stderr.split())


def test_what_is_not_there_is_refused(run: Any, runs: list[Path], tmp_path: Path) -> None:
    assert "a file or a folder" in run("compare", tmp_path / "none").stderr
    assert "to be different" in run("compare", runs[0], runs[0]).stderr
    assert "for two saved teams" in run("compare", *runs, "--observations", runs[0] / "metrics.csv").stderr
