import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsnd.graphs import random
from graphsnd.graphs.pairs import from_keys, keys, repeats
from graphsnd.graphs.random import others, rank, unrank


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


@pytest.mark.parametrize("n", [2, 50, 512])
def test_pairs_read_from_the_table_are_the_computed_ones(n, monkeypatch):
    index = torch.randint(0, math.comb(n, 2), (500,), generator=torch.Generator().manual_seed(n))
    read = unrank(index, n)
    monkeypatch.setattr(random, "LISTED", 0)
    assert torch.equal(unrank(index, n), read)


def test_others_is_the_complement():
    assert others(torch.tensor([1, 5]), 4).tolist() == [0, 2, 3, 4]
    assert others(torch.arange(6), 4).tolist() == []
    assert others(torch.arange(0), 4).tolist() == [0, 1, 2, 3, 4, 5]


def test_keys_order_pairs_as_ranks_do():
    n = 7
    edges = unrank(torch.arange(math.comb(n, 2)), n)
    values = keys(edges[:, 1], edges[:, 0], n)
    assert torch.equal(values, values.sort().values)
    assert torch.equal(from_keys(values, n), edges)


@given(st.lists(st.integers(-3, 3)))
def test_repeats_marks_all_but_the_first(values):
    expected = [value in values[:at] for at, value in enumerate(values)]
    assert repeats(torch.tensor(values, dtype=torch.int64)).tolist() == expected
