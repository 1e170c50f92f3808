"""Figures, tables and self-contained pages.

Figures are functions that return a matplotlib figure; :func:`save_png` and :func:`svg_uri` are the two ways out. All of
them share :mod:`graphsnd.plots.style`. Pages are strings of HTML that need no other file. Matplotlib is imported when
the first figure is drawn.
"""

from graphsnd.plots.demo import demo_page, write_demo
from graphsnd.plots.intervals import estimates_figure
from graphsnd.plots.matrix import contributions_figure, heatmap_figure, tree_figure
from graphsnd.plots.measurement import PairDistances, measurement_figure, measurement_page, pair_distances
from graphsnd.plots.network import graphs_figure
from graphsnd.plots.provenance import collect_provenance
from graphsnd.plots.readme_figure import overview_figure
from graphsnd.plots.study import Study, run_study
from graphsnd.plots.style import save_png, svg_uri
from graphsnd.plots.summary import summarise
from graphsnd.plots.team import ExampleTeam, example_team

__all__ = [
    "ExampleTeam",
    "PairDistances",
    "Study",
    "collect_provenance",
    "contributions_figure",
    "demo_page",
    "estimates_figure",
    "example_team",
    "graphs_figure",
    "heatmap_figure",
    "measurement_figure",
    "measurement_page",
    "overview_figure",
    "pair_distances",
    "run_study",
    "save_png",
    "summarise",
    "svg_uri",
    "tree_figure",
    "write_demo",
]
