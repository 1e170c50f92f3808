"""What is published: the wheel, the sdist, and what README, metadata and workflows promise of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import graphsnd

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PYTHONS = re.findall(r"Python :: (3\.\d+)", PROJECT)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with wheel and sdist."""
    backend, folder, before = pytest.importorskip("hatchling.build"), tmp_path_factory.mktemp("dist"), Path.cwd()
    os.chdir(ROOT)
    try:
        backend.build_wheel(str(folder))
        backend.build_sdist(str(folder))
    finally:
        os.chdir(before)
    return folder


def test_the_wheel_holds_the_library_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.parts[0] for name in names} == {"graphsnd", f"graphsnd-{graphsnd.__version__}.dist-info"}
    sources = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*") if path.is_file()}
    sources = {path for path in sources if not {"__pycache__", "graphsnd.egg-info"} & set(path.parts)}
    assert {name for name in names if name.parts[0] == "graphsnd"} == sources
    assert Path("graphsnd/py.typed") in names


def test_the_sdist_is_small_and_without_results(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    assert sdist.stat().st_size < 2_000_000
    with tarfile.open(sdist) as archive:
        names = [Path(*Path(name).parts[1:]) for name in archive.getnames()]
    assert {name.parts[0] for name in names} <= {
        ".gitignore",
        "src",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }
    assert not [name for name in names if name.suffix in (".safetensors", ".npz", ".csv", ".png", ".pt")]


def test_there_is_one_version() -> None:
    released = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released[0] == graphsnd.__version__
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited == [graphsnd.__version__]


def test_links_of_the_readme_lead_into_this_tree() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)|src(?:set)?=\"([^\"]+)\"", README, re.MULTILINE)
    for link in ("".join(groups) for groups in links):
        host = re.match(r"https://([^/]+)/", link)
        assert host is None or host[1] in ("arxiv.org", "openreview.net"), link
        assert host or link.startswith("#") or (ROOT / link.partition("#")[0]).exists(), link


def test_workflows_run_what_is_there() -> None:
    yaml = pytest.importorskip("yaml")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    pages = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").iterdir()}
    jobs: dict[str, Any] = {
        f"{name} {job}": value for name, page in pages.items() for job, value in page["jobs"].items()
    }
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    for command in (*commands, *(ROOT / ".ci/run").read_text("utf-8").splitlines()):
        assert set(re.findall(r"^make ([a-z-]+)", command)) <= targets, command
    rows = jobs["ci.yml tests"]["strategy"]["matrix"]["row"]
    assert set(PYTHONS) - {"3.11"} == set(rows) - {"lowest"}  # 3.11 is that of .ci/run


def test_nothing_in_the_library_runs_what_a_file_says() -> None:
    """.github/SECURITY.md: no call unpickles more than tensors, and none gives text to a shell."""
    forbidden = {"pickle.load", "pickle.loads", "os.system", "yaml.unsafe_load", "marshal.loads"}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in forbidden, f"{path}:{node.lineno}"
                given = {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg}
                assert given.get("allow_pickle", "False") == "False", f"{path}:{node.lineno}"
                assert ast.unparse(node.func) != "torch.load" or given["weights_only"] == "True", (
                    f"{path}:{node.lineno}"
                )
                assert given.get("shell", "False") == "False", f"{path}:{node.lineno}"


def test_typed_code_of_a_user_runs() -> None:
    done = subprocess.run([sys.executable, ROOT / "tests/typed_use.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "SND" in done.stdout
