"""Graphs as networks."""

import pytest
import torch

from graphsnd import graphs
from graphsnd.bounds.forwarding import forwarding_index
from graphsnd.errors import InputError


def test_components_are_named() -> None:
    message = r"connected.*3 components with agents 4 \(0, 1, 2, \.\.\.\), 2 \(4, 5\), 1 \(6\)"
    with pytest.raises(InputError, match=message):
        forwarding_index(graphs.cliques([0, 0, 0, 0, 1, 1, 2]))
    with pytest.raises(InputError, match="2 components"):
        forwarding_index(graphs.Graph(2, torch.empty(0, 2, dtype=torch.int64)))
