"""The edge forwarding index: exact by linear programming, or between certified bounds for graphs of any size.

``network`` is the graph as arrays, ``elementary`` the bounds that need no search, ``lp`` and ``flow`` the two ways to
narrow them, ``index`` the public function over them; ``loops`` holds everything that is compiled.
"""

from graphsnd.bounds.forwarding.index import ForwardingIndex, forwarding_index

__all__ = ["ForwardingIndex", "forwarding_index"]
