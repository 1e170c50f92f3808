"""Everything the demo writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsnd.plots.agents import contributions_figure
from graphsnd.plots.demo_page import demo_page
from graphsnd.plots.hero import hero_figure
from graphsnd.plots.intervals import estimates_figure
from graphsnd.plots.matrix import heatmap_figure, tree_figure
from graphsnd.plots.network import graphs_figure
from graphsnd.plots.study import Study
from graphsnd.plots.style import save_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERO_DPI = 120  # 1800 pixels across: twice the width of a README


def write_demo(
    study: Study, folder: Path, command: str, *, step: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Draw all figures and the page into ``folder``.

    Args:
        study: The measurements.
        folder: Made when it does not exist.
        command: What made it, for the page's footer.
        step: Called with the name of each file before it is drawn.

    Returns:
        The files, the page first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    step("index.html")
    page = folder / "index.html"
    page.write_text(demo_page(study, command), encoding="utf-8")
    written = [page]
    for name, draw in figures(study).items():
        step(name)
        written.append(save_png(draw(), folder / name, **({"dpi": HERO_DPI} if name == "hero.png" else {})))
    return written


def figures(study: Study) -> dict[str, Callable[[], Figure]]:
    """File names and how to draw them."""
    groups: dict[str, Any] = {"groups": study.team.roles, "group_names": study.team.role_names}
    return {
        "hero.png": lambda: hero_figure(study),
        "heatmap.png": lambda: heatmap_figure(study.matrix, study.tree, **groups),
        "dendrogram.png": lambda: tree_figure(study.tree, exact=study.exact.estimate.value, **groups),
        "graphs.png": lambda: graphs_figure(study),
        "estimates.png": lambda: estimates_figure(study),
        "contributions.png": lambda: contributions_figure(study.contributions, **groups),
    }
