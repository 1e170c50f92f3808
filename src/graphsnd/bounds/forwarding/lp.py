r"""The fractional index exactly: the multicommodity-flow linear program, solved by HiGHS and certified afterwards.

Source s sends one unit to every t > s. With flows f_s on the 2m arcs,

.. math:: \min \pi \quad \text{s.t.} \quad \mathrm{div} f_s = b_s, \quad
    \sum_s f_s(uv) + f_s(vu) \le \pi\, c(uv), \quad f \ge 0.

Nothing that the solver says is taken on trust. Its flows are cleaned of negative entries, what they then fail to
deliver is sent along a spanning tree, and the loads are counted again; its dual values serve as edge lengths, and the
lower bound is the sum of the distances under them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphsnd.bounds.forwarding.elementary import Bracket, dual_bound, largest_load
from graphsnd.bounds.forwarding.network import Floats, Network

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def solve(net: Network, bracket: Bracket) -> Bracket:
    """Narrow ``bracket`` to the optimum.

    Raises:
        RuntimeError: When HiGHS finds no optimum.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, csr_matrix, hstack, identity

    incidence, demands = _incidence(net), _demands(net.n)
    sources = net.n - 1
    # The balance at a source follows from the others; with it the rows would be dependent.
    rows = [np.delete(np.arange(net.n), s) for s in range(sources)]
    balance = block_diag([incidence[keep] for keep in rows], format="csr")
    balance = hstack([balance, csr_matrix((balance.shape[0], 1))], format="csr")
    use = hstack([identity(net.m)] * (2 * sources) + [csr_matrix(-net.capacity[:, None])], format="csr")
    objective = np.zeros(balance.shape[1])
    objective[-1] = 1.0
    sent = np.concatenate([demands[s][keep] for s, keep in enumerate(rows)])
    result = linprog(objective, use, np.zeros(net.m), balance, sent, method="highs-ipm")
    if not result.success:
        raise RuntimeError(f"HiGHS found no optimal routing: {result.message}")
    flows = np.maximum(result.x[:-1], 0).reshape(sources, 2 * net.m)
    lengths = np.maximum(-result.ineqlin.marginals, 0)
    missing = demands - flows @ incidence.T
    loads = flows.sum(axis=0).reshape(2, net.m).sum(axis=0) + _repair(net, missing)
    return bracket.with_upper(largest_load(net, loads)).with_lower(dual_bound(net, lengths), lengths)


def _incidence(net: Network) -> csr_matrix:
    """Return what a unit of flow on each arc brings to each vertex, ``[n, 2m]``: i to j first, then j to i."""
    from scipy.sparse import coo_matrix, hstack

    tails, heads = net.edges.T
    ones, arcs = np.ones(net.m), np.arange(net.m)
    forward = coo_matrix((np.r_[ones, -ones], (np.r_[heads, tails], np.r_[arcs, arcs])), shape=(net.n, net.m))
    return hstack([forward, -forward], format="csr")


def _demands(n: int) -> Floats:
    """Return what every source owes to every vertex, ``[n - 1, n]``; rows sum to zero."""
    owed = np.triu(np.ones((n, n)), 1)
    np.fill_diagonal(owed, -owed.sum(axis=1))
    return owed[:-1]


def _repair(net: Network, missing: Floats) -> Floats:
    """Return the load ``[m]`` of sending ``missing`` ``[sources, n]`` (rows sum to zero) along a spanning tree."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    indptr, heads, ids = net.arcs
    numbers = csr_matrix((ids, heads, indptr))  # of the edge between two vertices
    order, parent = breadth_first_order(numbers, 0)
    missing, extra = missing.copy(), np.zeros(net.m)
    for v in order[:0:-1]:
        extra[numbers[v, parent[v]]] = np.abs(missing[:, v]).sum()
        missing[:, parent[v]] += missing[:, v]
    return extra
