from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

KEYS = {
    "value", "standard_error", "interval", "confidence", "agents", "observations", "pairs_total", "pairs_used",
    "distance", "design", "seconds",
}  # fmt: skip


def test_json_is_what_measure_returns(run: Any, save: Any, tensors: dict[str, torch.Tensor]) -> None:
    path = save(**tensors)
    result = run("measure", path, "--design", "uniform:30", "--seed", 4, "--confidence", 0.9, "--json")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert set(found) >= KEYS
    behavior = gs.Gaussian(tensors["loc"], tensors["scale"])
    expected = gs.measure(behavior, design="uniform:30", seed=4, confidence=0.9).to_dict()
    for key, value in expected.items():
        if key != "seconds":
            assert found[key] == (list(value) if isinstance(value, tuple) else value), key
    assert found["design"] == "uniform:30"
    assert found["value"] == gs.measure(behavior, design=gs.graphs.uniform(12, 30, seed=4)).value
    assert found["seed"] == 4
    assert found["seconds"] > 0


@pytest.mark.parametrize("graph", ["complete", "bernoulli:0.5", "uniform:20", "regular:4", "knn:3", "radius:2"])
def test_every_graph_in_a_table(graph: str, run: Any, save: Any, tensors: dict[str, torch.Tensor]) -> None:
    result = run("measure", save(**tensors), "--design", graph)
    assert result.exit_code == 0, result.output
    for word in ("SND", "agents", "observations", "pairs used", "distance", "seconds", graph):
        assert word in result.stdout
    local = graph.startswith(("knn", "radius"))
    assert ("not an estimate of SND" in " ".join(result.stdout.split())) == local


def test_distance_by_name(run: Any, save: Any) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(4), size=(20, 5))
    path = save(probs=probs)
    team = gs.Categorical(probs=torch.from_numpy(probs))
    plain = json.loads(run("measure", path, "--json").stdout)
    assert plain["distance"] == "total-variation"
    assert plain["value"] == pytest.approx(float(gs.snd(team)))
    other = json.loads(run("measure", path, "--distance", "jensen-shannon", "--json").stdout)
    assert other["value"] == pytest.approx(float(gs.snd(team, gs.JensenShannon())))


@pytest.mark.parametrize("graph", ["knn:3", "radius:0.2"])
def test_positions_at_each_observation(
    graph: str, run: Any, save: Any, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    tensors |= {"positions": torch.rand(40, 12, 2, generator=torch.Generator().manual_seed(1))}
    path, html = save(**tensors), tmp_path / "out.html"
    result = run("measure", path, "--design", graph, "--html", html, "--json")
    assert result.exit_code == 0, result.output
    behavior = gs.Gaussian(tensors["loc"], tensors["scale"])
    moving = gs.designs.parse(graph).draw(tensors["positions"].shape[-2], positions=tensors["positions"])
    found = json.loads(result.stdout)
    assert found["value"] == pytest.approx(float(gs.graph_snd(behavior, moving)), rel=1e-6)
    assert found["empty_share"] == float((moving.starts.diff() == 0).double().mean())
    table = run("measure", path, "--design", graph).stdout
    assert ("no neighbours" in table) == (found["empty_share"] > 0)


@pytest.mark.parametrize("graph", ["complete", "uniform:20", "knn:3"])
def test_pictures_and_page(graph: str, run: Any, save: Any, tensors: dict[str, torch.Tensor], tmp_path: Path) -> None:
    html, png = tmp_path / "out.html", tmp_path / "out.png"
    result = run("measure", save(**tensors), "--design", graph, "--html", html, "--png", png, "--json")
    assert result.exit_code == 0, result.output
    json.loads(result.stdout)
    assert png.read_bytes().startswith(b"\x89PNG")
    page = html.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert graph in page
    assert str(tmp_path) not in page


def _bad() -> dict[str, tuple[dict[str, Any], list[str], str]]:
    good = np.random.default_rng(0).normal(size=(20, 6, 2))
    nan = good.copy()
    nan[3, 2, 1] = np.nan
    return {
        "nan": ({"actions": nan}, [], "`actions` to be finite"),
        "negative scale": ({"loc": good, "scale": -np.ones(2)}, [], "`scale` to be non-negative"),
        "probabilities": ({"probs": np.full((20, 6, 4), 0.2)}, [], "`probs` to sum to 1"),
        "one agent": ({"actions": good[:, :1]}, [], "at least 2 agents"),
        "no observations": ({"actions": good[:0]}, [], "`actions` with shape"),
        "no keys": ({"x": good}, [], "`FILE` to hold"),
        "design": ({"actions": good}, ["--design", "star"], "`--design` to be one of complete"),
        "p": ({"actions": good}, ["--design", "bernoulli:1.5"], "`--design` as in bernoulli:0.1"),
        "m": ({"actions": good}, ["--design", "uniform:16"], "`--design` to be an integer in 1 .. n(n-1)/2 = 15"),
        "degree": ({"actions": good}, ["--design", "regular:6"], "`--design` to be an integer in 1 .. n-1 = 5"),
        "odd degree": ({"actions": good[:, :5]}, ["--design", "regular:3"], "`--design` such that n * degree is even"),
        "k": ({"actions": good, "positions": good[0]}, ["--design", "knn:6"], "`--design` to be an integer in 1 .."),
        "number": ({"actions": good}, ["--design", "regular:3:x"], "`--design` to be regular with an integer after"),
        "no partner": ({"actions": good}, ["--design", "agents:1"], "`--design`"),
        "no positions": ({"actions": good}, ["--design", "knn:2"], "`positions`"),
        "positions shape": ({"actions": good, "positions": good[0, :3]}, ["--design", "knn:2"], "`positions`"),
        "distance": ({"actions": good}, ["--distance", "euclid"], "`--distance` to be one of wasserstein"),
        "distance family": ({"actions": good}, ["--distance", "hellinger"], "`--distance` to fit"),
        "confidence": ({"actions": good}, ["--confidence", "95"], "`--confidence` to be a finite number above 0 and"),
        "tolerance": ({"actions": good}, ["--rel-tol", "nan"], "`--rel-tol`"),
        "seed": ({"actions": good}, ["--seed", "9" * 20], "`--seed`"),
        "observations": ({"actions": good}, ["--observations", "x.npz"], "`--observations` with the folder"),
        "empty draw": ({"actions": good}, ["--design", "bernoulli:1e-9"], "`--design` to have at least one edge"),
        "folder": ({"actions": good}, ["--html", "no/such/folder/a.html"], "`--html` in a folder"),
        "kind of page": ({"actions": good}, ["--html", "team.npz"], "`--html` to end in .html"),
        "kind of figure": ({"actions": good}, ["--png", "page.html"], "`--png` to end in .png"),
        "table": ({"actions": good}, ["--csv", "team.csv"], "`--csv` with several saved teams"),
    }


@pytest.mark.parametrize("case", _bad())
def test_bad_input_is_one_line_and_exit_code_2(case: str, run: Any, save: Any) -> None:
    arrays, options, message = _bad()[case]
    result = run("measure", save(**arrays), *options, "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("graphsnd: ")
    assert result.stderr.count("\n") == 1


def test_a_real_process_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "team.pt"
    path.write_bytes(b"not a checkpoint")
    command = [sys.executable, "-m", "graphsnd", "measure", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("graphsnd: Expected `FILE`")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def policies(tmp_path: Path) -> tuple[Path, Path]:
    """A saved team, and observations for it."""
    generator = torch.Generator().manual_seed(0)
    network = StackedMLP.create((12,), (3, 8, 4), init="linear", generator=generator)
    StackedTeam(network, GaussianHead(2, mean="tanh", scale="network")).save(tmp_path / "team")
    np.savez(tmp_path / "seen.npz", observations=np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32))
    return tmp_path / "team", tmp_path / "seen.npz"


@pytest.mark.parametrize(
    "options",
    [
        ["--rel-tol", "0.2", "--design", "agents:4"],
        ["--tol", "0.5", "--design", "matching"],
        ["--design", "ring:2"],
    ],
    ids=" ".join,
)
def test_designs_and_tolerances(
    options: list[str], run: Any, save: Any, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    path, html = save(**tensors), tmp_path / "out.html"
    result = run("measure", path, *options, "--json", "--html", html)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    truth = float(gs.snd(gs.Gaussian(tensors["loc"], tensors["scale"])))
    assert found["interval"][0] - 1e-6 <= truth <= found["interval"][1] + 1e-6
    page = html.read_text(encoding="utf-8")
    assert found["text"].split()[1] in page
    table = run("measure", path, *options).stdout
    assert ("tolerance" in table) == any("tol" in word for word in options)
    assert "cost" in table


def test_a_saved_team_with_observations(run: Any, policies: tuple[Path, Path]) -> None:
    team, seen = policies
    exact = json.loads(run("measure", team, "--observations", seen, "--json").stdout)
    assert exact["exact"]
    found = json.loads(
        run("measure", team, "--observations", seen, "--rel-tol", 0.3, "--design", "agents:4", "--json").stdout
    )
    assert found["met"]
    assert found["policy_evaluations"] < exact["policy_evaluations"]
    assert found["interval"][0] <= exact["value"] <= found["interval"][1]


def test_a_saved_team_needs_observations(run: Any, policies: tuple[Path, Path], save: Any, tmp_path: Path) -> None:
    team, seen = policies
    assert "`--observations`" in run("measure", team).stderr
    assert "`--observations`" in run("measure", team, "--observations", save(x=np.zeros(3))).stderr
    assert "`--observations` to end in" in run("measure", team, "--observations", "obs.csv").stderr
    assert "`positions`" in run("measure", team, "--observations", seen, "--design", "knn:3").stderr
    (tmp_path / "empty").mkdir()
    assert "team.json" in run("measure", tmp_path / "empty", "--observations", seen).stderr


def test_no_page_promises_what_is_not_guaranteed(run: Any, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    network = StackedMLP.create((12,), (3, 8, 4), init="linear", activation="relu", generator=generator)
    StackedTeam(network, GaussianHead(2, mean="identity", scale="network")).save(tmp_path / "team")
    np.savez(tmp_path / "seen.npz", observations=np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32))
    pages = {}
    for name, design in {"drawn": ("agents:4",), "whole": ("complete",)}.items():
        html = tmp_path / f"{name}.html"
        options = ("--observations", tmp_path / "seen.npz", "--html", html, "--design", *design)
        assert run("measure", tmp_path / "team", *options).exit_code == 0
        pages[name] = html.read_text(encoding="utf-8")
    assert "on these observations, for large samples" in pages["drawn"]
    assert "guaranteed" not in pages["drawn"]
    assert "on other observations like these, for large samples" in pages["whole"]


def read_without_plotly(html: Path) -> str:
    """Return a page without the script of the charts, which has control characters of its own."""
    page = html.read_bytes().decode("utf-8")
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        return page
    script = get_plotlyjs()
    assert script in page
    return page.replace(script, "")


@pytest.mark.parametrize("name", ["a\x1b[31mb.npz", "\udcff.npz", "a\nb.npz", "[bold]a.npz"])
def test_names_of_files_reach_neither_terminal_nor_page_raw(
    name: str, run: Any, save: Any, tensors: Any, tmp_path: Path
) -> None:
    path = save(name, **tensors)
    html = tmp_path / f"{path.stem}.html"
    result = run("measure", path, "--html", html)
    assert result.exit_code == 0, result.output
    for text in (result.stdout, read_without_plotly(html)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
        assert "b.npz" in text or "\ufffd.npz" in text or "a.npz" in text


def test_names_of_agents_reach_neither_terminal_nor_figures_raw(run: Any, save: Any, tmp_path: Path) -> None:
    names, html = ["a\x1b[31mb", "$\\nothing$", "[bold]c", "\u202ed"], tmp_path / "page.html"
    path = save(actions=np.random.default_rng(0).normal(size=(5, 4, 2)), names=np.array(names))
    result = run("measure", path, "--html", html)
    assert result.exit_code == 0, result.output
    for text in (result.stdout, read_without_plotly(html)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[bold]c" in result.stdout


def test_a_full_disk_is_one_line_and_leaves_no_half_page(
    run: Any, save: Any, tensors: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    html, path = tmp_path / "page.html", save(**tensors)
    html.write_text("<!doctype html>of before")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.write", full)
    result = run("measure", path, "--html", html)
    monkeypatch.undo()
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in result.stderr
    assert html.read_text() == "<!doctype html>of before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.html", "team.npz"]


def test_samples(run: Any, save: Any) -> None:
    samples = torch.randn(20, 4, 16, 2, generator=torch.Generator().manual_seed(0))
    path = save(samples=samples)
    for distance in (None, "sliced-debiased"):
        option = [] if distance is None else ["--distance", distance]
        measured = json.loads(run("measure", path, "--json", *option).stdout)
        expected = gs.measure(gs.Samples(samples), distance=distance and gs.behavior.distances.DISTANCES[distance])
        assert measured["value"] == pytest.approx(expected.value, rel=1e-6)
