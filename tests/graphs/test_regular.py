"""The law of random regular graphs: every edge as likely as another, and nearly every graph."""

import math
from collections import Counter

import networkx
import numpy as np
import pytest
from scipy import stats

from graphsnd.graphs import random_regular
from graphsnd.graphs.random import rank
from graphsnd.graphs.regular import regular_pairs
from tests.graphs.test_random import generator, pair_frequencies


@pytest.mark.parametrize(("n", "degree"), [(6, 3), (8, 2), (9, 4), (10, 7)])
def test_regular_edges_are_equally_likely(n, degree):
    rounds, source = 300, generator(6)
    counts = pair_frequencies([random_regular(n, degree, seed=source) for _ in range(rounds)], n)
    q = degree / (n - 1)
    # The degrees fix n linear forms of the counts; on what is left a symmetric law has one common variance.
    freedom = math.comb(n, 2) - n
    variance = rounds * q * (1 - q) * math.comb(n, 2) / freedom
    assert 1e-3 < stats.chi2(freedom).sf(((counts - rounds * q) ** 2 / variance).sum()) < 1 - 1e-3


def test_cubic_graphs_on_six_agents_are_nearly_uniform():
    source, rounds = generator(7), 1050
    drawn = Counter(tuple(rank(random_regular(6, 3, seed=source).edges, 6).tolist()) for _ in range(rounds))
    assert len(drawn) == 70
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-3


def test_triangles_of_cubic_graphs_match_rejection_sampling():
    # A stub matching kept only when it is simple is exactly uniform, and needs none of the code under test.
    rng, n, exact = np.random.default_rng(0), 10, []
    while len(exact) < 400:
        ends = np.sort(rng.permutation(np.repeat(np.arange(n), 3)).reshape(-1, 2), axis=1)
        edges = {(i, j) for i, j in ends.tolist() if i != j}
        if len(edges) == 15:
            exact.append(sum(networkx.triangles(networkx.Graph(list(edges))).values()) // 3)
    source = generator(8)
    ours = [sum(networkx.triangles(random_regular(n, 3, seed=source).to_networkx()).values()) // 3 for _ in range(400)]
    assert stats.ttest_ind(exact, ours).pvalue > 1e-3


def test_past_the_small_graphs_the_repair_alone_keeps_edges_flat():
    n, degree, rounds, source = 60, 12, 60, generator(9)
    counts = np.zeros(math.comb(n, 2))
    for _ in range(rounds):
        counts[regular_pairs(n, degree, source).numpy()] += 1
    q = degree / (n - 1)
    freedom = math.comb(n, 2) - n
    variance = rounds * q * (1 - q) * math.comb(n, 2) / freedom
    assert 1e-3 < stats.chi2(freedom).sf(((counts - rounds * q) ** 2 / variance).sum()) < 1 - 1e-3
