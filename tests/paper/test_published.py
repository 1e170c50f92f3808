from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest
from scipy import stats

from graphsnd.errors import InputError
from paper.experiment import Scale
from paper.judging.changes import claim_of_logs
from paper.judging.claims import load_claims
from paper.published import PATH, Published, read_published, reduce_logs, write_published
from paper.registry import NAMES, find
from paper.store import RESULTS, read_results


@pytest.fixture
def published() -> Published:
    found = read_published()
    assert found is not None
    return found


def test_the_logs_give_what_the_paper_prints(published: Published) -> None:
    """The paper's own numbers, from its logs by the code that reduces ours."""
    printed = {
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
    for (experiment, name), value in printed.items():
        one = published.find(experiment, name)
        assert one is not None
        assert one.number.value == pytest.approx(value, rel=0.02), name


def test_rewards_of_ten_agents_have_welchs_interval(published: Published) -> None:
    """Against scipy's own, from the means and standard errors that the author's summary prints."""
    one = published.find("dico-10", "reward_difference_bernoulli")
    assert one is not None
    spread = [error * 3**0.5 for error in (0.0008156438297431977, 0.0004600417524392013)]
    mean, other = 0.06987222209572792, 0.06409055553376675
    for end in (one.number.low, one.number.high):  # where the difference is just significant
        tested = stats.ttest_ind_from_stats(mean - (end or 0), spread[0], 3, other, spread[1], 3, equal_var=False)
        assert tested.pvalue == pytest.approx(0.05)


def test_times_are_judged_as_ours(published: Published) -> None:
    """A number that is a time in our results is one here, and the noise of its trials counts."""
    ours = {name: read_results(RESULTS, name)[Scale.PAPER].numbers for name in NAMES}
    for one in published.numbers:
        if one.name in ours[one.experiment]:
            assert one.number.clock == ours[one.experiment][one.name].clock, one.name
    trained = published.find("training", "loop_speedup")
    assert trained is not None
    assert "5 blocks" in trained.number.kind
    full = published.find("timing", "gpu_loop_seconds_n500")
    assert full is not None
    half = stats.t.ppf(0.975, 19) * 0.050034 / 20**0.5
    assert (full.number.low, full.number.high) == pytest.approx((15.5028 - half, 15.5028 + half), rel=1e-4)


def test_every_number_is_one_that_claims_can_name(published: Published) -> None:
    assert len(published.commit) == 40
    for one in published.numbers:
        assert one.name in find(one.experiment).numbers.__dataclass_fields__
    judged = [claim.id for claim in load_claims() if claim_of_logs(claim, published)]
    assert len(judged) >= 60
    assert claim_of_logs(load_claims()[0], None) is None


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    with pytest.raises(InputError, match="CLONE"):
        write_published(tmp_path, tmp_path / "numbers.json")
    assert not (tmp_path / "numbers.json").exists()
    assert PATH.is_file()


def test_a_table_is_reduced(tmp_path: Path) -> None:
    """The first table, whose numbers can be checked by hand."""
    path = tmp_path / "results" / "exp1" / "recovery.csv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["iter_tag", "SND_full", "abs_err_D_path", "abs_err_direct_path"])
        lines.writerows([["iter0", 0.5, 0.0, 1e-9], ["iter100", 2.0, 0.0, 0.0]])
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "logs"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    logs = reduce_logs(tmp_path)
    error, growth = next(logs), next(logs)
    assert (error.name, error.number.value, growth.number.value) == ("largest_error", 1e-9, 4.0)
    assert error.file == "results/exp1/recovery.csv"
    with pytest.raises(InputError, match="unbiasedness"):
        next(logs)
