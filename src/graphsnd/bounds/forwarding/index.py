"""The edge forwarding index of a graph, between bounds that hold for certain."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.bounds.forwarding import flow, lp
from graphsnd.bounds.forwarding.elementary import ROUNDING, Bracket, elementary_bounds
from graphsnd.bounds.forwarding.network import Network, build_network
from graphsnd.errors import InputError, check_choice, check_number
from graphsnd.graphs import Graph

METHODS = ("auto", "lp", "flow", "betweenness")
EXACT = 25_000  # variables of the linear program that auto still solves: about a second
LONG = 6e7  # agents times edges above which flow takes more than ten seconds; betweenness is five times as fast
SOLVABLE = 200_000  # variables beyond which the linear program takes minutes and gigabytes


@dataclass(frozen=True, eq=False)
class ForwardingIndex:
    """Bounds on the fractional edge forwarding index of a graph, with their certificate.

    Example:
        >>> import networkx, graphsnd as gs
        >>> index = forwarding_index(gs.graphs.from_networkx(networkx.cycle_graph(4)))
        >>> round(index.lower, 6), round(index.upper, 6), abs(index.gap) < 1e-6
        (2.0, 2.0, True)
    """

    lower: float  # of the fractional index; rounded up, of the index with one path per pair as well
    upper: float  # of the fractional index
    method: str  # what narrowed the bounds: lp, flow or betweenness
    lengths: Tensor  # float64 [m], of the edges; the distances under them prove `lower`

    @property
    def gap(self) -> float:
        """The relative width of the bounds."""
        return self.upper / self.lower - 1

    def __repr__(self) -> str:
        return f"ForwardingIndex(in [{self.lower:.6g}, {self.upper:.6g}], {self.method})"


@checked
def forwarding_index(
    graph: Graph, method: str = "auto", *, tolerance: float = 0.02, seconds: float | None = None
) -> ForwardingIndex:
    r"""Return bounds on the fractional edge forwarding index: the load of the most loaded edge, at its smallest.

    .. math:: \pi^*(G) = \min_f \max_{e \in E} \mathrm{load}_f(e)

    over routings f that send each *unordered* pair over one or several paths, so that the index of a complete graph
    is 1. The paper's index :math:`\pi` allows one path per pair; it is at least :math:`\pi^*`, and the distortion
    theorem holds with either. The paper also asks that adjacent pairs use their own edge. This changes neither value:
    where the pair {u, v} takes a detour P, it can trade with a path that uses the edge uv, which takes P instead, and
    no load grows.

    Both bounds are certified, whatever the method and whenever it stops: above by the loads of an actual routing, below
    by the distances under actual edge lengths.

    Args:
        graph: A connected graph. Its weights do not enter.
        method: ``lp`` solves the linear program (exact; up to 200,000 variables, (n-1) 2m of them: about 100 agents of
            degree 10). ``flow`` approximates it on graphs of thousands of edges. ``betweenness`` takes equal splitting
            over shortest paths as it is. ``auto`` stops at betweenness where that is optimal, else picks ``lp`` up to
            25,000 variables and ``flow`` above.
        tolerance: Relative gap at which ``flow`` stops.
        seconds: Time limit for ``flow``; none when None. A round, one shortest-path tree per agent, is finished; there
            are at most 200. Above 6e7 agents times edges there is a warning that it may take minutes.

    Raises:
        InputError: For a graph that is not connected, or too large for ``lp``.

    Example:
        >>> import networkx
        >>> from graphsnd import graphs
        >>> forwarding_index(graphs.from_networkx(networkx.cycle_graph(4)))
        ForwardingIndex(in [2, 2], betweenness)
    """
    return index_of_network(build_network(graph), method, tolerance, seconds)


def index_of_network(net: Network, method: str, tolerance: float, seconds: float | None) -> ForwardingIndex:
    """Return the same for a network: loads count relative to capacities."""
    check_choice("method", method, METHODS)
    check_number("tolerance", tolerance, low=0)
    if seconds is not None:
        check_number("seconds", seconds, low=0)
    if net.n * net.m > LONG * (5 if method == "betweenness" or seconds is not None else 1):
        fix = 'Less is taken by method="betweenness", or seconds= for flow; least by a smaller graph of the same kind.'
        warnings.warn(
            f"The index of {net.n:,} agents and {net.m:,} edges may take minutes. {fix}", UserWarning, stacklevel=3
        )
    loads = flow.empty_loads(net)
    bracket = elementary_bounds(net, loads)
    method = _choose_method(method, net, bracket)
    if method == "lp":
        bracket = lp.solve(net, bracket)
    elif method == "flow":
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        bracket = flow.descend(net, loads, bracket, tolerance, deadline)
    return ForwardingIndex(bracket.lower, bracket.upper, method, torch.from_numpy(bracket.lengths))


def _choose_method(method: str, net: Network, bracket: Bracket) -> str:
    variables = (net.n - 1) * 2 * net.m  # a flow for every source but the last, on every arc
    if method == "auto":
        if bracket.gap <= 2 * ROUNDING:
            return "betweenness"
        return "lp" if variables <= EXACT else "flow"
    if method == "lp" and variables > SOLVABLE:
        got = f"a graph with n = {net.n} and m = {net.m}: {variables} variables"
        raise InputError("graph", f"small enough for `lp`, (n-1) 2m <= {SOLVABLE}", got, 'Use method="flow".')
    return method
