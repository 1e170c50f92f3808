"""Figures, tables and self-contained pages.

Figures are functions that draw on matplotlib axes and return them; :func:`~graphsnd.plots.style.save_png` writes one.
All of them share :mod:`graphsnd.plots.style`. Pages are strings of HTML that need no other file.
Matplotlib is imported when the first figure is drawn.
"""

from graphsnd.plots.intervals import estimate, over_time
from graphsnd.plots.matrix import contributions, heatmap, map
from graphsnd.plots.network import graph
from graphsnd.plots.page import report
from graphsnd.plots.style import theme
from graphsnd.plots.team import example_team

__all__ = [
    "contributions",
    "estimate",
    "example_team",
    "graph",
    "heatmap",
    "map",
    "over_time",
    "report",
    "theme",
]
