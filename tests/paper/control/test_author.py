"""The author's tables against what the paper prints of them."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest

from paper.control.author import ARMS, read_grids, time_iterations

# Tables 1 and 2 of the paper, in per cent: by target, Bernoulli and full.
TRACKING = {0.12: (0.53, 0.37), 0.14: (0.48, 0.31), 0.15: (0.42, 0.35)}
AUDIT = {0.12: (0.50, 0.48), 0.14: (0.61, 0.36), 0.15: (0.43, 0.46)}
REWARD = {0.12: (0.295, 0.325), 0.14: (0.338, 0.327), 0.15: (0.350, 0.333)}


def test_the_tables_give_what_the_paper_prints() -> None:
    first, second = read_grids()
    for target in TRACKING:
        for place, arm in enumerate(ARMS.values()):
            one, two = ([run for run in grid if (run.arm, run.target) == (arm, target)] for grid in (first, second))
            tracking = fmean(float(run.columns["tracking_err_rel"]) for run in one)
            audit = fmean(float(run.columns["posthoc_full_snd_late_mean"]) for run in two)
            assert round(100 * tracking, 2) == TRACKING[target][place]
            assert round(100 * (audit / target - 1), 2) == AUDIT[target][place]
            assert round(fmean(run.reward for run in one), 3) == REWARD[target][place]
    pairs = {run.seed: 0.0 for run in first}
    for run in first:
        pairs[run.seed] += run.reward * (1 if run.arm == ARMS["bern"] else -1) / 3
    assert fmean(pairs.values()) == pytest.approx(-6.2e-4, abs=5e-6)
    assert stdev(pairs.values()) > 0


def test_what_an_iteration_takes() -> None:
    numbers = time_iterations(read_grids()[1])
    assert numbers["author_iteration_seconds"].value == pytest.approx(52.8, abs=0.05)
    assert numbers["saved_share"].value == pytest.approx(1 - 48.105 / 52.935, abs=1e-4)
