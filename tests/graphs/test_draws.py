"""Random numbers, and where they come from."""

import torch
from scipy import stats

from graphsnd.graphs import complete
from graphsnd.graphs.draws import integers, resolve
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
