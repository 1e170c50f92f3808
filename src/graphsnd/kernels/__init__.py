"""Sums of pair distances over points, fast.

Operations on ``points[observation, agent, feature]``: all-pairs totals, all-pairs matrix, a shared edge list summed
over observations or over edges, and an edge list for each observation, of equal or other lengths. ``reference`` is
plain torch and the oracle of the compiled backends, ``cpu`` (numba) and ``gpu`` (Triton), which know Euclidean and
half-L1 distances.
"""

from graphsnd.kernels.dispatch import edge_means as edge_means
from graphsnd.kernels.dispatch import edge_means_and_totals as edge_means_and_totals
from graphsnd.kernels.dispatch import edge_totals as edge_totals
from graphsnd.kernels.dispatch import observation_edges as observation_edges
from graphsnd.kernels.dispatch import pair_matrix as pair_matrix
from graphsnd.kernels.dispatch import pair_mean as pair_mean
from graphsnd.kernels.dispatch import pair_totals as pair_totals
from graphsnd.kernels.dispatch import ragged_edges as ragged_edges
