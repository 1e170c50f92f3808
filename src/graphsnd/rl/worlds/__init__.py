"""Batched environments: many copies of a multi-agent task as one tensor program, step for step like the original.

:class:`Navigation` and :class:`Dispersion` follow VMAS 1.5.2, :class:`SimpleSpread` follows mpe2 1.1.1. A world never
changes; its state goes in and comes out of ``step``. On a GPU a step reads nothing back, so it can be captured in a
CUDA graph; on a CPU it looks only at agents that are close.
"""

from graphsnd.rl.worlds.dispersion import Dispersion
from graphsnd.rl.worlds.navigation import Navigation
from graphsnd.rl.worlds.parse import parse_world
from graphsnd.rl.worlds.simple_spread import SimpleSpread
from graphsnd.rl.worlds.world import World

__all__ = [
    "Dispersion",
    "Navigation",
    "SimpleSpread",
    "World",
    "parse_world",
]
