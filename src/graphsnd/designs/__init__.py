"""Designs: which pairs of agents are measured, as frozen values that are written ``bernoulli:0.1``.

The same values choose the pairs of :func:`graphsnd.measure`, of a controller and of the command line.
:meth:`Design.draw` is the one way from a design to pairs. :class:`Bernoulli`, :class:`Uniform` and :class:`Regular`
draw one graph for the call; :class:`Matching`, :class:`Ring` and :class:`Agents` draw pairs for each observation;
:class:`Nearest` and :class:`Radius` need positions and define a local measure, as a graph of your own does.
"""

from graphsnd.designs.design import (
    Agents,
    Bernoulli,
    Complete,
    Design,
    Matching,
    Nearest,
    Radius,
    Regular,
    Ring,
    Uniform,
    parse,
)

__all__ = [
    "Agents",
    "Bernoulli",
    "Complete",
    "Design",
    "Matching",
    "Nearest",
    "Radius",
    "Regular",
    "Ring",
    "Uniform",
    "parse",
]
