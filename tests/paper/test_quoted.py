"""docs/paper.md and docs/control.md quote the committed results: a number that moves without them fails here."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from paper.experiment import NAMES, Scale
from paper.judging.claims import Kind, load_claims
from paper.judging.verdicts import Verdict, count_kinds, judge_all
from paper.runner import RESULTS, read_results

QUOTES = """
bias {unbiasedness.enumerated_bias.value:.0e} by enumeration
one Bernoulli-0.1 graph is {training.largest_gap.value:.1%} off at most
ours | {dico_50.largest_audit_error_bernoulli.low:.2%} to {dico_50.largest_audit_error_bernoulli.high:.2%} |
| {dico_50.largest_audit_error_full.low:.2%} to {dico_50.largest_audit_error_full.high:.2%} | | the paper's
rewards differ by {dico_50.paired_reward_by_seed.value:.3f}, 95% interval over seeds
pairs is {dico_10.largest_audit_error.low:.2%} off target with Bernoulli-0.1
and {dico_10.largest_audit_error.high:.2%} with random regular graphs
the two are 0.9% and {dico_10.knn_audit_error.value:.0%}
teams earn {dico_10.reward_difference_unconstrained.value:.3f} compared with full SND
over seeds [{dico_10.reward_difference_unconstrained.low:.3f}, {dico_10.reward_difference_unconstrained.high:.3f}], as
over seeds [{dico_50.paired_reward_by_seed.low:.3f}, {dico_50.paired_reward_by_seed.high:.3f}]
take {construction.plain_uniform_over_paper.low:.1f} to {construction.plain_knn_over_paper.high:.0f} times what it says
on trained teams SND is then {training.own_observation_error.value:.0%} off
tightest family in {expanders.regular_tightest_share.kind}
({expanders.regular_over_uniform_sd.low:.2f} to {expanders.regular_over_uniform_sd.high:.2f} of that of random pairs)
a slope of {concentration.empirical_slope.value:.2f}, not
n^{{{expanders.ratio_spread_exponent.value:.2f}}}
tracking error of {dico_50.wrong_estimator_tracking_error.value:.1%} and is
and is {dico_50.wrong_estimator_audit_error.value:.0%} off by the audit
to settle are {dico_50.settling_iteration.low:.0f} to {dico_50.settling_iteration.high:.0f}
the metric is {dico_50.published_metric_share.value:.1%} of an iteration
{mpe.noise_violation_bernoulli_010.value:.0%}, {mpe.noise_violation_bernoulli_025.value:.0%} and
and {mpe.noise_violation_regular_2.value:.0%} of the draws are off
({mpe.noise_violation_regular_2.low:.0%} to {mpe.noise_violation_regular_2.high:.0%} over three seeds
{mpe.disconnected_share_regular_2.value:.0%} are disconnected
to {training.final_snd_clipped.value:.2f} in the end
is {timing.exact_fused_advantage_n500.value:,.0f} times as fast
is {timing.gpu_loop_speedup_n500.value:.1f} times as fast as one over all pairs with 500 agents
([{timing.gpu_loop_speedup_n500.low:.1f}, {timing.gpu_loop_speedup_n500.high:.1f}])
on a CPU {training.loop_speedup.value:.1f} times with 100 agents and {dico_50.loop_metric_speedup.value:.1f} times with
can show: reward {dico_50.shortcut_reward_difference.value:.3f},
[{dico_50.shortcut_reward_difference.low:.3f}, {dico_50.shortcut_reward_difference.high:.3f}], audit error -0.03
interval {timing.exact_fused_advantage_n500.low:,.0f} to {timing.exact_fused_advantage_n500.high:,.0f})
without them it is {training.final_snd_own_observations.value:.2f}
"""

CONTROL = """
| all (full SND) | all | {dico_50.largest_audit_error_full.low:.2%} to {dico_50.largest_audit_error_full.high:.2%} |
0.1` | all | {dico_50.largest_audit_error_bernoulli.low:.2%} to {dico_50.largest_audit_error_bernoulli.high:.2%} |
| {dico_50.paired_reward_by_seed.value:.3f} [{dico_50.paired_reward_by_seed.low:.3f},
[{dico_50.paired_reward_by_seed.low:.3f}, {dico_50.paired_reward_by_seed.high:.3f}] |
receives are {dico_50.environment_over_controlled.value:.2f} times as diverse
was {dico_50.estimate_share.low:.0%} of the arithmetic of a step, the pairs {dico_50.published_metric_share.value:.1%}
"""


def read_page(name: str) -> str:
    return " ".join((RESULTS.parents[1] / "docs" / name).read_text(encoding="utf-8").replace("%", "").split())


@pytest.fixture(scope="module")
def page() -> str:
    return read_page("paper.md")


@pytest.mark.parametrize(("name", "quote"), [
    *(("paper.md", quote) for quote in QUOTES.strip().splitlines()),
    *(("control.md", quote) for quote in CONTROL.strip().splitlines()),
])  # fmt: skip
def test_a_number_is_the_committed_one(name: str, quote: str) -> None:
    results = {name: read_results(RESULTS, name)[Scale.PAPER].numbers for name in NAMES}
    numbers = {name.replace("-", "_"): SimpleNamespace(**mine) for name, mine in results.items()}
    # A sign is written once for several shares.
    assert quote.format(**numbers).replace("%", "").replace(" sizes and degrees", "") in read_page(name)


def test_counts(page: str) -> None:
    kinds = [claim.kind for claim in load_claims()]
    theorems, measured, ours = (kinds.count(kind) for kind in Kind)
    words = f"{theorems} theorems and identities, {measured} measurements that the paper reports, and {ours} findings"
    assert f"{len(kinds)} statements are compared" in page
    assert words in page
    found = count_kinds(judge_all(load_claims(), RESULTS))[Kind.MEASUREMENT]
    quoted = re.findall(r"(\d+|one)(?: are| is)? (?:conf|in dir|corr|not conf|undec|not meas)", page)
    assert [int(count.replace("one", "1")) for count in quoted] == [count for count in found.values() if count]
    proved = count_kinds(judge_all(load_claims(), RESULTS))[Kind.THEOREM][Verdict.CONFIRMED]
    assert f"{proved} of {theorems} statements hold" in page
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"{theorems} theorems and identities and {measured} measurements" in readme


def test_cases(page: str) -> None:
    numbers = (
        read_results(RESULTS, "expanders")[Scale.PAPER].numbers | read_results(RESULTS, "theory")[Scale.PAPER].numbers
    )
    names = ("distortion_violations", "ramanujan_violations", "spectral_vacuous", "probabilistic_vacuous")
    graphs, ramanujan, (spectral, cases), probabilistic = (
        [int(word) for word in numbers[name].kind.split() if word.isdigit()] for name in names
    )
    assert f"distortion theorem ({graphs[0]} graphs and teams), or" in page
    assert f"Ramanujan case ({ramanujan[0]})" in page
    assert f"in {spectral} of {cases} cases, Proposition 19 in {probabilistic[0]}," in page
