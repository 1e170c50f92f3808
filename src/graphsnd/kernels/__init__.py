"""4 HOW FAST: sums of pair distances over points.

Operations on ``points[observation, agent, feature]``: all-pairs totals, all-pairs matrix, a shared edge list summed
over observations or over edges, and an edge list for each observation, of equal or other lengths. ``reference`` is
plain torch and the oracle of the compiled backends, ``cpu`` (numba) and ``gpu`` (Triton).
"""

from graphsnd.kernels.dispatch import (
    available,
    edge_means_and_totals,
    edge_sums,
    edge_totals,
    observation_edges,
    pair_matrix,
    pair_mean,
    pair_totals,
    ragged_edges,
)

__all__ = [
    "available",
    "edge_means_and_totals",
    "edge_sums",
    "edge_totals",
    "observation_edges",
    "pair_matrix",
    "pair_mean",
    "pair_totals",
    "ragged_edges",
]
