"""The edge forwarding index of a graph, between bounds that hold for certain."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.bounds.forwarding import flow, lp
from graphsnd.bounds.forwarding.compiled import loops
from graphsnd.bounds.forwarding.elementary import ROUNDING, Bracket, elementary
from graphsnd.bounds.forwarding.integral import ENTRIES, Routing, route, routing_of
from graphsnd.bounds.forwarding.network import Network, network
from graphsnd.errors import InputError, check_integer, number
from graphsnd.graphs import Graph

METHODS = ("auto", "lp", "flow", "betweenness")
EXACT = 25_000  # variables of the linear program that auto still solves: about a second
SOLVABLE = 200_000  # variables beyond which the linear program takes minutes and gigabytes
VISITS = 10**6  # of pairs in the search for an integral routing; at least 30 passes over all of them


@dataclass(frozen=True, eq=False)
class ForwardingIndex:
    """What is known of the edge forwarding index of a graph, with the certificates."""

    lower: float  # of the fractional index pi*, hence also of pi
    upper: float  # of the fractional index
    integral: float  # largest load of the best routing with one path for each pair: an upper bound of pi
    integral_lower: float  # of pi: the lower bound, rounded up to a whole number
    method: str  # what narrowed the fractional bounds: lp, flow or betweenness
    lengths: Tensor  # float64 [m], of the edges; the distances under them prove `lower`
    routing: Routing | None = None  # the paths behind `integral`, when asked for

    @property
    def gap(self) -> float:
        """The relative width of the fractional bounds."""
        return self.upper / self.lower - 1

    def __repr__(self) -> str:
        return (
            f"ForwardingIndex(fractional in [{self.lower:.6g}, {self.upper:.6g}], "
            f"integral in [{self.integral_lower:.6g}, {self.integral:.6g}], {self.method})"
        )


def forwarding_index(
    graph: Graph,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    rounds: int = 200,
    seconds: float | None = None,
    routing: bool = False,
) -> ForwardingIndex:
    r"""The edge forwarding index: how crowded the most crowded edge must be when every pair is joined by a path.

    .. math:: \pi(G) = \min_R \max_{e \in E} |\{ \{i,j\} : e \in R_{ij} \}|

    over routings R with one path for each *unordered* pair, so that the index of a complete graph is 1; the fractional
    index pi* may split a pair over several paths. The paper also asks that adjacent pairs use their own edge. This
    changes neither value: where the pair {u, v} takes a detour P, it can trade with a path that uses the edge uv, which
    takes P instead, and no load grows.

    Every bound is certified, whatever the method and whenever it stops: above by the loads of an actual routing, below
    by the distances under actual edge lengths.

    Args:
        graph: A connected graph. Its weights do not enter.
        method: ``lp`` solves the linear program (exact; up to 200,000 variables, (n-1) 2m of them: about 100 agents of
            degree 10). ``flow`` approximates it on graphs of thousands of edges. ``betweenness`` takes equal splitting
            over shortest paths as it is. ``auto`` stops at betweenness where that is optimal, else picks ``lp`` up to
            25,000 variables and ``flow`` above.
        tolerance: Relative gap at which ``flow`` stops.
        rounds: Most rounds of ``flow``, one shortest-path tree per agent each.
        seconds: Time for ``flow`` and as much again for the integral routing; no limit when None. A pass is finished.
        routing: Whether to return the paths.

    Returns:
        Bounds of both indices.

    Raises:
        InputError: For a graph that is not connected, or too large for ``lp``.

    Example:
        >>> import networkx
        >>> from graphsnd import graphs
        >>> forwarding_index(graphs.from_networkx(networkx.cycle_graph(4)))
        ForwardingIndex(fractional in [2, 2], integral in [2, 3], betweenness)
    """
    check_options(method, tolerance, rounds, seconds)
    return index_of(network(graph), method, tolerance=tolerance, rounds=rounds, seconds=seconds, routing=routing)


def index_of(
    net: Network, method: str, *, tolerance: float, rounds: int, seconds: float | None, routing: bool = False
) -> ForwardingIndex:
    """The same for a network: loads count relative to capacities."""
    limit = math.inf if seconds is None else seconds
    loads = flow.empty_loads(net)
    bracket = elementary(net, loads)
    hops = float(loads.sum())
    method = _choose(method, net, bracket)
    if method == "lp":
        bracket = lp.solve(net, bracket)
    elif method == "flow":
        bracket = flow.descend(net, loads, bracket, tolerance, rounds, time.monotonic() + limit)
    integral, paths = _integral(net, bracket.lower, hops, time.monotonic() + limit, routing)
    return ForwardingIndex(
        lower=bracket.lower,
        upper=min(bracket.upper, integral),
        integral=integral,
        integral_lower=float(math.ceil(bracket.lower)) if net.unit else bracket.lower,
        method=method,
        lengths=torch.from_numpy(bracket.lengths),
        routing=paths,
    )


def _choose(method: str, net: Network, bracket: Bracket) -> str:
    if method == "auto":
        if bracket.gap <= 2 * ROUNDING:
            return "betweenness"
        return "lp" if lp.variables(net) <= EXACT else "flow"
    if method == "lp" and lp.variables(net) > SOLVABLE:
        got = f"a graph with n = {net.n} and m = {net.m}: {lp.variables(net)} variables"
        raise InputError("graph", f"small enough for `lp`, (n-1) 2m <= {SOLVABLE}", got, 'Use method="flow".')
    return method


def _integral(net: Network, lower: float, hops: float, deadline: float, wanted: bool) -> tuple[float, Routing | None]:
    """The best integral routing found; a first one where its paths, ``hops`` edges in all, are too many to keep."""
    if hops <= ENTRIES:
        passes = max(30, min(300, 2 * VISITS // (net.n * (net.n - 1))))
        worst, paths = route(net, lower, passes, deadline)
        return worst, routing_of(net, paths) if wanted else None
    if wanted:
        raise InputError("routing", f"to be False beyond {ENTRIES} edges over all paths", f"{hops:.0f} of them")
    return float((loops.tree_loads(*net.arcs, net.capacity) / net.capacity).max()), None


def check_options(method: str, tolerance: float, rounds: int, seconds: float | None) -> None:
    """Raise for options that :func:`forwarding_index` cannot take."""
    if method not in METHODS:
        raise InputError("method", f"to be one of {', '.join(METHODS)}", repr(method))
    if not 0 <= number(tolerance) < math.inf:
        raise InputError("tolerance", "to be a number, at least 0", tolerance)
    check_integer("rounds", rounds, "to be an integer, at least 0", low=0)
    if seconds is not None and not number(seconds) >= 0:
        raise InputError("seconds", "to be a number, at least 0, or None", seconds)
