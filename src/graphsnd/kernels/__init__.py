"""Sums of pair distances over points, fast.

Operations on ``points[observation, agent, feature]``: all-pairs totals, all-pairs matrix, a shared edge list summed
over observations or over edges, and an edge list for each observation, of equal or other lengths. ``reference`` is
plain torch and the oracle of the compiled backends, ``cpu`` (numba) and ``gpu`` (Triton), which know Euclidean and
half-L1 distances.
"""

from graphsnd.kernels.dispatch import (
    edge_means,
    edge_means_and_totals,
    edge_totals,
    observation_edges,
    pair_matrix,
    pair_mean,
    pair_totals,
    ragged_edges,
)

__all__ = [
    "edge_means",
    "edge_means_and_totals",
    "edge_totals",
    "observation_edges",
    "pair_matrix",
    "pair_mean",
    "pair_totals",
    "ragged_edges",
]
