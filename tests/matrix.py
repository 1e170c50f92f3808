"""Run the tests in environments of their own: `make test-matrix`; needs uv, and downloads what they lack.

A row is a Python (`3.12`, with the pinned development environment), `lowest` (the lower bounds of pyproject.toml),
`newest` (the newest release of everything, frameworks included) or `plain` (the library alone). `lowest:3.12` chooses
the Python of the others.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ["pytest>=9", "pytest-timeout", "pytest-xdist", "hypothesis", "POT", "psutil", "pyyaml", "vendi-score"]
FRAMEWORKS = ["benchmarl", "torchrl", "mpe2", "pettingzoo", "torchmetrics", "tensorboard", "page", "hydra"]
TORCH = "torch==2.13.0"  # of the rows that are pinned; elsewhere what the row finds


def install(row: str, python: str, folder: Path) -> None:
    """Make the environment of a row."""
    subprocess.run(["uv", "venv", "--quiet", "--allow-existing", "--python", python, folder], check=True)
    lower, newest = ["--resolution", "lowest-direct"], [f"--extra={extra}" for extra in FRAMEWORKS]
    wanted = {
        "lowest": [[*lower, "-r", "pyproject.toml"], TOOLS],
        "newest": [["--upgrade", "-r", "pyproject.toml", *newest, *TOOLS]],
        "plain": [["-r", "pyproject.toml", *TOOLS]],
    }
    pinned = [["--no-deps", "-r", f"requirements/{part}.lock"] for part in ("build", "dev")]
    for words in wanted.get(row, [*pinned[:1], [*pinned[1], "--no-build-isolation"], [TORCH]]):
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", folder, *words], cwd=ROOT, check=True)
    subprocess.run(
        ["uv", "pip", "install", "--quiet", "--python", folder, "--no-deps", "--editable", "."], cwd=ROOT, check=True
    )


def run(row: str, words: list[str]) -> str:
    """Run the tests of a row and return pytest's last line."""
    kind, _, chosen = row.partition(":")
    python = chosen or {"lowest": "3.10", "newest": "3.13", "plain": "3.13"}.get(kind, kind)
    folder = Path(os.environ.get("MATRIX_FOLDER", ROOT / ".matrix")) / row.replace(":", "-")
    install(kind, python, folder)
    interpreter = folder / ("Scripts/python.exe" if sysconfig.get_platform().startswith("win") else "bin/python")
    command = [interpreter, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as tests:
        assert tests.stdout is not None
        last = ""
        for line in tests.stdout:
            print(line, end="", flush=True)
            last = line if re.search(r"\d+ (passed|failed|error)", line) else last
    return f"{row:12} exit {tests.returncode}  {last.strip(' =') or 'no tests'}"


def main(words: list[str]) -> int:
    """Run rows, which stand before a `--`, with pytest's options behind it."""
    rows, options = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    results = [run(row, options) for row in rows]
    print("\n".join(["", *results]))
    return int(any(" exit 0 " not in result for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
