"""The committed data give the committed numbers: what is computed from a run did not change since it was made."""

from __future__ import annotations

import importlib
import io
import json
import re
import subprocess
import tarfile
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.provenance import SOURCES, SUFFIXES, hash_sources
from paper import experiment
from paper.experiment import Scale, find
from paper.rows import decode
from paper.runner import RESULTS, read_results
from tests.paper.committed import assert_same_numbers

ROOT = RESULTS.parents[1]
# Experiments with a function from their data to their numbers alone.
NAMES = ("recovery", "unbiasedness", "concentration", "training", "timing", "construction", "mpe", "designs")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_numbers_of_committed_data(name: str, scale: Scale) -> None:
    committed = read_results(RESULTS, name)[scale]
    numbers = importlib.import_module(f"paper.{name}").summarise(decode(find(name).data, committed.data))
    assert_same_numbers(numbers, committed.numbers)


@pytest.mark.parametrize("name", experiment.NAMES)
def test_figures_of_committed_data(name: str) -> None:
    committed = read_results(RESULTS, name)[Scale.PAPER]
    drawn = find(name)
    drawn.figure(decode(drawn.data, committed.data)).canvas.draw()


def provenances() -> Iterator[tuple[str, dict[str, Any]]]:
    """What every committed result says about its making, by the name of its file."""
    for folder in ("paper/results", "benchmarks/results", "docs/runs"):
        for path in sorted((ROOT / folder).rglob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            about = content.get("provenance", content) if isinstance(content, dict) else {}
            if "hardware" in about:  # not settings, actions, published numbers
                yield path.relative_to(ROOT).as_posix(), about


def test_every_result_has_a_commit_that_was_checked() -> None:
    for name, about in provenances():
        commits = [about["commit"], *about.get("cells", [])]
        assert all(re.fullmatch("[0-9a-f]{40}", str(commit)) for commit in commits), name
        assert about["dirty"] is False, name
        assert {"command", "date", "versions", "tree"} <= about.keys(), name


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True)


@pytest.mark.skipif(
    git("rev-parse", "--is-shallow-repository").stdout.strip() != b"false", reason="needs a clone with its history"
)
def test_the_sources_of_a_commit_have_the_hash_that_results_say(tmp_path: Path) -> None:
    made = {(about["commit"], about["tree"]) for _, about in provenances() if about.get("tree")}
    assert made
    for commit, tree in sorted(made):
        assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, f"no clone has {commit}"
        kept = [name for name in SOURCES if git("cat-file", "-e", f"{commit}:{name}").returncode == 0]
        places = [*kept, *(f":(exclude){name}/results" for name in kept)]
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "--", *places).stdout)) as packed:
            packed.extractall(tmp_path / commit, filter="data")
        was, now = (tmp_path / commit / f"{folder}/provenance.py" for folder in ("src/graphsnd/plots", "benchmarks"))
        text = (was if was.is_file() else now).read_text(encoding="utf-8")
        (then,) = re.findall(r"^SUFFIXES = (\(.*?\))", text, re.M)  # those that were hashed at that time
        assert hash_sources(tmp_path / commit, literal_eval(then)) == tree, commit


def test_every_source_is_hashed() -> None:
    listed = git("ls-files", "--", *SOURCES, *(f":(exclude){name}/results" for name in SOURCES)).stdout.decode().split()
    assert [name for name in listed if not name.endswith(SUFFIXES)] == []
