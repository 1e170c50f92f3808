"""Bands over seeds, against an independent bootstrap."""

import numpy as np
from scipy.stats import trim_mean

from graphsnd.plots.comparison import bootstrap_band


def test_a_band_is_the_bootstrap_of_each_step() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(size=(9, 3)) * [1.0, 2.0, 3.0]
    centre, low, high = bootstrap_band(runs)
    np.testing.assert_allclose(centre, trim_mean(runs, 0.25, axis=0))
    drawn = trim_mean(runs[rng.integers(0, 9, (20_000, 9))], 0.25, axis=1)
    for found, level in ((low, 0.025), (high, 0.975)):
        np.testing.assert_allclose(found, np.quantile(drawn, level, axis=0), atol=0.12 * runs.std())


def test_one_run_has_no_band() -> None:
    one = np.arange(4.0)[None]
    assert all((part == one[0]).all() for part in bootstrap_band(one))
