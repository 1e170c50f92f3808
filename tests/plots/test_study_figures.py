from __future__ import annotations

from pathlib import Path

from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import overview_figure
from graphsnd.plots.style import save_png


def test_the_overview_is_small_enough_for_a_readme(small: Study, tmp_path: Path) -> None:
    path = save_png(overview_figure(small), tmp_path / "hero.png", dpi=120)
    assert path.stat().st_size < 400_000
