"""Every notebook under examples/ runs from top to bottom, and its committed outputs say what a new run says.

``python -m tests.test_notebooks`` runs them all and writes their outputs.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def is_log(output: Any) -> bool:
    """Whether other libraries wrote this: warnings, progress, and lines with paths of the machine."""
    return output.output_type == "stream" and (output.name == "stderr" or bool(re.search(r"\x1b|/tmp/", output.text)))


def execute(notebook: Path, folder: str) -> Any:
    """Return the notebook with the outputs of a new run, without logs of other libraries."""
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=240, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in (cell for cell in cells.cells if cell.cell_type == "code"):
        cell.metadata.clear()
        cell.outputs = [output for output in cell.outputs if not is_log(output)]
    return cells


def summarise(cells: Any) -> list[list[tuple[str, ...]]]:
    """Return for each cell the kinds of its outputs, and the words that it prints; numbers may differ by machine."""
    return [
        [
            (" ".join(re.sub(r"[-+\d.,]+", "#", output.text).split()),)
            if output.output_type == "stream"
            else tuple(sorted(output.data))
            for output in cell.get("outputs", ())
        ]
        for cell in cells.cells
    ]


@pytest.mark.browser
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_says_what_is_committed(notebook: Path, tmp_path: Path) -> None:
    committed = nbformat.read(notebook, as_version=4)
    assert "/tmp/" not in notebook.read_text(encoding="utf-8")
    found = summarise(committed)
    assert any("image/png" in kinds for cell in found for kinds in cell)
    assert summarise(execute(notebook, str(tmp_path))) == found


if __name__ == "__main__":
    for path in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            nbformat.write(execute(path, folder), path)
