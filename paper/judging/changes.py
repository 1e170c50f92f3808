"""``results/rules.md``: verdicts by kind, every rule that changed beside the old one, and the author's logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from paper.experiment import Number
from paper.judging.claims import Claim, Kind
from paper.judging.formatting import KINDS, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict, count_kinds, judge_all, judge_number
from paper.published import Published, PublishedNumber

TITLE = "# Kinds, rules that changed, and the author's logs"
BEFORE = """Written by `python -m paper run`. The first rules were committed before the experiments ran. In
the table of rules both are asked about today's numbers. Numbers "at first" are those of d176903, when kinds
were not told apart: rows are counted by their kinds of today."""
# Where the first rule says the same today, so that it is not the rule.
SAME = "Not for the rule: "
NOISE = f"{SAME}the interval of a time counts now, and it spans a limit."
DATA = {
    "training-speedup-loop": "20 trials on a quiet machine; there were 7 on a busy one.",
    "construction-regular": "builders became faster, and are timed in blocks of calls with warm caches.",
    "expander-tightest": "small regular graphs are drawn in another way; those of n = 50, d = 6 are others.",
    "expander-trained-order": "teams were trained again and are shown observations of all agents, not those of one.",
    "mpe-bias-bernoulli-025": "teams were trained again, with sums in another order.",
    "dico10-tracking": "runs have the paper's 600 environments; they had 120.",
    "dico10-audit-knn": "runs have the paper's 600 environments; with 120 they failed by today's rule too.",
    "dico50-reward-bernoulli-015": "runs estimate on all 204,800 observations; they did on 2,048.",
    "dico50-converged": "runs estimate on all 204,800 observations; they did on 2,048.",
    "dico50-audit-minus-applied": "runs estimate on all 204,800 observations; they did on 2,048.",
}
# Values, names of numbers, rules and verdicts as they were at first.
FIRST: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("first.json").read_text(encoding="utf-8"))


def changes_text(judged: Sequence[Judged], folder: Path, published: Published | None = None) -> str:
    """Return the text of the file.

    Args:
        judged: All claims, the largest scale deciding.
        folder: Of the results.
        published: Numbers of the author's logs.
    """
    before = {one.claim.id: one for one in judge_all((one.claim.first for one in judged if one.claim.first), folder)}
    moved = [one for one in judged if FIRST.get(one.claim.id, {}).get("verdict", "new") != one.verdict.value]
    verdicts = (
        (_code(one), one.claim.kind.value, _first(one), _shown(one), _reason(one, before.get(one.claim.id)))
        for one in moved
    )
    changed = [one for one in judged if one.claim.was and one.claim.kind is not Kind.FINDING]
    rules = (
        (_code(one), _rules(one.claim.was), _shown(before[one.claim.id]), _rules(one.claim), _shown(one), one.claim.why)
        for one in changed
        if one.claim.was
    )
    parts = [
        TITLE,
        BEFORE,
        "## Verdicts",
        *_table(("", *(verdict.value for verdict in Verdict), "all"), _count_rows(judged)),
        f"## {len(moved)} verdicts that changed, and new rows",
        *_table(("row", "kind", "at first", "now", "why"), verdicts),
        f"## {len(changed)} rules that changed",
        *_table(("claim", "rule before", "verdict by it", "rule now", "verdict", "why"), rules),
    ]
    if published:
        origin = f"{published.repository}, commit {published.commit[:7]}"
        parts.append(f"## The author's public logs under the same rules ({origin})")
        parts += _table(("claim", "rule", "author's logs", "verdict", "ours", "verdict"), _log_rows(judged, published))
    return "\n".join(line if line.startswith("|") else f"{line}\n" for line in parts).replace("|\n#", "|\n\n#")


def claim_of_logs(claim: Claim, published: Published | None) -> tuple[PublishedNumber, Verdict] | None:
    """Return the number of the author's logs for a claim and its verdict by the same rule, or None."""
    found = published.find(claim.experiment, claim.number) if published else None
    return (found, judge_number(claim, found.number)) if found else None


def describe_rules(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield what a claim's rules are called, and what they say."""
    named = {
        "Found when" if claim.kind is Kind.FINDING else "Confirmed when": claim.rule,
        "In direction when": claim.direction,
        "Corrected when": claim.correction,
    }
    yield from ((name, str(rule)) for name, rule in named.items() if rule)


def _count_rows(judged: Sequence[Judged]) -> Iterator[Sequence[str]]:
    for kind, counted in count_kinds(judged).items():
        ids = [one.claim.id for one in judged if one.claim.kind is kind]
        verdicts = [FIRST[name]["verdict"] for name in ids if name in FIRST]
        first = {verdict: verdicts.count(verdict.value) for verdict in Verdict}
        for when, counts in (("at first", first), ("now", counted)):
            yield f"{KINDS[kind]}, {when}", *(str(count or "") for count in counts.values()), str(sum(counts.values()))


def _log_rows(judged: Sequence[Judged], published: Published) -> Iterator[Sequence[str]]:
    for one in judged:
        found = claim_of_logs(one.claim, published)
        if found:
            number, verdict = found
            value = _format(number.number)
            ours, mark = _shown(one).rpartition(": ")[::2]
            bold = f"**{verdict.value}**" if verdict is not one.verdict else verdict.value
            yield _code(one), _rules(one.claim), value, bold, ours, mark


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def _code(one: Judged) -> str:
    return f"`{one.claim.id}`"


def _first(one: Judged) -> str:
    first = FIRST.get(one.claim.id)
    return f"{first['value']}: {first['verdict']}" if first else "no row"


def _reason(one: Judged, by_first_rule: Judged | None) -> str:
    """Why a verdict is another than at first: where the first rule says the same today, it is not the rule."""
    same = one.claim.was and by_first_rule and by_first_rule.verdict is one.verdict
    if one.claim.why and not same:
        return one.claim.why
    return NOISE if one.verdict is Verdict.UNDECIDED else SAME + DATA.get(one.claim.id, "the number is another.")


def _rules(claim: Claim) -> str:
    return "; ".join(f"{name.partition(' when')[0].lower()} {rule}" for name, rule in describe_rules(claim))


def _shown(one: Judged) -> str:
    if one.number is None:
        return one.verdict.value
    return f"{_format(one.number)}: {one.verdict.value}"


def _format(number: Number) -> str:
    shown = " ".join(filter(None, (format_value(number), format_interval(number))))
    return f"{shown}, {number.kind.partition('; ')[2]}" if number.ends else shown
