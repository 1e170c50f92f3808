"""Designs: which pairs of agents are measured, as frozen values that are written ``bernoulli:0.1``.

The same values choose the pairs of :func:`graphsnd.measure`, of a controller and of the command line.
:meth:`Design.draw` is the one way from a design to pairs. ``bernoulli``, ``uniform`` and ``regular`` draw one graph for
the call; ``matching``, ``ring`` and ``agents`` draw pairs for each observation; ``knn`` and ``radius`` need positions
and define a local measure, as a graph of your own does.
"""

from graphsnd.designs.design import Design, parse

__all__ = ["Design", "parse"]
