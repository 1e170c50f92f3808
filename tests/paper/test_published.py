from __future__ import annotations

import pytest

from paper.experiment import NAMES, Scale
from paper.published import read_published
from paper.runner import RESULTS, read_results

PRINTED = {
    ("unbiasedness", "largest_z"): 1.42,
    ("timing", "gpu_loop_seconds_n500"): 15.5028,
    ("timing", "gpu_sampled_seconds_n500"): 1.5536,
    ("dico-50", "paired_reward_difference"): -6.2e-4,
    ("dico-50", "paired_reward_sem"): 9.2e-3,
    ("dico-50", "sign_test_p"): 1.0,
    ("dico-50", "reward_bernoulli_012"): 0.295,
    ("dico-50", "reward_full_015"): 0.3329,
    ("dico-50", "largest_tracking_error_bernoulli"): 0.0053,
    ("dico-50", "largest_tracking_error_full"): 0.0037,
    ("dico-50", "largest_audit_error_bernoulli"): 0.0061,
    ("dico-50", "largest_audit_error_full"): 0.0048,
}


def test_the_logs_give_what_the_paper_prints() -> None:
    published = read_published()
    for (experiment, name), value in PRINTED.items():
        one = published.find(experiment, name)
        assert one is not None
        assert one.number.value == pytest.approx(value, rel=0.02), name


def test_a_number_that_is_a_time_in_our_results_is_one_here() -> None:
    ours = {name: read_results(RESULTS, name)[Scale.PAPER].numbers for name in NAMES}
    published = read_published()
    assert len(published.commit) == 40
    for one in published.numbers:
        assert one.number.clock == ours[one.experiment].get(one.name, one.number).clock, one.name
