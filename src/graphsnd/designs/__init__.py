"""Which pairs of agents are measured, as frozen values that are written ``bernoulli:0.1``.

The same values choose the pairs of :func:`graphsnd.measure`, of a controller and of the command line. What is drawn
when belongs to the value: :class:`Bernoulli`, :class:`Uniform` and :class:`Regular` draw one graph for each call;
:class:`Matching`, :class:`Ring` and :class:`Agents` draw pairs for each observation;
:class:`Nearest` and :class:`Radius` need positions and define a local measure, as :class:`Fixed` does, a graph of your
own.
"""

from graphsnd.designs.design import Complete, Design, Selection
from graphsnd.designs.drawn import Bernoulli, Fixed, GraphDesign, Nearest, Radius, Regular, SpatialDesign, Uniform
from graphsnd.designs.parsing import FORMS, parse
from graphsnd.designs.relabelled import Agents, Matching, RelabelledDesign, Ring, Template

__all__ = [
    "FORMS",
    "Agents",
    "Bernoulli",
    "Complete",
    "Design",
    "Fixed",
    "GraphDesign",
    "Matching",
    "Nearest",
    "Radius",
    "Regular",
    "RelabelledDesign",
    "Ring",
    "Selection",
    "SpatialDesign",
    "Template",
    "Uniform",
    "parse",
]
