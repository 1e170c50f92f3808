"""docs/paper.md, docs/control.md and README.md quote committed results: a number that moves without them fails here.

Every number of docs/paper.md is in a quote below, which is made from the committed numbers, or is no result: a size, a
degree, a statement's number. What the paper prints stands in ``claims.yaml``, and what its logs say in
``published.json``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from paper.construction import BUILDERS
from paper.control.author import read_grids
from paper.dico_10 import KNN
from paper.dico_10 import Data as Ten
from paper.dico_50 import BERNOULLI, NAMES
from paper.dico_50 import Data as Fifty
from paper.experiment import NAMES as EXPERIMENTS
from paper.experiment import Number, Scale
from paper.judging.claims import Kind, load_claims
from paper.judging.verdicts import Verdict, count_kinds, judge_all
from paper.published import read_published
from paper.rows import decode
from paper.runner import RESULTS, read_results
from tests.benchmarks.test_quoted import load, queues, speed
from tests.test_paper_numbers import STATEMENTS

ROOT = RESULTS.parents[1]
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")

PAPER = """
{facts.statements} numbered statements | {facts.proved} of {facts.theorems} exact checks do
Bias {unbiasedness.enumerated_bias:.0e} by enumeration
95% of errors are below {concentration.empirical_over_serfling:.0%} of Serfling's radius
One Bernoulli-0.1 graph is {training.largest_gap:.1%} off at most in {training.largest_gap:kind} measurements
(the paper's log: {log.training.largest_gap:.1%} in {log.training.largest_gap:kind})
9.0 to 10.9, 9.98 and 9.24 to 9.63 times | {training.loop_speedup:.1f} times with 100 agents
{timing.gpu_loop_speedup_n500:.1f} with 500 on an H200 ({timing.gpu_loop_speedup_n500:[.1f})
{d50.loop_metric_speedup:.1f} with 50.
[{facts.slowest:.1f} to {facts.fastest:.1f} times](benchmarks.md#a-tenth-of-the-pairs) as
300 and 1,000 agents, {facts.hundred:.1f} times with 100. On an H200 {timing.gpu_fused_speedup_n500:.1f} times with 500
SND over all pairs is {log.d50.largest_audit_error_bernoulli:~.2%} off
{d50.largest_audit_error_bernoulli:~.2%} (by all pairs: {d50.largest_audit_error_full:~.2%})
{log.d50.paired_reward_difference:.4f} ± {log.d50.paired_reward_sem:.4f} in one grid
{d50.pooled_reward:.4f}, 95% interval {d50.pooled_reward:[.4f}, of a reward of {facts.reward:.2f}
a loss of {facts.loss}% is excluded
all track 0.1 | SND over all pairs is {d10.largest_audit_error:&.2%} off
[0.9987, 1.0013] | In its setting [{facts.own_low}, {facts.own_high}]
tightest in {expanders.own_regular_tightest:.0f} of 12 sizes and degrees
with equation (1) [{facts.low}, {facts.high}], tightest in {expanders.regular_tightest:.0f}.
| {facts.logged_shares}% | {mpe.noise_violation_bernoulli_010:.0%}, {mpe.noise_violation_bernoulli_025:.0%}
and {mpe.noise_violation_regular_2:.0%}, the last in
estimates from a few of 45 pairs that are off by more than 0.05
Of {facts.measured} measurements
SND of trained teams is then {training.own_observation_error:.0%} off
random regular graphs are {expanders.own_trained_ratio_deviation:.2%} off at most for trained teams
and {expanders.trained_ratio_deviation:.1%} with equation (1)
nearest neighbours are {theory.split_over_regular_largest_n500:.0f} times worse (the paper: 39)
they are {expanders.union_over_regular_n500_d9:~.1f} times worse at degree 9
{expanders.union_over_regular_n500_d18:~.1f} at 18 and {expanders.union_over_regular_n500_d36:~.1f} at 36.
"About 25 iterations" are {d50.settling_iteration:3.0f} within 3, 2.5 and 2% of the target
(the author's logs: {log.d50.settling_iteration:3.0f})
Without control they earn {d10.reward_difference_unconstrained:.3f} compared with full SND
95% interval over seeds {d10.reward_difference_unconstrained:[.3f}, as
({theory.split_over_regular_smallest_n500:.1f} times by the paper's own measure)
hold SND over all pairs ({d10.knn_audit_error:.0%} off
the final 0.139 of the n = 100 run ({training.final_snd_own_observations:.2f} here
{training.final_snd_clipped:.2f} with two faults of its code)
fall with a slope of {concentration.empirical_slope:.2f}, not -1/2
Ratios approach 1 like $n^{{{expanders.own_ratio_spread_exponent:.2f}}}$
The metric is more than 2% of an iteration: sampling saves {d50.saved_share:.1%}
Here estimates are {d50.estimate_share:.0%}
A tracking error below 1% shows nothing
a controller that reads twice the diversity has {d50.wrong_estimator_tracking_error:.1%}
and is {d50.wrong_estimator_audit_error:.0%} off by the audit
that of actions is {d50.environment_over_controlled:.2f} times as large
The threshold of 0.05 is not loose: Hoeffding radii are {mpe.radius_over_threshold:~.0f} times
{mpe.disconnected_share_regular_2:.0%} of the 2-regular "expanders" are disconnected
an error of 100% or more in {theory.spectral_vacuous:kind} cases, Proposition 19 in {facts.vacuous}, all
SND at the end: {training.final_snd_own_observations:.2f}, and {training.final_snd_clipped:.2f} with both
The largest deviation from 1/p is {timing.gpu_loop_law_error:.1%}
{facts.rows} rows in four kinds: {facts.theorems} theorems and identities
{facts.measured} measurements that the paper reports, {facts.checks} checks
({facts.checked} confirmed, one in direction; left out of the count above), and {facts.ours} findings
by any of {expanders.distortion_violations:kind} graphs and teams for the distortion theorem
and {theory.ramanujan_violations:kind} for the spectral bounds
The radius is then {theory.repaired_over_printed:~.2f} of the printed one
The {facts.vacuous} cases in which it says nothing all
there $d^2/n$ is {theory.vacuous_density:~.0f}
Where errors are below {facts.error}%
spectral bounds are {expanders.spectral_over_observed:.0f} times as large
allows {facts.exact_low:.0%} to {facts.exact_high:.0%}, and
({expanders.regular_over_uniform_sd:~.2f} of that of random pairs, in all 12 cells)
have {facts.edges_low:.0f} to {facts.edges_high:.0f}% more edges
regular graphs are tightest in {facts.beside} cells of 12
estimates on all {facts.observations} observations of a minibatch
| our grid | {d50.paired_reward_by_seed:.4f} | {d50.paired_reward_by_seed:[.4f} |
reports | {log.d50.paired_reward_by_seed:.4f} | {log.d50.paired_reward_by_seed:[.4f} |
second | {d50.second_grid_reward:.4f} | {d50.second_grid_reward:[.4f} |
all three | {d50.pooled_reward:.4f} | {d50.pooled_reward:[.4f} |
in both arms: {facts.bernoulli} with Bernoulli-0.1, {facts.full} with all pairs
The smallest step is {d50.pooled_smallest_step:.4f}, {d50.pooled_smallest_step:[.4f}, so
rewards agree with the paper's in {facts.agree} of six cells (Bernoulli-0.1
at 0.15: {d50.reward_bernoulli_015:.3f}, not {log.d50.reward_bernoulli_015:.3f})
can show: reward {d50.shortcut_reward_difference:.3f}, {d50.shortcut_reward_difference:[.3f}
audit error {facts.shortcut:.2f} points
Teams under control earn {facts.held_low:.3f} to {facts.held_high:.3f}, teams without it {facts.free:.3f}
the paper's logs have {facts.logged}.
the tracking error is {facts.knn_tracking:.1%}, the audit {d10.knn_audit_error:.0%} off
({facts.knn_seeds}% for the three seeds)
An iteration of fifty agents takes {d50.iteration_seconds:.2f} s here
the paper's 52.4 s are {d50.author_iteration_seconds:.1f} in the author's second grid
is {timing.exact_fused_advantage_n500:,.0f} times as fast as the loop over a tenth of them
95% interval {timing.exact_fused_advantage_n500:~,.0f})
take {facts.fast:.1f} to {facts.slow:.0f} times what it says
to an SND of 0.139.
ours is there in {facts.matched}, and at {training.final_snd_clipped:.2f} in the end
"""

CONTROL = """
| all (full SND) | all | {d50.largest_audit_error_full:~.2%} |
0.1` | all | {d50.largest_audit_error_bernoulli:~.2%} |
| {d50.paired_reward_by_seed:.3f} {d50.paired_reward_by_seed:[.3f} |
receives are {d50.environment_over_controlled:.2f} times as diverse
was {d50.arithmetic_share:.0%} of the arithmetic of a step, and sampling the pairs saved {d50.saved_share:.1%}
"""

README = "We compare {facts.theorems} theorems and identities and {facts.measured} measurements"

# What is no result: sizes, settings, and names.
PLAIN = re.compile(
    r"(?:Proposition|Propositions|Remark|Table|Figure) \d+|equation \(1\)|Bernoulli-0\.1|\$\$[^$]*\$\$|\$[^$]*\$|H200"
    r"|RTX 4090|2-regular|n = (?:100|500)\b|\b(?:100|4 to 16|300 and 1,000) agents"
    r"|^\| \d+\. |\(McKay and Wormald 1991\)"
    r"|\]\([^)]*\)|`[^`]*`|4,096 observations|200 rollouts|\b20, shared|2 and 4 times ceil\(log2 n\)"
    r"|ceil of 2 and 4 log2 n|24 and 23 with 50 agents|with 120\s+environments the order"
    r"|paper's 600 environments, last 10 iterations|^\*\*Ten agents\.\*\* 15 runs|takes 500 iterations|not 1/n|1/p"
    r"|is near 1,|float(?:32|64|16)|at distance 0|95% interval over seeds \|",
    re.MULTILINE,
)


class Quoted:
    """A committed number as quotes write it: its value, ``~`` or ``&`` its range, ``[`` its interval,
    ``3`` all three in a row, and ``kind`` its count.
    """

    def __init__(self, number: Number) -> None:
        self.number = number

    def __format__(self, spec: str) -> str:
        low, value, high = self.number.low, self.number.value, self.number.high
        if spec == "kind":
            return short(self.number.kind)
        if spec[0] == "~":
            return f"{low:{spec[1:]}} to {high:{spec[1:]}}"
        if spec[0] == "&":
            return f"{low:{spec[1:]}} and {high:{spec[1:]}}"
        if spec[0] == "[":
            return f"[{low:{spec[1:]}}, {high:{spec[1:]}}]"
        return f"{low:{spec[1:]}}, {value:{spec[1:]}} and {high:{spec[1:]}}" if spec[0] == "3" else f"{value:{spec}}"


@lru_cache
def namespace() -> dict[str, Any]:
    results = {name: read_results(RESULTS, name)[Scale.PAPER] for name in EXPERIMENTS}
    ours = {name: {key: Quoted(one) for key, one in result.numbers.items()} for name, result in results.items()}
    logs: dict[str, dict[str, Quoted]] = {}
    for one in read_published().numbers:
        logs.setdefault(one.experiment, {})[one.name] = Quoted(one.number)
    spaces, log = (
        {name.replace("ico-", ""): SimpleNamespace(**mine) for name, mine in each.items()} for each in (ours, logs)
    )
    facts = SimpleNamespace(**count_rows(), **read_rewards(results), **read_graphs(results), **read_speed())
    return {**spaces, "log": SimpleNamespace(**log), "facts": facts}


def short(kind: str) -> str:
    """The counts at the head of a kind: '63' of 'largest of 63', '36 of 105' of '36 of 105 graphs'."""
    found = re.match(r"\d+ of \d+|(?:largest )?of (\d+)", kind)
    return "" if found is None else found[1] or found[0]


def count_rows() -> dict[str, Any]:
    judged = judge_all(load_claims(), RESULTS)
    kinds, agreed = count_kinds(judged), [one for one in judged if one.claim.id.startswith("dico50-reward-")]
    return {
        "statements": len(STATEMENTS), "rows": len(judged),
        "theorems": kinds[Kind.THEOREM].total(), "proved": kinds[Kind.THEOREM][Verdict.CONFIRMED],
        "measured": kinds[Kind.MEASUREMENT].total(), "ours": kinds[Kind.FINDING].total(),
        "checks": kinds[Kind.CHECK].total(), "checked": kinds[Kind.CHECK][Verdict.CONFIRMED],
        "logged_shares": "{:.0f}, {:.0f} and {:.0f}".format(*(
            100 * float(one.claim.paper) for one in judged if re.fullmatch("mpe-violation-.*", one.claim.id)
        )),
        "agree": {5: "five"}[sum(one.verdict is Verdict.CONFIRMED for one in agreed)],
    }  # fmt: skip


def read_rewards(results: dict[str, Any]) -> dict[str, Any]:
    fifty, ten = decode(Fifty, results["dico-50"].data), decode(Ten, results["dico-10"].data)
    ours = [run for run in fifty.study.runs if run.arm in NAMES]
    every = [*ours, *(run for grid in read_grids() for run in grid)]
    rows = {
        arm: [fmean(run.reward for run in every if (run.arm, run.target) == (arm, t)) for t in (0.12, 0.14, 0.15)]
        for arm in NAMES
    }
    whole, pooled = fmean(run.reward for run in every), results["dico-50"].numbers["pooled_reward"]
    arms = {run.arm for run in ten.study.runs}
    rewards = {arm: fmean(run.reward for run in ten.study.runs if run.arm == arm) for arm in arms}
    held = [reward for arm, reward in rewards.items() if arm != "unconstrained"]
    knn = [run for run in ten.study.runs if run.arm == KNN]
    text = (RESULTS / "control" / "README.md").read_text(encoding="utf-8")
    logged = re.findall(
        r"^\| \S+ \| 0\.\d{3} \| 0\.\d{3} \| (0\.\d{3}) \|$", text, re.MULTILINE
    )  # without control last
    trials = results["training"].numbers["matched_snd_clipped"].kind
    return {
        "reward": whole, "loss": -int(100 * pooled.low / whole // 1),
        "bernoulli": "{:.3f}, {:.3f} and {:.3f}".format(*rows[BERNOULLI]),
        "full": "{:.3f}, {:.3f} and {:.3f}".format(*next(row for arm, row in rows.items() if arm != BERNOULLI)),
        "held_low": min(held), "held_high": max(held), "free": rewards["unconstrained"],
        "logged": f"{min(logged[:-1])} to {max(logged[:-1])}, and {logged[-1]}",
        "knn_tracking": fmean(run.tracking_error_of_mean for run in knn),
        "knn_seeds": "{:.0f}, {:.0f} and {:.0f}".format(*(100 * run.audit_error for run in knn)),
        "shortcut": 100 * results["dico-50"].numbers["shortcut_audit_difference"].value,
        "matched": re.findall(r"\d+", trials)[0],
        "observations": re.findall(r"[\d,]+ observations", fifty.study.departures)[0].split()[0],
    }  # fmt: skip


def read_graphs(results: dict[str, Any]) -> dict[str, Any]:
    expanders, rows = results["expanders"].numbers, results["theory"].data["rows"]
    ends = {name: re.findall(r"\d\.\d+", expanders[name].kind) for name in (
        "own_regular_ratio_deviation", "regular_ratio_deviation",
    )}  # fmt: skip
    own, shared = ends.values()
    edges, exact = expanders["knn_edges_over_matched"], [row["exact"] for row in rows if row["exact"] is not None]
    builders = [results["construction"].numbers[f"plain_{name}_over_paper"] for name in BUILDERS]
    return {
        "fast": min(one.low for one in builders), "slow": max(one.high for one in builders),
        "own_low": own[0], "own_high": own[1], "low": shared[0], "high": shared[1],
        "error": -int(-100 * max(row["error"] for row in rows) // 1),
        "vacuous": short(results["theory"].numbers["probabilistic_vacuous"].kind).split()[0],
        "exact_low": min(exact), "exact_high": max(exact),
        "edges_low": 100 * (edges.low - 1), "edges_high": 100 * (edges.high - 1),
        "beside": re.findall(r"; (\d+) beside", expanders["own_regular_tightest"].kind)[0],
    }  # fmt: skip


def read_speed() -> dict[str, Any]:
    """A tenth of the pairs against all of them, both by one kernel on a CPU."""
    ways = ("kept_graph_queued", "new_graph_queued")
    times = [1 / one["over_snd"][way] for one in load("calls/cpu")["sampled"] for way in ways]
    hundred = read_results(RESULTS, "timing")[Scale.LAPTOP].numbers["cpu_fused_speedup_n100"]
    return {"slowest": min(times), "fastest": max(times), "hundred": hundred.value}


def read_page(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").replace("%", "").split())


def fill(quote: str) -> str:
    # A sign is written once for several shares.
    return quote.format(**namespace()).replace("%", "")


@pytest.mark.parametrize(("name", "quote"), [
    *(("docs/paper.md", quote) for quote in PAPER.strip().splitlines()),
    *(("docs/control.md", quote) for quote in CONTROL.strip().splitlines()),
    ("README.md", README),
])  # fmt: skip
def test_a_number_is_the_committed_one(name: str, quote: str) -> None:
    assert fill(quote) in read_page(ROOT / name)


def test_every_number_of_the_page_is_quoted_or_no_result() -> None:
    text = PLAIN.sub(" ", (ROOT / "docs" / "paper.md").read_text(encoding="utf-8"))
    left = " ".join(text.replace("%", "").split())
    for quote in sorted((PLAIN.sub(" ", fill(quote)) for quote in PAPER.strip().splitlines()), key=len, reverse=True):
        left = left.replace(" ".join(quote.split()), " ")
    left = re.sub(COUNTS, " ", left)
    assert [left[max(0, one.start() - 40) : one.end() + 20] for one in re.finditer(r"\d", left)] == []


def test_what_a_quote_has_of_its_own_is_a_setting_or_the_papers() -> None:
    texts = [f"{claim.paper} {claim.says} {claim.measured}" for claim in load_claims()]
    known = {number for text in texts for number in NUMBER.findall(text)}
    known |= {"2.5", "3", "18", "36", "95", "12", "1"}  # settings
    for quote in PAPER.strip().splitlines():
        own = re.sub(r"\{[^{}]*\}", " ", PLAIN.sub(" ", quote))
        assert set(NUMBER.findall(own)) <= known, quote


# In README.md: what test_docs.py runs or checks, names with digits, and versions, which test_package.py reads.
NO_RESULT = re.compile(
    r"```.*?```|\]\([^)]*\)|^\[[^\]]+\]: \S+|`[^`]*`|\[!\[Python[^\n]*|\w+ \d+(?:\.\d+)+(?: to \d\.\d+)?"
    r"|arXiv:[\d.]+|[Ss]table-[Bb]aselines3"
    r"|H200|\b100 agents|can be 0 while|4,096 observations|^\| framework.*?\n\n",
    re.MULTILINE | re.DOTALL,
)


def test_every_number_of_the_readme_is_tested_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for page, line in (*speed(), *queues()):
        text = text.replace(line, " ") if page == "README.md" else text
    left = " ".join(NO_RESULT.sub(" ", text).split()).replace(fill(README), " ")
    assert [left[max(0, one.start() - 40) : one.end() + 20] for one in re.finditer(r"\d", left)] == []


COUNTS = r"(\d+|one) (?:are |is )?(?:confirmed|in direction|corrected|not confirmed|undecided|not measured)"


def test_counts() -> None:
    page = read_page(ROOT / "docs" / "paper.md")
    head = page[page.index("Of ") : page.index("## What depends")]
    found = count_kinds(judge_all(load_claims(), RESULTS))[Kind.MEASUREMENT]
    quoted = [int(count.replace("one", "1")) for count in re.findall(COUNTS, head)]
    assert quoted == [count for count in found.values() if count]
