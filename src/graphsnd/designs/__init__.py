"""7 THE LANGUAGE: which pairs of agents are measured, as frozen values that are written ``bernoulli:0.1``.

The same values choose the pairs of :func:`graphsnd.measure`, of a controller and of the command line. What is drawn
when belongs to the value: :class:`Bernoulli`, :class:`Uniform` and :class:`Regular` draw one graph for each call;
:class:`Matching`, :class:`Pairs`, :class:`Ring`, :class:`Agents` and :class:`Adaptive` draw pairs for each observation;
:class:`Nearest` and :class:`Radius` need positions and define a local measure, as :class:`Fixed` does, a graph of your
own; :class:`Projections` sorts instead of choosing pairs.
"""

from graphsnd.designs.adaptive import Adaptive, adapt
from graphsnd.designs.design import Complete, Design, Projections, Selection
from graphsnd.designs.drawn import Bernoulli, Fixed, GraphDesign, Nearest, Radius, Regular, SpatialDesign, Uniform
from graphsnd.designs.parsing import FORMS, parse
from graphsnd.designs.relabelled import Agents, Matching, Pairs, RelabelledDesign, Ring, Template

__all__ = [
    "FORMS",
    "Adaptive",
    "Agents",
    "Bernoulli",
    "Complete",
    "Design",
    "Fixed",
    "GraphDesign",
    "Matching",
    "Nearest",
    "Pairs",
    "Projections",
    "Radius",
    "Regular",
    "RelabelledDesign",
    "Ring",
    "Selection",
    "SpatialDesign",
    "Template",
    "Uniform",
    "adapt",
    "parse",
]
