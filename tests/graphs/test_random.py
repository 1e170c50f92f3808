import itertools
import math
from collections import Counter

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from graphsnd.graphs import (
    Graph,
    bernoulli,
    circulant,
    complete,
    from_networkx,
    random_regular,
    relabelled,
    uniform,
)
from graphsnd.graphs.graph import Sampling
from graphsnd.graphs.random import integers, marked_pairs, rank, unrank
from graphsnd.kernels.threads import limit_threads

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
DESIGNS = [
    pytest.param(lambda **options: bernoulli(60, 0.1, **options), id="bernoulli"),
    pytest.param(lambda **options: uniform(60, 177, **options), id="uniform"),
    pytest.param(lambda **options: uniform(60, 1500, **options), id="uniform-dense"),
    pytest.param(lambda **options: random_regular(60, 6, **options), id="random_regular"),
    pytest.param(lambda **options: random_regular(60, 40, **options), id="random_regular-dense"),
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def assert_canonical(graph):
    i, j = graph.edges.unbind(1)
    ranks = rank(graph.edges, graph.n)
    assert graph.edges.dtype == torch.int64
    assert bool((i >= 0).all() and (i < j).all() and (j < graph.n).all())
    assert bool((ranks[1:] > ranks[:-1]).all())


def pair_frequencies(graphs, n):
    return torch.bincount(torch.cat([rank(graph.edges, n) for graph in graphs]), minlength=math.comb(n, 2)).numpy()


@pytest.mark.parametrize("draw", DESIGNS)
def test_an_int_seed_repeats_and_a_generator_advances(draw):
    assert torch.equal(draw(seed=5).edges, draw(seed=5).edges)
    assert not torch.equal(draw(seed=5).edges, draw(seed=6).edges)
    source = generator(5)
    first, second = draw(seed=source), draw(seed=source)
    assert torch.equal(first.edges, draw(seed=5).edges)
    assert not torch.equal(first.edges, second.edges)
    assert_canonical(first)
    assert_canonical(second)


@pytest.mark.parametrize("draw", DESIGNS)
def test_global_random_state_is_neither_written_nor_read(draw):
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    drawn = draw(seed=3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    torch.manual_seed(2)
    np.random.seed(2)
    assert torch.equal(draw(seed=3).edges, drawn.edges)


def test_graphs_do_not_depend_on_the_number_of_threads():
    draws = [
        lambda: bernoulli(3000, 0.02),
        lambda: uniform(3000, 90_000),
        lambda: random_regular(3000, 60),
    ]
    one = [draw().edges for draw in draws]
    with limit_threads(2):
        two = [draw().edges for draw in draws]
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 17])
def test_numbering_is_the_order_of_itertools(n):
    combinations = torch.tensor(list(itertools.combinations(range(n), 2)))
    assert torch.equal(unrank(torch.arange(len(combinations)), n), combinations)
    assert torch.equal(rank(combinations, n), torch.arange(len(combinations)))


def unrank_exactly(index, n):
    """The same in Python's integers: the row from an integer square root."""
    from_end = n * (n - 1) // 2 - 1 - index
    k = (math.isqrt(8 * from_end + 1) - 1) // 2
    return [n - 2 - k, n - 1 - (from_end - k * (k + 1) // 2)]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_round_trip_for_any_size(data):
    n = data.draw(st.one_of(st.integers(2, 100), st.integers(100, 10**9)))
    index = data.draw(st.integers(0, n * (n - 1) // 2 - 1))
    pair = unrank(torch.tensor(index), n)
    assert pair.tolist() == unrank_exactly(index, n)
    assert int(rank(pair, n)) == index


@pytest.mark.parametrize("n", [100_000, 3_000_000, 94_906_267, 10**9])
def test_first_and_last_of_a_row_do_not_slip(n):
    # Where the square root is an integer or just below one, a rounded root lands in the wrong row.
    rows = torch.tensor([0, 1, 2, n // 3, n // 2, n - 4, n - 3, n - 2])
    first = torch.stack([rows, rows + 1], dim=1)
    last = torch.stack([rows, torch.full_like(rows, n - 1)], dim=1)
    for edges in (first, last):
        assert torch.equal(unrank(rank(edges, n), n), edges)


def test_integers_are_uniform_where_32_bits_would_not_be():
    high = 3 * 2**30  # 32 bits modulo this hit the lower third twice as often
    drawn = integers(30_000, high, generator())
    thirds = torch.bincount(drawn // 2**30, minlength=3).numpy()
    assert stats.chisquare(thirds).pvalue > 1e-3


def test_marked_pairs_are_independent_and_canonical():
    """What a GPU runs: all pairs are drawn, and those that came up are listed in order."""
    source, counts = generator(), torch.zeros(7, 7)
    for _ in range(4000):
        edges = marked_pairs(7, 0.3, source)
        assert torch.equal(edges, edges[(edges[:, 0] * 7 + edges[:, 1]).argsort()])
        counts[edges[:, 0], edges[:, 1]] += 1
    upper = counts.triu(1) > 0
    assert int(upper.sum()) == 21
    assert not counts.tril().any()
    assert stats.chisquare(counts[upper]).pvalue > 1e-4
    assert abs(float(counts.sum()) / (21 * 4000) - 0.3) < 5 * (0.21 / (21 * 4000)) ** 0.5
    assert len(marked_pairs(7, 1.0, source)) == 21


# Bernoulli


def test_bernoulli_edge_counts_are_binomial():
    n, p, source = 40, 0.15, generator(1)
    counts = np.array([bernoulli(n, p, seed=source).m for _ in range(800)])
    law = stats.binom(math.comb(n, 2), p)
    assert abs(counts.mean() - law.mean()) < 4 * law.std() / len(counts) ** 0.5
    assert abs(counts.var() / law.var() - 1) < 4 * (2 / len(counts)) ** 0.5


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_bernoulli_pairs_are_equally_likely_and_independent(p):
    n, rounds, source = 8, 1500, generator(2)
    graphs = [bernoulli(n, p, seed=source) for _ in range(rounds)]
    counts = pair_frequencies(graphs, n)
    squares = ((counts - rounds * p) ** 2 / (rounds * p * (1 - p))).sum()
    assert 1e-3 < stats.chi2(math.comb(n, 2)).sf(squares) < 1 - 1e-3
    # Neighbouring ranks are the ones that a wrong gap would tie together.
    present = np.stack([networkx.to_numpy_array(graph.to_networkx())[0, 1:3] for graph in graphs])
    assert abs(present.prod(axis=1).mean() - p**2) < 4 * (p**2 * (1 - p**2) / rounds) ** 0.5


def test_bernoulli_limits():
    assert torch.equal(bernoulli(7, 1.0).edges, complete(7).edges)
    assert torch.equal(bernoulli(7, 1).edges, complete(7).edges)
    assert bernoulli(7, 1.0).inclusion == 1.0
    empty = bernoulli(10, 1e-12)
    assert (empty.m, empty.edges.shape, empty.inclusion) == (0, (0, 2), 1e-12)
    assert bernoulli(3_000_000, 5e-324).m == 0
    assert bernoulli(5, 1 - 2**-53).is_complete
    assert {bernoulli(2, 0.5, seed=seed).m for seed in range(20)} == {0, 1}


def test_bernoulli_is_sparse_in_millions_of_agents():
    n = 3_000_000
    graph = bernoulli(n, 1e-9, seed=1)
    assert_canonical(graph)
    assert abs(graph.m - 4500) < 5 * 4500**0.5
    # The first half of the agents holds three quarters of the pairs' smaller ends.
    assert stats.binomtest(int((graph.edges[:, 0] < n // 2).sum()), graph.m, 0.75).pvalue > 1e-3


# Uniform


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_uniform_subsets_are_equally_likely(m):
    source = generator(3)
    subsets = list(itertools.combinations(range(6), m))
    drawn = Counter(tuple(rank(uniform(4, m, seed=source).edges, 4).tolist()) for _ in range(60 * len(subsets)))
    assert set(drawn) == set(subsets)
    assert stats.chisquare([drawn[subset] for subset in subsets]).pvalue > 1e-3


@pytest.mark.parametrize("m", [30, 95, 110, 180])
def test_uniform_pairs_are_equally_likely(m):
    n, rounds, source = 20, 600, generator(4)
    graphs = [uniform(n, m, seed=source) for _ in range(rounds)]
    assert all(graph.m == m for graph in graphs)
    q = m / math.comb(n, 2)
    squares = ((pair_frequencies(graphs, n) - rounds * q) ** 2 / (rounds * q * (1 - q))).sum()
    # Fixed-size draws are negatively correlated, which takes one degree of freedom and scales the rest.
    assert 1e-3 < stats.chi2(math.comb(n, 2) - 1).sf(squares * (math.comb(n, 2) - 1) / math.comb(n, 2)) < 1 - 1e-3


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 3), (30, 217), (30, 218), (30, 434), (30, 435), (200, 9_950)])
def test_uniform_has_exactly_m_edges(n, m):
    graph = uniform(n, m, seed=1)
    assert graph.m == m
    assert graph.inclusion == m / math.comb(n, 2)
    assert graph.is_complete == (m == math.comb(n, 2))
    assert_canonical(graph)


def test_uniform_is_sparse_in_millions_of_agents():
    graph = uniform(3_000_000, 4000, seed=1)
    assert graph.m == 4000
    assert_canonical(graph)


# Random regular


@pytest.mark.parametrize("n", range(2, 13))
def test_every_small_regular_graph_is_built(n):
    for degree in range(1, n):
        if n * degree % 2:
            continue
        for seed in range(3):
            graph = random_regular(n, degree, seed=seed)
            assert_canonical(graph)
            assert graph.degrees().tolist() == [degree] * n
            assert graph.inclusion == degree / (n - 1)
            assert networkx.is_k_regular(graph.to_networkx(), degree)


@pytest.mark.parametrize(("n", "degree"), [(2000, 3), (2000, 20), (101, 50), (300, 149), (300, 200)])
def test_large_regular_graphs_are_simple_and_exact(n, degree):
    graph = random_regular(n, degree, seed=1)
    assert_canonical(graph)
    assert graph.degrees().tolist() == [degree] * n


# On the GPU


@pytest.mark.parametrize("draw", [pytest.param(*case.values, id=case.id, marks=needs_gpu) for case in DESIGNS])
def test_gpu_graphs_are_canonical_and_repeat(draw):
    graph = draw(seed=1, device="cuda")
    assert graph.device.type == "cuda"
    assert_canonical(graph)
    assert torch.equal(graph.edges, draw(seed=1, device="cuda").edges)
    source = torch.Generator("cuda").manual_seed(1)
    first, second = draw(seed=source), draw(seed=source)
    assert first.device.type == "cuda"
    assert_canonical(first)
    assert not torch.equal(first.edges, second.edges)
    assert draw(seed=generator(1), device="cuda").device.type == "cuda"


def test_relabelling_keeps_the_shape() -> None:
    graph = bernoulli(15, 0.3, seed=0)
    new = relabelled(graph, seed=1)
    assert networkx.is_isomorphic(graph.to_networkx(), new.to_networkx())
    assert not torch.equal(graph.edges, new.edges)
    assert torch.equal(new.edges, Graph(15, new.edges).edges)
    assert new.inclusion == pytest.approx(graph.m / 105)
    assert new.sampling is Sampling.RELABELLED
    assert torch.equal(new.edges, relabelled(graph, seed=1).edges)


def test_numberings_are_equally_likely() -> None:
    path = from_networkx(networkx.path_graph(4))
    generator = torch.Generator().manual_seed(0)
    seen = Counter(str(relabelled(path, seed=generator).edges.tolist()) for _ in range(2400))
    assert len(seen) == len(list(itertools.permutations(range(4)))) // 2
    assert max(abs(count - 200) for count in seen.values()) < 5 * np.sqrt(200)


@pytest.mark.gpu
def test_device_changes_where_and_not_what() -> None:
    for build in (
        lambda device: circulant(30, 5, seed=1, device=device),
        lambda device: relabelled(complete(8, device=device), seed=2),
    ):
        there, here = build("cuda"), build("cpu")
        assert there.device.type == "cuda"
        assert torch.equal(there.edges.cpu(), here.edges)
