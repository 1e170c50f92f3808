"""Random numbers, and where they come from."""

import torch
from scipy import stats

from graphsnd.graphs import complete
from graphsnd.graphs.random import distinct, integers, marked_pairs, resolve
from tests.graphs.test_random import generator


def test_integers_are_uniform_where_32_bits_would_not_be():
    high = 3 * 2**30  # 32 bits modulo this hit the lower third twice as often
    drawn = integers(30_000, high, generator())
    thirds = torch.bincount(drawn // 2**30, minlength=3).numpy()
    assert stats.chisquare(thirds).pvalue > 1e-3


def test_the_device_is_the_one_told_or_the_default():
    assert complete(3, device="cpu").device.type == resolve(None).type == "cpu"
    with torch.device("meta"):
        assert resolve(None).type == "meta"
        assert resolve("cpu").type == "cpu"


def test_distinct_values_are_the_first_ones_of_the_stream():
    for size, count in ((0, 10), (1, 300), (100, 300), (150, 300)):
        stream = integers(10_000, count, generator()).tolist()
        seen = list(dict.fromkeys(stream))  # the different values in the order they came
        assert distinct(size, count, generator()).tolist() == sorted(seen[:size])


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
