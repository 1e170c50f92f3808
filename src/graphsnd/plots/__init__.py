"""Figures, tables and self-contained pages.

Figures are functions that return a matplotlib figure; :func:`save_png` and :func:`svg_uri` are the two ways out. All of
them share :mod:`graphsnd.plots.style`. Pages are strings of HTML that need no other file.
"""

from graphsnd.plots.agents import contributions_figure
from graphsnd.plots.demo import write_demo
from graphsnd.plots.demo_page import demo_page
from graphsnd.plots.facts import facts
from graphsnd.plots.hero import hero_figure
from graphsnd.plots.intervals import estimates_figure
from graphsnd.plots.matrix import heatmap_figure, tree_figure
from graphsnd.plots.measure_page import measure_page
from graphsnd.plots.measured import Detail, detail, measured_figure
from graphsnd.plots.network import graphs_figure
from graphsnd.plots.origin import origin, provenance
from graphsnd.plots.page import Picture, Section, render
from graphsnd.plots.study import Measured, Study, study
from graphsnd.plots.style import save_png, svg_uri
from graphsnd.plots.team import ExampleTeam, example_team
from graphsnd.plots.tree import Tree, cluster

__all__ = [
    "Detail",
    "ExampleTeam",
    "Measured",
    "Picture",
    "Section",
    "Study",
    "Tree",
    "cluster",
    "contributions_figure",
    "demo_page",
    "detail",
    "estimates_figure",
    "example_team",
    "facts",
    "graphs_figure",
    "heatmap_figure",
    "hero_figure",
    "measure_page",
    "measured_figure",
    "origin",
    "provenance",
    "render",
    "save_png",
    "study",
    "svg_uri",
    "tree_figure",
    "write_demo",
]
