"""Figures, tables and self-contained pages.

Figures are functions that return a matplotlib figure; :func:`save_png` and :func:`svg_uri` are the two ways out. All of
them share :mod:`graphsnd.plots.style`. Pages are strings of HTML that need no other file. Matplotlib is imported when
the first figure is drawn.
"""

from graphsnd.plots.curves import compare, over_time
from graphsnd.plots.demo import write_demo
from graphsnd.plots.fields import field
from graphsnd.plots.intervals import estimate
from graphsnd.plots.matrix import contributions, heatmap, map, tree
from graphsnd.plots.measurement import PairDistances, measurement_figure, measurement_page, pair_distances
from graphsnd.plots.network import graph
from graphsnd.plots.provenance import collect_provenance
from graphsnd.plots.study import Study, run_study
from graphsnd.plots.style import save_png, svg_uri, theme
from graphsnd.plots.summary import summarise
from graphsnd.plots.team import ExampleTeam, example_team

__all__ = [
    "ExampleTeam",
    "PairDistances",
    "Study",
    "collect_provenance",
    "compare",
    "contributions",
    "estimate",
    "example_team",
    "field",
    "graph",
    "heatmap",
    "map",
    "measurement_figure",
    "measurement_page",
    "over_time",
    "pair_distances",
    "run_study",
    "save_png",
    "summarise",
    "svg_uri",
    "theme",
    "tree",
    "write_demo",
]
