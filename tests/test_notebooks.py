"""Every notebook under examples/ runs from top to bottom, and is committed without outputs.

Outputs would go stale unseen and hide changes in diffs behind pictures; what a notebook shows is made here, each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.browser
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    cells = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells.cells)
    client = NotebookClient(cells, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in cells.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
