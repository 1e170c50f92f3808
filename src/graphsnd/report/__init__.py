"""Figures, tables and self-contained pages.

Figures are functions that return a matplotlib figure; :func:`save_png` and :func:`svg_uri` are the two ways out. All of
them share :mod:`graphsnd.report.style`. Pages are strings of HTML that need no other file.
"""

from graphsnd.report.agents import contributions_figure
from graphsnd.report.bench import bench_figure
from graphsnd.report.demo import write_demo
from graphsnd.report.demo_page import demo_page
from graphsnd.report.facts import facts
from graphsnd.report.hero import hero_figure
from graphsnd.report.intervals import estimates_figure
from graphsnd.report.matrix import heatmap_figure, tree_figure
from graphsnd.report.measure_page import measure_page
from graphsnd.report.measured import Detail, detail, measured_figure
from graphsnd.report.network import graphs_figure
from graphsnd.report.origin import origin, provenance
from graphsnd.report.page import Picture, Section, render
from graphsnd.report.study import Measured, Study, study
from graphsnd.report.style import save_png, svg_uri
from graphsnd.report.team import ExampleTeam, example_team
from graphsnd.report.tree import Tree, cluster

__all__ = [
    "Detail",
    "ExampleTeam",
    "Measured",
    "Picture",
    "Section",
    "Study",
    "Tree",
    "bench_figure",
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
