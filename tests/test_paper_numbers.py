"""Theorems, figures and tables are cited by the numbers of the paper, in the library, the reproduction and the docs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
# One counter for all of them, in the order of the paper.
STATEMENTS = (
    "Definition", "Proposition", "Proposition", "Remark", "Proposition", "Proposition", "Proposition", "Remark",
    "Theorem", "Remark", "Remark", "Theorem", "Corollary", "Remark", "Remark", "Lemma", "Proposition", "Remark",
    "Proposition",
)  # fmt: skip
LAST = {"Table": 7, "Figure": 12}
CITED = re.compile(r"\b(Definition|Proposition|Remark|Theorem|Corollary|Lemma|Table|Figure)s? (\d+)(?![\d.])")
FILES = [
    *ROOT.glob("src/**/*.py"), *ROOT.glob("paper/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "paper" / "claims.yaml",
]  # fmt: skip


def check(kind: str, number: int) -> bool:
    if kind in LAST:
        return 1 <= number <= LAST[kind]
    return 1 <= number <= len(STATEMENTS) and STATEMENTS[number - 1] == kind


def test_every_cited_number_is_that_of_the_paper() -> None:
    cited = {
        (path.relative_to(ROOT).as_posix(), kind, int(number))
        for path in FILES
        for kind, number in CITED.findall(path.read_text(encoding="utf-8"))
    }
    assert {("src/graphsnd/bounds/concentration.py", "Theorem", 9), ("docs/paper.md", "Proposition", 19)} <= cited
    assert [place for place in sorted(cited) if not check(*place[1:])] == []
