"""Which agents act alike: hierarchical clustering of a distance matrix, and a map of it in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from graphsnd.analysis.grouping import cut_tree, scale_distances
from graphsnd.plots.arrays import Array, to_array


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree over agents."""

    links: NDArray[np.float64]  # SciPy's linkage matrix [agents - 1, 4]
    order: NDArray[np.int64]  # [agents], the leaves from left to right


def cluster(matrix: Array, linkage_name: str = "average") -> Tree:
    """Return the linkage of a symmetric ``[n, n]`` distance matrix, similar leaves side by side.

    Example:
        >>> line = torch.tensor([0.0, 9.0, 1.0, 8.0])
        >>> [int(agent) for agent in cluster((line[:, None] - line).abs()).order]
        [0, 2, 3, 1]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    condensed = squareform(to_array(matrix), checks=False)
    # Optimal leaf ordering costs n^3; beyond a thousand agents the plain order has to do.
    links = linkage(condensed, linkage_name, optimal_ordering=len(matrix) <= 1000)
    return Tree(links, np.asarray(leaves_list(links), dtype=np.int64))


def agreement(tree: Tree, labels: torch.Tensor, groups: int) -> float:
    """Return the share of agents that carry the majority label of their branch, with the tree cut into ``groups``."""
    branches = cut_tree(tree.links, groups)
    truth = labels.cpu().numpy()
    right = sum(int(np.bincount(truth[branches == branch]).max()) for branch in np.unique(branches))
    return right / len(truth)


def behaviour_map(matrix: Array) -> NDArray[np.float64]:
    """Return agents in the plane ``[n, 2]``, close where they act alike (classical multidimensional scaling)."""
    points = scale_distances(to_array(matrix))[:, :2]
    top = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # fewer axes for agents on a line
    # eigh leaves the signs open: fix them, so that the same team always gives the same picture.
    picture: NDArray[np.float64] = top * np.where(top[np.abs(top).argmax(0), range(top.shape[1])] < 0, -1.0, 1.0)
    return picture
