"""Random numbers, and where they come from."""

import torch
from scipy import stats

from graphsnd.graphs import complete
from graphsnd.graphs.draws import _sorted, _tabled, integers, resolve
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


def test_first_draws_by_table_and_by_sorting_are_the_same():
    stream = integers(500, 300, generator())
    by_table, by_sorting = _tabled(stream.numpy(), 300), _sorted(stream)
    for one, other in zip(by_table, by_sorting, strict=True):
        assert one.tolist() == other.tolist()
    seen = list(dict.fromkeys(stream.tolist()))  # the different values in the order they came
    assert by_table[0][by_table[1] <= by_table[2][99]].tolist() == sorted(seen[:100])
